"""Memory of each GPU of a replica, and the GPU that binds."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from planner.inputs import EngineSettings
from planner.memory.cuda_graphs import graph_terms
from planner.memory.defaults import Resolved
from planner.memory.demand import Demand, drafts_with_own_layers, limits_of
from planner.memory.edition import (
    FREE_MEMORY_CHECK,
    STATE_PREFIXES,
    encoder_split,
    reserves_graphs,
    runs_second_runner,
)
from planner.memory.expert_padding import expert_padding
from planner.memory.held_weights import divides_experts_only, held_by_engine, widens_latent_attention
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout
from planner.memory.log_constants import constant
from planner.memory.printed import as_printed
from planner.memory.reserved import PHYSICAL_BATCH_TOKENS, physical_batch, reserved_bytes, reserved_layout
from planner.memory.runtime import (
    ActivationTerms,
    activation_terms,
    non_torch_bytes,
    visible_memory_bytes,
)
from planner.memory.sglang_states import StatePool, state_pool
from planner.memory.shards import Stage, pipeline_stages
from planner.memory.sparse_workspace import sparse_workspace_bytes, stored_type
from planner.model import Layer, Mixer, MixerKind, ModelShape, resolve_scheme
from planner.units import GIB

LLAMACPP_HEADROOM_BYTES = 0.5 * GIB  # CUDA context and the estimator's reserve
CAPS_TOKENS = ("sglang", "trtllm")  # engines that take a largest number of tokens in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One GPU of one stage. All in bytes."""

    stage: Stage
    layout: KvLayout
    weights_bytes: float
    activation_bytes: float
    non_torch_bytes: float
    cuda_graph_bytes: float
    graphs_in_budget: bool
    budget_bytes: float
    pool_bytes: float
    states: StatePool | None = None  # SGLang: has a pool of its own
    page_cache_bytes: float = 0.0  # unified memory: files that the system caches and the engine counts as used
    is_capped: bool = False  # holds as many tokens as the user allows, although more would fit
    printed_blocks: int | None = None  # of the tokens that the engine's log prints

    @property
    def spare_bytes(self) -> float:
        """What weights, activations, runtime and pool leave of the budget."""
        used = self.weights_bytes + self.activation_bytes + self.non_torch_bytes + self.pool_bytes
        return self.budget_bytes - used

    @property
    def num_blocks(self) -> int:
        """Whole blocks that the pool holds, as the engine prints."""
        if self.printed_blocks is not None:
            return self.printed_blocks
        return max(0, math.floor(self.pool_bytes / self.layout.block_bytes))


def caches_state_prefixes(engine: EngineSettings, resolved: Resolved) -> bool:
    """Whether the engine keeps a copy of each sequence's state for prefix reuse: as set, or by default."""
    if engine.cache_state_prefixes is not None:
        return engine.cache_state_prefixes
    by_default = resolved.edition.family == "vllm" and resolved.edition.since(STATE_PREFIXES)
    return by_default and engine.enable_prefix_caching


def draft_mixer(model: ModelShape) -> Mixer | None:
    """Mixer of the draft layer: that of the last layer that attends to the whole sequence.

    Where the model compresses its cache (DeepSeek-V4), the draft layer keeps a window instead.
    """
    if model.draft_keeps_window:
        return next((x.mixer for x in model.layer_kinds if x.mixer.kind is MixerKind.SLIDING), None)
    for layer in reversed(model.layer_kinds):
        mixer = layer.mixer
        if mixer.kv_compression > 1:
            return dataclasses.replace(mixer, kind=MixerKind.SLIDING, kv_compression=1, indexer_head_dim=0)
        if mixer.kind in (MixerKind.FULL, MixerKind.MLA):
            return mixer
    return None


def all_ranks(demand: Demand, resolved: Resolved | None = None) -> tuple[Rank, ...]:
    """Memory of one GPU of each distinct pipeline stage.

    Parameters
    ----------
    demand : Demand
        Model, GPU, engine, parallelism and lengths.
    resolved : Resolved, optional
        Engine limits, where the caller has them already.

    Returns
    -------
    tuple of Rank
        One per distinct stage.
    """
    model, engine, parallelism = demand.model, demand.engine, demand.parallelism
    resolved = resolved or limits_of(demand)
    drafting = drafts_with_own_layers(demand)
    scheme = resolve_scheme(model, demand.weight_dtype)
    fp32 = scheme.name == "fp32"
    ranks = []
    wide, experts_only = widens_latent_attention(demand, resolved), divides_experts_only(demand, resolved)
    padding = expert_padding(demand.gpu, resolved.edition, engine.max_loras > 0)
    for stage in pipeline_stages(model, demand.weight_dtype, parallelism, drafting, wide, experts_only, padding):
        stage = held_by_engine(demand, stage)
        layout = build_layout(
            _cached_layers(demand, stage),
            tensor_parallel_size=parallelism.tensor_parallel_size,
            context_parallel=parallelism.decode_context_parallel_size,
            kv_cache_dtype=cache_format(demand, resolved, stage),
            fp32=fp32,
            edition=resolved.edition,
            block_size=resolved.block_size,
            num_speculative_tokens=engine.num_speculative_tokens,
            state_checkpoints=int(caches_state_prefixes(engine, resolved)),
            draft_mixer=draft_mixer(model) if drafting and stage.is_last else None,
            splits_windows=resolved.edition.family in model.window_pool_engines,
        )
        terms = activation_of(demand, resolved, stage)
        activation = terms.total + sparse_workspace_of(demand, resolved, stage, terms)
        graphs = graph_terms(model, stage.layers, demand.gpu, engine, parallelism, resolved)
        ranks.append(_rank(demand, resolved, stage, layout, activation, graphs.total if graphs else 0.0))
    return tuple(ranks)


