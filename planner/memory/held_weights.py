"""Weights on a GPU beyond its share of the model: what each engine adds, copies, widens or keeps on the CPU."""

from __future__ import annotations

import dataclasses
import math

from planner.inputs import EngineSettings, Parallelism
from planner.memory.defaults import Resolved
from planner.memory.demand import Demand
from planner.memory.edition import (
    GROUPED_OUTPUT_DIVIDES_EXPERTS_ONLY,
    LORA_ON_EXPERTS,
    NGRAMS_OF_LAYERS_ON_HOST,
    V1_DEFAULT,
    edition_of,
    encoder_split,
)
from planner.memory.runtime import BEFORE_HOPPER
from planner.memory.shards import Stage, absorbed_bytes, pipeline_stages
from planner.model import Layer, MixerKind, Shard, TensorGroup, weight_bits

ONE_SHARED_EXPERT = (0, 5)  # SGLang: from here on the shared expert is divided as the others are


def lora_bytes(layers: tuple[tuple[Layer, int], ...], engine: EngineSettings, parallelism: Parallelism) -> float:
    """LoRA slots on one GPU, allocated at start and in 16 bits. [bytes]

    A slot holds rank × (in + out) for every dense matrix, and in vLLM from 0.11 on for every expert of this GPU. The
    factor on the matrix's divided side is divided too, the other one replicated (vLLM without fully sharded LoRA). Gate
    and up each have a factor A. Source: vllm/lora/layers, fused_moe.py for the experts.
    """
    if not engine.max_loras:
        return 0.0
    edition = edition_of(engine)
    on_experts = edition.family == "vllm" and edition.since(LORA_ON_EXPERTS)
    total = 0.0
    for layer, count in layers:
        for linear in layer.linears:
            if (linear.count > 1 and not on_experts) or not linear.quantizable:
                continue
            inputs: float = linear.in_features * (2 if linear.name.startswith("gate_up") else 1)
            outputs: float = linear.out_features
            copies, split = 1, parallelism.tensor_parallel_size
            if linear.count > 1:
                ranks = split * parallelism.attention_data_parallel_size
                whole = parallelism.expert_parallel
                copies, split = (math.ceil(linear.count / ranks), 1) if whole else (linear.count, ranks)
            if linear.shard is Shard.ROW or (linear.shard is Shard.EXPERT and linear.name.startswith("down")):
                inputs /= split
            elif linear.shard is not Shard.REPLICATED:
                outputs /= split
            total += count * copies * (inputs + outputs)
    return 2.0 * engine.max_loras * engine.max_lora_rank * total


def widens_latent_attention(demand: Demand, resolved: Resolved) -> bool:
    """Whether latent attention is kept in 16 bits whatever the checkpoint's scheme.

    SGLang does so with data-parallel attention (two DeepSeek logs, within 1 %). Before Hopper there are no kernels for
    grouped fp8 projections (DeepSeek-V4 on Ada: the log has 4.0 GiB less cache, this makes 4.7).
    """
    if resolved.edition.family == "sglang" and demand.parallelism.attention_data_parallel_size > 1:
        return True
    return demand.model.has_grouped_output and demand.gpu.architecture in BEFORE_HOPPER


def divides_experts_only(demand: Demand, resolved: Resolved) -> bool:
    """Whether every rank holds attention and shared experts in full.

    True for a grouped output projection in some engines, and before Hopper (a vLLM fork for Ada).
    """
    if not demand.model.has_grouped_output:
        return False
    serves_so = resolved.edition.family in GROUPED_OUTPUT_DIVIDES_EXPERTS_ONLY
    return serves_so or demand.gpu.architecture in BEFORE_HOPPER


def draft_bytes_per_gpu(demand: Demand) -> float:
    """Weights of a separate draft model on one GPU; tensor parallelism divides it as it does the model."""
    if demand.draft_model is None:
        return 0.0
    alone = Parallelism(tensor_parallel_size=demand.parallelism.tensor_parallel_size)
    return pipeline_stages(demand.draft_model, "auto", alone, False)[0].weights_bytes


