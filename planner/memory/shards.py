"""Weights of each pipeline stage on one GPU, divided by tensor and expert parallelism."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache

from planner.inputs import Parallelism
from planner.memory.expert_padding import NONE, ExpertPadding, padded_share
from planner.model import (
    Layer,
    Linear,
    Mixer,
    MixerKind,
    ModelShape,
    Shard,
    TensorGroup,
    linear_bytes,
    resolve_scheme,
    weight_bits,
)

VOCABULARY_MULTIPLE = 64  # vLLM pads the vocabulary per rank
NOT_EXPERT_GROUPS = (TensorGroup.ATTENTION, TensorGroup.SHARED_EXPERT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Layers and weights that one GPU of a pipeline stage holds."""

    layers: tuple[tuple[Layer, int], ...]
    is_first: bool
    is_last: bool
    weights_by_group: tuple[tuple[str, float], ...]

    @property
    def weights_bytes(self) -> float:
        """All weights of this GPU. [bytes]."""
        return math.fsum(size for _, size in self.weights_by_group)


def stage_sizes(num_layers: int, stages: int) -> tuple[int, ...]:
    """Layers per pipeline stage: equal, with the remainder in the stages before the last (vLLM get_pp_indices)."""
    sizes = [num_layers // stages] * stages
    for index in range(2, num_layers % stages + 2):
        sizes[-index] += 1
    return tuple(sizes)


def kv_heads_per_rank(kv_heads: int, tensor_parallel_size: int) -> int:
    """KV heads on one GPU: replicated once GPUs outnumber heads."""
    return max(1, kv_heads // tensor_parallel_size)


@lru_cache(maxsize=4096)
def pipeline_stages(
    model: ModelShape,
    weight_dtype: str,
    parallelism: Parallelism,
    with_draft_layers: bool,
    wide_latent_attention: bool = False,
    experts_divided_only: bool = False,
    padding: ExpertPadding = NONE,
) -> tuple[Stage, ...]:
    """Return the distinct stages of a replica with their weights per GPU.

    Parameters
    ----------
    model : ModelShape
        The model.
    weight_dtype : str
        "auto" or a scheme of planner.model.quantization.
    parallelism : Parallelism
        Tensor, pipeline, expert and attention data parallelism.
    with_draft_layers : bool
        Whether multi-token-prediction layers are loaded.
    wide_latent_attention : bool
        Latent attention is kept in 16 bits whatever the scheme (see held_weights.widens_latent_attention).
    experts_divided_only : bool
        Every rank holds attention and shared experts in full (see held_weights.divides_experts_only).
    padding : ExpertPadding
        What the kernel of 4-bit experts pads.

    Returns
    -------
    tuple of Stage
        One for each distinct stage; stages with the same layers and place (first, middle, last) share an entry.
    """
    count = parallelism.pipeline_parallel_size
    start, seen = 0, {}
    for index, size in enumerate(stage_sizes(model.num_layers, count)):
        kinds = Counter(model.layer_order[start : start + size])
        is_first, is_last = index == 0, index == count - 1
        key = (tuple(sorted(kinds.items())), is_first, is_last)
        start += size
        if key not in seen:
            layers = tuple((model.layer_kinds[kind], number) for kind, number in key[0])
            sizes = _stage_weights(
                model,
                weight_dtype,
                parallelism,
                layers,
                is_first=is_first,
                is_last=is_last,
                drafts=with_draft_layers and is_last,
                experts_divided_only=experts_divided_only,
                padding=padding,
            )
            if wide_latent_attention:
                sizes = _with_wide_attention(model, weight_dtype, layers, sizes)
            seen[key] = Stage(layers=layers, is_first=is_first, is_last=is_last, weights_by_group=sizes)
    return tuple(seen.values())


def _with_wide_attention(
    model: ModelShape,
    weight_dtype: str,
    layers: tuple[tuple[Layer, int], ...],
    sizes: tuple[tuple[str, float], ...],
) -> tuple[tuple[str, float], ...]:
    group = TensorGroup.ATTENTION
    if all(layer.mixer.kind is not MixerKind.MLA for layer, _ in layers):
        return sizes
    factor = max(1.0, 16.0 / weight_bits(model, weight_dtype, group))
    return tuple((name, size * factor if name == group.value else size) for name, size in sizes)


def _stage_weights(
    model: ModelShape,
    weight_dtype: str,
    parallelism: Parallelism,
    layers: tuple[tuple[Layer, int], ...],
    *,
    is_first: bool,
    is_last: bool,
    drafts: bool,
    experts_divided_only: bool,
    padding: ExpertPadding,
) -> tuple[tuple[str, float], ...]:
    """Bytes on one GPU of a stage by group of tensors; `drafts` adds the multi-token-prediction layers."""
    tp = parallelism.tensor_parallel_size
    sizes: dict[str, float] = defaultdict(float)
    scheme = resolve_scheme(model, weight_dtype)
    native = scheme.bits_per_weight / 8 if scheme.is_native else 2.0
    for layer, number in layers:
        for linear in layer.linears:
            share = rank_share(linear, layer.mixer, parallelism, padding if scheme.name == "mxfp4" else NONE)
            if experts_divided_only and linear.group in NOT_EXPERT_GROUPS:
                share = 1.0
            sizes[linear.group.value] += number * share * linear_bytes(model, weight_dtype, linear)
        sizes[TensorGroup.NORM.value] += number * layer.norm_parameters * native
        if layer.mixer.kind is MixerKind.MLA and layer.mixer.kv_compression == 1:
            sizes[TensorGroup.ATTENTION.value] += number * absorbed_bytes(layer.mixer) / tp
    vocabulary = -(-model.vocab_size // (VOCABULARY_MULTIPLE * tp)) * VOCABULARY_MULTIPLE
    rows = 0 if model.draft_vocab_size else vocabulary
    embedding = rows * model.hidden_size + model.extra_embedding_parameters
    embedding_width = weight_bits(model, weight_dtype, TensorGroup.EMBEDDING) / 8
    if is_first or (is_last and model.tie_word_embeddings):
        sizes[TensorGroup.EMBEDDING.value] += embedding * embedding_width
    if is_first and model.ngram_parameters:  # rows are divided
        width = weight_bits(model, weight_dtype, TensorGroup.NGRAM) / 8
        sizes[TensorGroup.NGRAM.value] += model.ngram_parameters * width / tp
    if is_last:
        head = model.lm_head_parameters / tp
        sizes[TensorGroup.LM_HEAD.value] += head * weight_bits(model, weight_dtype, TensorGroup.LM_HEAD) / 8
        sizes[TensorGroup.NORM.value] += model.final_norm_parameters * native
    if is_first and model.vision_parameters:
        width = weight_bits(model, weight_dtype, TensorGroup.VISION) / 8
        sizes[TensorGroup.VISION.value] += model.vision_parameters * width / tp
    if drafts and model.mtp_parameters:
        sizes[TensorGroup.MTP.value] += draft_bytes(model, weight_dtype, parallelism)
    sizes["rope_cache"] += rope_cache_bytes(model)
    return tuple((group, size) for group, size in sizes.items() if size)


def rank_share(linear: Linear, mixer: Mixer, parallelism: Parallelism, padding: ExpertPadding = NONE) -> float:
    """Share of a matrix that one GPU holds, padding included; more than 1 ÷ GPUs where parts are replicated."""
    tp = parallelism.tensor_parallel_size
    if linear.shard is Shard.REPLICATED:
        return 1.0
    if linear.shard is Shard.KV_COLUMN:
        return kv_heads_per_rank(mixer.num_kv_heads, tp) / max(1, mixer.num_kv_heads)
    if linear.shard is Shard.EXPERT:
        ranks = tp * parallelism.attention_data_parallel_size
        if parallelism.expert_parallel:
            whole = 1.0 if padding is NONE else padded_share(linear, 1, padding)
            return math.ceil(linear.count / ranks) / linear.count * whole
        return 1.0 / ranks if padding is NONE else padded_share(linear, ranks, padding)
    return 1.0 / tp


def absorbed_bytes(mixer: Mixer) -> float:
    """Bytes of the 16-bit copies of kv_b that engines make for attention in the latent space, over all ranks."""
    return 2.0 * mixer.num_heads * (mixer.qk_nope_head_dim + mixer.value_head_dim) * mixer.kv_lora_rank


def draft_bytes(model: ModelShape, weight_dtype: str, parallelism: Parallelism) -> float:
    """Bytes of the multi-token-prediction layers on one GPU, without the embedding and head that the model shares."""
    parameters = model.mtp_parameters - model.mtp_shared_parameters
    width = weight_bits(model, weight_dtype, TensorGroup.MTP) / 8
    return parameters * width / (parallelism.tensor_parallel_size * parallelism.attention_data_parallel_size)


def rope_cache_bytes(model: ModelShape) -> float:
    """Bytes of the precomputed rotary cosines and sines, the same on every rank."""
    return 2.0 * model.rope_cache_elements