def activation_of(demand: Demand, resolved: Resolved, stage: Stage) -> ActivationTerms:
    """Activation peak of a stage's profile run on one GPU, without the workspace of sparse attention. [bytes]."""
    scheme = resolve_scheme(demand.model, demand.weight_dtype)
    second = runs_second_runner(resolved.edition, demand.model, quantized=not scheme.is_native)
    return activation_terms(
        demand.model,
        stage.layers,
        resolved,
        demand.parallelism,
        max_model_len=demand.max_model_len,
        is_first=stage.is_first,
        is_last=stage.is_last,
        fp32=scheme.name == "fp32",
        expert_scheme=scheme.name,
        drafts=demand.engine.num_speculative_tokens > 0,
        second_runner=second,
        encoder=encoder_split(resolved.edition, demand.model, demand.engine),
    )


def cache_format(demand: Demand, resolved: Resolved, stage: Stage) -> str:
    """Type of the KV cache of a stage as its kernels store it."""
    mixers = tuple(layer.mixer for layer, _ in _cached_layers(demand, stage))
    return stored_type(mixers, demand.gpu, resolved.edition, demand.kv_cache_dtype)


def sparse_workspace_of(demand: Demand, resolved: Resolved, stage: Stage, terms: ActivationTerms) -> float:
    """What sparse attention adds to the activation peak of a stage on one GPU. [bytes]"""
    return sparse_workspace_bytes(
        stage.layers,
        demand.gpu,
        demand.engine,
        demand.parallelism,
        resolved,
        demand.max_model_len,
        hidden_size=demand.model.hidden_size,
        kv_cache_dtype=cache_format(demand, resolved, stage),
        expert_bytes=terms.experts,
    )


def _cached_layers(demand: Demand, stage: Stage) -> tuple[tuple[Layer, int], ...]:
    """Layers that a stage caches, with those of a separate draft model."""
    drafts = demand.draft_model.layer_counts() if demand.draft_model is not None and stage.is_last else ()
    return stage.layers + drafts


def _rank(
    demand: Demand,
    resolved: Resolved,
    stage: Stage,
    layout: KvLayout,
    activation: float,
    graphs: float,
) -> Rank:
    """Apply the budget rule of the engine's family, and the user's limit on the cache."""
    family = resolved.edition.family
    rank = Rank(
        stage=stage,
        layout=layout,
        weights_bytes=stage.weights_bytes,
        activation_bytes=activation,
        non_torch_bytes=non_torch_bytes(resolved, demand.parallelism, demand.gpu),
        cuda_graph_bytes=graphs,
        graphs_in_budget=False,
        budget_bytes=resolved.gpu_memory_utilization * visible_memory_bytes(demand.gpu),
        pool_bytes=0.0,
    )
    rank = _BUDGETS.get(family, _with_plain_budget)(demand, resolved, rank)
    cap = _largest_pool(demand, rank.layout, family)
    rank = dataclasses.replace(rank, pool_bytes=min(rank.pool_bytes, cap), is_capped=rank.pool_bytes > cap)
    return rank if demand.printed is None else as_printed(rank, demand.printed, demand.max_model_len, resolved)


def _with_vllm_budget(demand: Demand, resolved: Resolved, rank: Rank) -> Rank:
    """Everything fits into the share of the whole GPU; before v0.9 vLLM took other processes' memory for its own."""
    quantized = not resolve_scheme(demand.model, demand.weight_dtype).is_native
    in_budget = reserves_graphs(resolved.edition, demand.model, demand.gpu, quantized=quantized)
    other = rank.non_torch_bytes
    other += 0.0 if resolved.edition.since(FREE_MEMORY_CHECK) else demand.occupied_bytes
    pool = rank.budget_bytes - rank.weights_bytes - rank.activation_bytes - other
    return dataclasses.replace(
        rank,
        graphs_in_budget=in_budget,
        non_torch_bytes=other,
        pool_bytes=pool - (rank.cuda_graph_bytes if in_budget else 0.0),
    )