def copies_of_sglang(demand: Demand, stage: Stage) -> tuple[tuple[str, float], ...]:
    """What SGLang adds for a grouped output projection (DeepSeek-V4).

    It keeps embedding and head in full and, on Hopper, the grouped projection (wo_a) in 16 bits instead of 8.
    """
    if demand.engine.family != "sglang" or not demand.model.has_grouped_output:
        return ()
    sizes = dict(stage.weights_by_group)
    others = demand.parallelism.tensor_parallel_size - 1
    vocabulary = others * (sizes.get(TensorGroup.EMBEDDING.value, 0.0) + sizes.get(TensorGroup.LM_HEAD.value, 0.0))
    wide = 0.0
    if demand.gpu.architecture == "Hopper":  # before Hopper all of attention is in 16 bits anyway
        for layer, count in stage.layers:
            wide += count * sum(linear.num_parameters for linear in layer.linears if linear.is_grouped_output)
    return tuple(row for row in (("vocabulary_copies", vocabulary), ("wide_projection", wide)) if row[1])


def divided_by_sglang(demand: Demand, sizes: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """Weights, with the groups divided that SGLang still divides over all ranks under data-parallel attention.

    These are dense MLPs, the head and shared experts; the latter not with expert parallelism, nor in 0.4, where every
    rank held a copy (n_share_experts_fusion). Source: srt/models/deepseek_v2.py. In vLLM every rank holds all three.
    """
    ranks = demand.parallelism.attention_data_parallel_size
    divided = {TensorGroup.MLP.value, TensorGroup.LM_HEAD.value}
    if not demand.parallelism.expert_parallel and edition_of(demand.engine).since(ONE_SHARED_EXPERT):
        divided.add(TensorGroup.SHARED_EXPERT.value)
    return tuple((group, size / ranks if group in divided else size) for group, size in sizes)


def absorbed_products(demand: Demand, stage: Stage) -> tuple[tuple[str, float], ...]:
    """Products of matrices that vLLM 0.7 kept for MLA: W_Q·W_UK, the rotary part of W_Q, W_UV·W_O.

    In fp8 where attention is (attention/backends/mla/utils.py); they replace `absorbed_bytes`. v0.8 dropped them
    (#14770).
    """
    edition = edition_of(demand.engine)
    if edition.family != "vllm" or edition.since(V1_DEFAULT) or not edition.caches_latent:
        return ()
    bits = weight_bits(demand.model, demand.weight_dtype, TensorGroup.ATTENTION)
    width = bits / 8 if 8 <= bits < 9 else 2.0
    total = 0.0
    for layer, count in stage.layers:
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA and mixer.kv_compression == 1:
            queries = (mixer.q_lora_rank or demand.model.hidden_size) * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
            outputs = mixer.kv_lora_rank * demand.model.hidden_size
            total += count * (width * mixer.num_heads * (queries + outputs) - absorbed_bytes(mixer))
    return (("absorbed_products", total / demand.parallelism.tensor_parallel_size),) if total else ()


def holds_ngrams(demand: Demand) -> bool:
    """Whether n-gram tables are in GPU memory: as the user set it, else the engine's default.

    Where CPU and GPU share memory, pinned host memory is GPU memory; llama.cpp maps a file, which can be evicted.
    """
    if demand.engine.ngram_on_gpu is not None:
        return demand.engine.ngram_on_gpu
    on_host = demand.model.ngrams_enter_layers and demand.engine.family in NGRAMS_OF_LAYERS_ON_HOST
    return not on_host or (demand.gpu.unified_memory and demand.engine.family != "llamacpp")


def held_by_engine(demand: Demand, stage: Stage) -> Stage:
    """Stage with LoRA slots and the draft model added, and without what the engine keeps on the CPU.

    llama.cpp keeps an untied input embedding on the CPU ("CPU_Mapped model buffer" in its log) and has no rotary
    tables.
    """
    sizes = stage.weights_by_group
    if not holds_ngrams(demand):
        sizes = tuple(row for row in sizes if row[0] != TensorGroup.NGRAM.value)
    if demand.engine.family == "llamacpp":
        absent = {"rope_cache"} | (set() if demand.model.tie_word_embeddings else {TensorGroup.EMBEDDING.value})
        sizes = tuple(row for row in sizes if row[0] not in absent)
    elif demand.engine.family == "sglang":
        sizes = divided_by_sglang(demand, sizes)
    if encoder_split(edition_of(demand.engine), demand.model, demand.engine) != "weights":
        ranks = demand.parallelism.tensor_parallel_size
        sizes = tuple((name, size * ranks if name == TensorGroup.VISION.value else size) for name, size in sizes)
    slots = lora_bytes(stage.layers, demand.engine, demand.parallelism)
    draft = draft_bytes_per_gpu(demand) if stage.is_last else 0.0
    added = tuple(row for row in (("lora", slots), ("draft", draft)) if row[1])
    added += copies_of_sglang(demand, stage) + absorbed_products(demand, stage)
    return dataclasses.replace(stage, weights_by_group=sizes + added)
