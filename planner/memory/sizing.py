"""The memory of one GPU once the engine has started, as its log would print it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from planner.errors import InvalidInput, require_int, require_number
from planner.inputs import EngineSettings, Gpu, Parallelism, PrintedMemory
from planner.memory.concurrency import TypicalUse
from planner.memory.default_budget import budget_note
from planner.memory.defaults import kv_cache_type
from planner.memory.demand import Demand
from planner.memory.edition import FREE_MEMORY_CHECK, Edition
from planner.memory.explain import formulas, remedies
from planner.memory.held_weights import holds_ngrams
from planner.memory.log_constants import constants_in_force
from planner.memory.memory_plan import MemoryPlan
from planner.memory.pool_range import PoolRange, pool_range, start_doubt, unknown_share
from planner.memory.printed import PRINTED_PARTS, printed_formulas, printed_note
from planner.memory.runtime import profiled_images, visible_memory_bytes
from planner.memory.sglang_states import StatePool
from planner.memory.verdict import REFUSED_DIVISION, Verdict, logged_kv_tokens, start_verdict
from planner.model import ModelShape, TensorGroup, kv_dtype_names, resolve_scheme, weight_bits
from planner.units import GIB, MIB, counted

#: half-width of the error band on weights, from start-up logs
WEIGHTS_ERROR = 0.02


def plan_memory(
    model: ModelShape,
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    *,
    max_model_len: int,
    weight_dtype: str = "auto",
    kv_cache_dtype: str = "auto",
    mean_sequence_tokens: float | None = None,
    shared_prefix_tokens: int = 0,
    num_shared_prefixes: int = 1,
    draft_model: ModelShape | None = None,
    occupied_bytes: float = 0.0,
    printed: PrintedMemory | None = None,
    explain: bool = True,
) -> MemoryPlan:
    """Size the memory of the GPU that binds a replica.

    Parameters
    ----------
    model, gpu, engine, parallelism
        What serves, on what, how set and how spread; None among the settings = the engine decides.
    max_model_len : int
        Longest sequence to be served. [tokens]
    weight_dtype, kv_cache_dtype : str
        "auto" (weights as published, cache in 16 bits) or a name that planner.model knows.
    mean_sequence_tokens : float, optional
        Mean tokens of a running sequence, for how many fit at the traffic's lengths; None = max_model_len.
    shared_prefix_tokens, num_shared_prefixes : int
        Leading tokens that sequences have in common, held once with prefix caching, and how many such prompts.
    draft_model : ModelShape, optional
        Separate draft model, with its weights as published; tensor parallelism divides it as it does the model.
    occupied_bytes : float
        Memory of each GPU that other processes hold before the engine starts.
    printed : PrintedMemory, optional
        What this very deployment printed as it started; it replaces the estimate.
    explain : bool
        Whether to write formulas and, if the engine does not start, look for remedies. A search does without.

    Returns
    -------
    MemoryPlan
        Of the GPU that holds the fewest blocks.

    Raises
    ------
    InvalidInput
        When a length, a size or a type is not valid.
    """
    demand = Demand(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=parallelism,
        max_model_len=max_model_len,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_cache_type(model, engine, weight_dtype, kv_cache_dtype),
        draft_model=draft_model,
        occupied_bytes=occupied_bytes,
        printed=printed,
    )
    _check(demand, mean_sequence_tokens, shared_prefix_tokens, num_shared_prefixes)
    shared = shared_prefix_tokens if engine.enable_prefix_caching else 0
    return _planned(demand, mean_sequence_tokens or float(max_model_len), shared, num_shared_prefixes, explain)


def _check(demand: Demand, mean_tokens: float | None, shared_tokens: int, num_shared_prefixes: int) -> None:
    """Refuse lengths, sizes and types that are not valid, by the name of the field."""
    require_int("max_model_len", demand.max_model_len, at_most=10**9)
    require_int("shared_prefix_tokens", shared_tokens, at_least=0)
    require_int("num_shared_prefixes", num_shared_prefixes)
    require_number("occupied_bytes", demand.occupied_bytes, at_least=0)
    if mean_tokens is not None:
        require_number("mean_sequence_tokens", mean_tokens, above=0)
    if demand.kv_cache_dtype not in kv_dtype_names():
        raise InvalidInput("kv_cache_dtype", demand.kv_cache_dtype, "one of " + ", ".join(kv_dtype_names()))
    resolve_scheme(demand.model, demand.weight_dtype)  # refuses an unknown name


def _typical_use(
    demand: Demand,
    verdict: Verdict,
    usable_blocks: int,
    mean_tokens: float,
    shared_tokens: int,
    num_shared_prefixes: int,
) -> TypicalUse:
    """What running sequences of the traffic's mean length hold."""
    layout = verdict.rank.layout
    ahead = demand.engine.num_speculative_tokens  # slots for drafted tokens beyond the sequence's own
    typical = max(1, layout.blocks_in_decode(min(mean_tokens + ahead, demand.max_model_len)))
    whole_blocks = int(min(shared_tokens, mean_tokens)) // layout.main.block_tokens
    return TypicalUse(
        usable_blocks=usable_blocks,
        typical_blocks=typical,
        shared_blocks=min(typical - 1, whole_blocks),
        full_blocks=max(1, layout.blocks_in_decode(demand.max_model_len)),
        typical_tokens=min(mean_tokens, demand.max_model_len),
        max_model_len=demand.max_model_len,
        num_prompts=num_shared_prefixes,
    )