def _with_sglang_budget(demand: Demand, resolved: Resolved, rank: Rank) -> Rank:
    """The static fraction of free memory holds weights, states and pool; everything else takes the rest."""
    held = constant("unified_host") if demand.gpu.unified_memory else 0.0
    free = visible_memory_bytes(demand.gpu) - constant("sglang_context") - held - demand.occupied_bytes
    budget = resolved.gpu_memory_utilization * max(0.0, free)
    pool = budget - rank.weights_bytes
    states = state_pool(
        _cached_layers(demand, rank.stage),
        demand.engine,
        max_num_seqs=resolved.max_num_seqs,
        parallelism=demand.parallelism,
        available_bytes=pool,
    )
    pool -= states.total_bytes if states else 0.0
    return dataclasses.replace(rank, budget_bytes=budget, pool_bytes=pool, states=states)


def _with_budget_of_free_memory(demand: Demand, resolved: Resolved, rank: Rank) -> Rank:
    """TensorRT-LLM and TGI: the pool is a share of what is free once the model is loaded."""
    # What CUDA does not call free counts as used; on unified memory also the page cache, which holds the checkpoint.
    cached = constant("page_cache") * rank.weights_bytes if demand.gpu.unified_memory else 0.0
    other, total = rank.non_torch_bytes + cached, visible_memory_bytes(demand.gpu)
    free = total - demand.occupied_bytes - rank.weights_bytes - rank.activation_bytes - other
    reserved = constant("trtllm_reserved") if resolved.edition.family == "trtllm" else 0.0
    return dataclasses.replace(
        rank,
        budget_bytes=total,
        non_torch_bytes=other,
        page_cache_bytes=cached,
        pool_bytes=resolved.gpu_memory_utilization * free * (1 - reserved),
    )


def _with_llamacpp_budget(demand: Demand, resolved: Resolved, rank: Rank) -> Rank:
    """llama.cpp reserves the context of every slot at start, whatever the GPU holds."""
    pool = reserved_pool(demand, resolved, rank.stage, demand.max_model_len)
    layout = reserved_layout(
        rank.layout,
        pool,
        demand.max_model_len,
        reserved_contexts(demand.engine, resolved),
        min(resolved.block_size, demand.max_model_len),
    )
    return dataclasses.replace(
        rank,
        layout=layout,
        activation_bytes=_llamacpp_buffers(demand.model, resolved),
        non_torch_bytes=LLAMACPP_HEADROOM_BYTES,
        budget_bytes=max(0.0, visible_memory_bytes(demand.gpu) - demand.occupied_bytes),
        pool_bytes=pool,
    )


def _with_plain_budget(demand: Demand, resolved: Resolved, rank: Rank) -> Rank:
    """Engines of which only the share is known: other processes' memory counts as used."""
    pool = rank.budget_bytes - rank.weights_bytes - rank.activation_bytes - rank.non_torch_bytes - demand.occupied_bytes
    return dataclasses.replace(rank, pool_bytes=pool)


_BUDGETS = {
    "vllm": _with_vllm_budget,
    "sglang": _with_sglang_budget,
    "trtllm": _with_budget_of_free_memory,
    "tgi": _with_budget_of_free_memory,
    "llamacpp": _with_llamacpp_budget,
}


def _largest_pool(demand: Demand, layout: KvLayout, family: str) -> float:
    """Pool of as many tokens as the user allows on one GPU. [bytes]"""
    most = demand.engine.max_total_tokens
    if most is None or family not in CAPS_TOKENS:
        return math.inf
    return math.ceil(most / (layout.main.block_tokens * layout.context_parallel)) * layout.block_bytes


def reserved_contexts(engine: EngineSettings, resolved: Resolved) -> int:
    """Contexts that llama.cpp reserves: one per slot, or one for all."""
    return 1 if engine.kv_unified else resolved.max_num_seqs


def reserved_pool(demand: Demand, resolved: Resolved, stage: Stage, length: int) -> float:
    """KV cache that llama.cpp reserves on one GPU for all slots. [bytes]."""
    return reserved_bytes(
        _cached_layers(demand, stage),
        length,
        resolved.max_num_seqs,
        tensor_parallel_size=demand.parallelism.tensor_parallel_size,
        kv_cache_dtype=demand.kv_cache_dtype,
        edition=resolved.edition,
        unified=demand.engine.kv_unified,
        num_speculative_tokens=demand.engine.num_speculative_tokens,
        batch_tokens=min(physical_batch(demand.engine, resolved.edition, length), length),
        draft_mixer=draft_mixer(demand.model) if drafts_with_own_layers(demand) and stage.is_last else None,
    )


def _llamacpp_buffers(model: ModelShape, resolved: Resolved) -> float:
    """Compute buffers of llama.cpp with flash attention: logits and activations of a physical batch. [bytes]"""
    batch = min(PHYSICAL_BATCH_TOKENS, resolved.max_num_batched_tokens)
    return batch * (4.0 * model.vocab_size + 4.0 * 6 * model.hidden_size)


def binding_rank(ranks: tuple[Rank, ...]) -> Rank:
    """Return the GPU whose pool holds the fewest blocks; among equals, the fullest one."""
    return min(ranks, key=lambda rank: (round(rank.pool_bytes / rank.layout.block_bytes, 6), rank.spare_bytes))