@contextmanager
def with_log_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Plan memory with other values of the constants of start-up logs while the block runs, for a fit."""
    _planned.cache_clear()
    with constants_in_force(values):
        yield
    _planned.cache_clear()


@lru_cache(maxsize=8192)
def _planned(
    demand: Demand, mean_tokens: float, shared_tokens: int, num_shared_prefixes: int, explain: bool
) -> MemoryPlan:
    verdict = start_verdict(demand)
    rank, resolved, layout = verdict.rank, verdict.resolved, verdict.rank.layout
    blocks = verdict.num_blocks if verdict.outcome != REFUSED_DIVISION else 0
    usable = max(0, blocks - 1) if resolved.edition.family == "vllm" else blocks  # vLLM keeps one as its null block
    printed, estimate = demand.printed, _estimate(demand)
    tokens = logged_kv_tokens(verdict, demand.max_model_len, demand.engine)
    tokens = tokens if printed is None else printed.kv_tokens or tokens
    use = _typical_use(demand, verdict, usable, mean_tokens, shared_tokens, num_shared_prefixes)
    spread = pool_range(demand, verdict)
    doubt, settled = start_doubt(demand, verdict, spread)
    told = explain and demand.printed is None  # a start-up log says what this budget takes, not what another would
    budget = budget_note(demand, verdict, tokens) if told else ""
    return MemoryPlan(
        total_bytes=visible_memory_bytes(demand.gpu),
        budget_bytes=rank.budget_bytes,
        weights_bytes=rank.weights_bytes,
        weights_by_group=rank.stage.weights_by_group,
        activation_bytes=rank.activation_bytes,
        non_torch_bytes=rank.non_torch_bytes,
        cuda_graph_bytes=rank.cuda_graph_bytes,
        cuda_graphs_in_budget=rank.graphs_in_budget,
        kv_pool_bytes=rank.pool_bytes,
        kv_bytes_per_token=layout.bytes_per_token / layout.context_parallel,
        num_kv_blocks=usable,
        block_size=layout.main.block_tokens * layout.context_parallel,
        fixed_blocks_per_sequence=layout.fixed_blocks(min(mean_tokens, demand.max_model_len)),
        kv_tokens=tokens,
        max_model_len=served_length(demand, verdict),
        max_num_seqs=sequences_at_once(verdict),
        max_num_batched_tokens=resolved.max_num_batched_tokens,
        gpu_memory_utilization=resolved.gpu_memory_utilization,
        max_concurrency=verdict.max_concurrency,
        typical_concurrency_paged=use.paged,
        typical_concurrency_reserved=use.reserved,
        longest_context_tokens=verdict.longest_context_tokens,
        held_length_tokens=verdict.held_length_tokens,
        starts=verdict.starts,
        refusal=verdict.refusal,
        outcome=verdict.outcome,
        remedies=remedies(dataclasses.replace(demand, printed=None), verdict) if explain else (),
        formulas=(*printed_formulas(formulas(demand, verdict, tokens), estimate), *use.formulas()) if explain else (),
        notes=tuple(filter(None, (doubt, *_notes(demand, verdict), budget, printed_note(estimate)))),
        estimated=estimate,
        weights_error=_weights_error(demand),
        kv_pool_error=_pool_error(spread),
        kv_pool_low_bytes=spread.low,
        kv_pool_high_bytes=spread.high,
        doubt=doubt,
        settled_by=settled,
        block_bytes=layout.block_bytes,
        logged_kv_blocks=blocks,
        blocks_per_sequence=verdict.blocks_per_sequence,
        occupied_bytes=0.0 if counts_others_as_own(resolved.edition) else demand.occupied_bytes,
        activations_in_budget=resolved.edition.family != "sglang",
        state_bytes=rank.states.total_bytes if rank.states else 0.0,
        offloaded_kv_tokens=offloaded_tokens(demand, verdict),
    )


def _weights_error(demand: Demand) -> float:
    """Relative error of the weights; none where the engine's log says them."""
    if demand.printed is not None and demand.printed.weights_bytes is not None:
        return 0.0
    return max(WEIGHTS_ERROR, unknown_share(demand.model))


def _estimate(demand: Demand) -> tuple[tuple[str, float, float], ...]:
    """(name of the part, printed, estimated) for what a log replaces, in bytes and tokens; empty without a log."""
    if demand.printed is None:
        return ()
    alone = dataclasses.replace(demand, printed=None)
    verdict = start_verdict(alone, find_longest=False)
    rank, tokens = verdict.rank, logged_kv_tokens(verdict, demand.max_model_len, demand.engine)
    estimates = (rank.weights_bytes, rank.activation_bytes, rank.cuda_graph_bytes, rank.pool_bytes, float(tokens))
    printed = dataclasses.astuple(demand.printed)
    return tuple(
        (name, float(value), estimate)
        for name, value, estimate in zip(PRINTED_PARTS, printed, estimates, strict=True)
        if value is not None
    )


def _pool_error(spread: PoolRange) -> float:
    """Relative half-width of the band on the pool."""
    return min(1.0, (spread.high - spread.low) / 2 / spread.pool) if spread.pool > 0 else 1.0


def sequences_at_once(verdict: Verdict) -> int:
    """Sequences that may run at once on one rank: max_num_seqs, or fewer where SGLang has fewer states."""
    limit, states = verdict.resolved.max_num_seqs, verdict.rank.states
    return min(limit, states.max_sequences) if states is not None and verdict.starts else limit


def counts_others_as_own(edition: Edition) -> bool:
    """Whether the engine counts memory of other processes as its own: vLLM before v0.9."""
    return edition.family == "vllm" and not edition.since(FREE_MEMORY_CHECK)


def offloaded_tokens(demand: Demand, verdict: Verdict) -> int:
    """Tokens that CPU offload keeps; the ranks share its bytes (vLLM kv_offloading_size)."""
    layout = verdict.rank.layout
    share = demand.engine.kv_offload_gib * GIB / demand.parallelism.gpus_per_replica
    return int(share / layout.bytes_per_token) * layout.context_parallel if layout.bytes_per_token else 0


def served_length(demand: Demand, verdict: Verdict) -> int:
    """Longest sequence that is served: with a small pool SGLang starts and rejects longer ones. [tokens]"""
    if verdict.starts and verdict.blocks_per_sequence > verdict.num_blocks:
        return max(1, verdict.longest_context_tokens)
    return demand.max_model_len


def _state_note(states: StatePool) -> str:
    """How many recurrent states SGLang keeps, and how many requests can run with them."""
    drafting = f", and {states.drafting_bytes / GIB:,.2f} GiB for drafted tokens" if states.drafting_bytes else ""
    return (
        f"SGLang keeps {states.slots:,} recurrent states of {states.slot_bytes / MIB:,.1f} MiB beside the KV cache"
        f"{drafting}: enough for {counted(states.max_sequences, 'request')} at once."
    )


def _ngram_note(demand: Demand) -> str:
    """Where the n-gram tables are, how large they are, and which setting moves them."""
    bits = weight_bits(demand.model, demand.weight_dtype, TensorGroup.NGRAM)
    size = f"The n-gram tables take {demand.model.ngram_parameters * bits / 8 / GIB:,.1f} GiB"
    if not holds_ngrams(demand) and demand.gpu.unified_memory:
        return f"{size} in a mapped file; its loaded pages take memory that CPU and GPU share."
    if not holds_ngrams(demand):
        return f"{size} of host memory, none of the GPU's. The setting N-gram tables moves them to the GPUs."
    tp = demand.parallelism.tensor_parallel_size
    divided = f", divided over {tp} GPUs" if tp > 1 else ""
    shared = " shared with the CPU" if demand.gpu.unified_memory else ""
    return f"{size} of GPU memory{shared}{divided}. The setting N-gram tables moves them to host memory."


def _notes(demand: Demand, verdict: Verdict) -> tuple[str, ...]:
    notes = [f"Estimated: {field}." for field in demand.model.estimated_fields]
    native = demand.model.max_position_embeddings
    if demand.max_model_len > native and demand.model.extended_context:
        notes.append(f"Contexts above {native:,} tokens need RoPE scaling (YaRN), as the model card describes.")
    if demand.model.ngram_parameters:
        notes.append(_ngram_note(demand))
    tower, family = demand.model.vision_tower, verdict.resolved.edition.family
    if tower is not None and tower.videos_as_images and family == "vllm":
        images = profiled_images(demand.model, verdict.resolved, demand.max_model_len)
        if images > 1:
            notes.append(
                f"vLLM reserves memory for a video as large as {images} images. A shorter context needs less; the "
                "setting Images and video can leave videos out."
            )
    if verdict.rank.states is not None:
        notes.append(_state_note(verdict.rank.states))
    if demand.model.kv_cache_quantization and demand.kv_cache_dtype == demand.model.kv_cache_quantization:
        notes.append(f"The KV cache is in {demand.kv_cache_dtype}, the type that the checkpoint is calibrated for.")
    if demand.parallelism.pipeline_parallel_size > 1:
        notes.append("Pipeline stages differ; the figures are for the stage with the fewest KV blocks.")
    served = served_length(demand, verdict)
    if served < demand.max_model_len:
        notes.append(
            f"The KV cache holds {served:,} tokens, less than max_model_len ({demand.max_model_len:,}): "
            "the engine starts, but rejects longer requests."
        )
    if demand.engine.kv_offload_gib:
        notes.append(
            f"CPU memory keeps {offloaded_tokens(demand, verdict):,} more tokens for reuse; "
            "running sequences need their cache on the GPU."
        )
    if demand.parallelism.attention_data_parallel_size > 1:
        notes.append("Each data-parallel rank has its own KV cache; the figures are per rank.")
    return tuple(notes)
