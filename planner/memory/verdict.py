"""Whether an engine starts, the longest context that it starts with, and the KV cache size in its log."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.inputs import EngineSettings
from planner.memory.checks import division_error
from planner.memory.defaults import V0_CHUNKED_PREFILL_FROM_TOKENS, Resolved
from planner.memory.demand import Demand, limits_of
from planner.memory.edition import (
    FREE_MEMORY_CHECK,
    PIPELINE_CHECK_OF_WHOLE_MODEL,
    SAMPLER_AT_END,
    SECOND_RUNNER_SAMPLES,
    WHOLE_IMAGES,
    runs_second_runner,
)
from planner.memory.held_weights import holds_ngrams
from planner.memory.loading import repacked_bytes
from planner.memory.precision import precision_error
from planner.memory.printed import logs_concurrency
from planner.memory.ranks import Rank, activation_of, all_ranks, binding_rank, reserved_contexts, reserved_pool
from planner.memory.runtime import bytes_per_logit, visible_memory_bytes
from planner.model import TensorGroup, resolve_scheme, weight_bits
from planner.units import GIB

STARTED = "started"
REFUSED_LENGTH = "refused_max_len_exceeds_kv"
REFUSED_NO_BLOCKS = "refused_no_cache_blocks"
REFUSED_STATES = "refused_mamba_blocks"
REFUSED_STATE_CACHE = "refused_state_cache"
REFUSED_STEP = "refused_step_smaller_than_image"
REFUSED_DIVISION = "refused_parallelism"
REFUSED_PRECISION = "refused_precision"
REFUSED_FREE_MEMORY = "refused_free_memory"
OOM = "oom_at_startup"
OOM_CAPTURE = "oom_at_graph_capture"
OOM_HOST = "oom_host_memory"
OOM_SAMPLER = "oom_at_sampler_warmup"
PARTLY_ON_CPU = "started_partly_on_cpu"
#: SGLang starts and rejects requests that do not fit; TensorRT-LLM reduces max_seq_len to what its cache holds
STARTS_SHORT = ("sglang", "trtllm")
RAISES_AT_CAPTURE = ("vllm", "sglang")  # the others log it or profile again, and serve without graphs
STATE_CHECK_SINCE = (0, 20)  # vLLM raises when max_num_seqs exceeds the state blocks (#38270); 0.19 captured fewer
ERROR_BYTES = 0.25 * GIB  # error of runtime and graphs together: a smaller shortfall decides nothing
FRAMEWORK_FREE_BYTES = 0.35 * GIB  # driver and context: weights cannot use it


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome for the GPU that binds."""

    rank: Rank
    resolved: Resolved
    num_blocks: int
    blocks_per_sequence: int  # as the concurrency in the log counts them
    longest_context_tokens: int
    held_length_tokens: int  # longest sequence in the pool as it is; the refusal names it
    outcome: str
    refusal: str

    @property
    def starts(self) -> bool:
        """Whether the engine starts."""
        return self.outcome == STARTED

    @property
    def max_concurrency(self) -> float:
        """Sequences of the full length that fit at once."""
        return self.num_blocks / self.blocks_per_sequence if self.blocks_per_sequence else 0.0


def start_verdict(demand: Demand, *, find_longest: bool = True) -> Verdict:
    """Decide whether the engine starts.

    Parameters
    ----------
    demand : Demand
        Model, GPU, engine, parallelism and lengths.
    find_longest : bool
        Whether to search for the longest contexts; without it they are 0.

    Returns
    -------
    Verdict
        Of the GPU that holds the fewest blocks.
    """
    resolved = limits_of(demand)
    rank = binding_rank(all_ranks(demand, resolved))
    counted = rank.layout.counted_blocks(demand.max_model_len, resolved.in_flight_tokens)
    blocks = rank.num_blocks
    held = held_length(demand, resolved, rank) if find_longest else 0
    longest = longest_context(demand, resolved, held) if find_longest else 0
    outcome, refusal = _outcome(demand, resolved, rank, blocks, held)
    return Verdict(
        rank=rank,
        resolved=resolved,
        num_blocks=blocks,
        blocks_per_sequence=counted,
        longest_context_tokens=longest,
        held_length_tokens=held,
        outcome=outcome,
        refusal=refusal,
    )


def checked_blocks(demand: Demand, resolved: Resolved, rank: Rank, length: int) -> int:
    """Blocks that the start-up check needs; vLLM 0.14 compared those of all pipeline stages with one stage's memory."""
    needed = rank.layout.blocks_at_peak(length, resolved.in_flight_tokens)
    edition = resolved.edition
    if edition.family == "vllm" and edition.number == PIPELINE_CHECK_OF_WHOLE_MODEL:
        own = sum(count for _, count in rank.stage.layers)
        return math.ceil(needed * demand.model.num_layers / own)
    return needed


def needed_bytes(demand: Demand, verdict: Verdict) -> float:
    """KV pool with which the engine starts: for one sequence of max_model_len, and a state block for each sequence.

    SGLang and TensorRT-LLM start with any pool. [bytes per GPU]
    """
    rank, resolved = verdict.rank, verdict.resolved
    if resolved.edition.family in STARTS_SHORT:
        return rank.layout.block_bytes
    blocks = checked_blocks(demand, resolved, rank, demand.max_model_len)
    needed = blocks * (rank.layout.checked_block_bytes or rank.layout.block_bytes)
    if checks_states(demand, resolved, rank):
        needed = max(needed, resolved.max_num_seqs * rank.layout.block_bytes)
    return needed


def checks_states(demand: Demand, resolved: Resolved, rank: Rank) -> bool:
    """Whether the engine refuses when max_num_seqs exceeds the blocks that hold states."""
    edition = resolved.edition
    states = rank.layout.has_states and edition.family == "vllm" and edition.since(STATE_CHECK_SINCE)
    return states and demand.engine.cuda_graphs


def host_bytes(demand: Demand, rank: Rank, free: float) -> float:
    """Host memory of a replica: offloaded KV blocks, n-gram tables, and what llama.cpp leaves on the CPU. [bytes]"""
    needed = demand.engine.kv_offload_gib * GIB
    if demand.model.ngram_parameters and not holds_ngrams(demand):
        bits = weight_bits(demand.model, demand.weight_dtype, TensorGroup.NGRAM)
        needed += demand.model.ngram_parameters * bits / 8
    if demand.engine.family == "llamacpp":
        used = rank.weights_bytes + rank.pool_bytes + rank.activation_bytes + rank.non_torch_bytes
        needed += max(0.0, used - free)
    return needed


def layers_on_gpu(demand: Demand, rank: Rank, total: float) -> int:
    """Layers, with their weights and cache, that llama.cpp puts on the GPU when not all of them fit."""
    free = total - rank.activation_bytes - rank.non_torch_bytes
    per_layer = (rank.weights_bytes + rank.pool_bytes) / (demand.model.num_layers + 1)  # the head counts as one
    return max(0, min(demand.model.num_layers, math.floor(free / per_layer)))


def _before_loading(demand: Demand, resolved: Resolved, rank: Rank, total: float) -> tuple[str, str]:
    """What an engine refuses before it loads weights: parallelism, too small a step, memory that others hold."""
    edition = resolved.edition
    error = division_error(demand.model, demand.parallelism, demand.weight_dtype, edition.family)
    if error:
        return REFUSED_DIVISION, error
    error = precision_error(demand.model, demand.engine, demand.gpu, demand.weight_dtype, demand.kv_cache_dtype)
    if error:
        return REFUSED_PRECISION, error
    image, tokens = demand.model.image_tokens, resolved.max_num_batched_tokens
    if edition.family == "vllm" and edition.since(WHOLE_IMAGES) and not edition.is_v0 and image > tokens:
        return REFUSED_STEP, (
            f"Chunked MM input disabled but max_tokens_per_mm_item ({image}) is larger than max_num_batched_tokens "
            f"({tokens}). Please increase max_num_batched_tokens."
        )
    free, wanted = total - demand.occupied_bytes, rank.budget_bytes
    checks = edition.family == "vllm" and edition.since(FREE_MEMORY_CHECK) and not edition.is_v0
    if checks and demand.occupied_bytes and free < wanted:
        return REFUSED_FREE_MEMORY, (
            f"Free memory on device ({free / GIB:.2f}/{total / GIB:.2f} GiB) on startup is less than desired GPU "
            f"memory utilization ({resolved.gpu_memory_utilization:g}, {wanted / GIB:.2f} GiB)."
        )
    return STARTED, ""


def _outcome(demand: Demand, resolved: Resolved, rank: Rank, blocks: int, held: int) -> tuple[str, str]:
    if demand.printed is not None and demand.printed.kv_tokens:
        return STARTED, ""  # engines print the size of the cache once it is there
    family = resolved.edition.family
    total = visible_memory_bytes(demand.gpu)
    outcome, reason = _before_loading(demand, resolved, rank, total)
    if reason:
        return outcome, reason
    host = host_bytes(demand, rank, max(0.0, total - demand.occupied_bytes))
    if demand.engine.host_memory_gib is not None and host > demand.engine.host_memory_gib * GIB:
        return OOM_HOST, (
            f"Host memory: {host / GIB:.1f} GiB are needed for what the GPUs do not hold, and there are "
            f"{demand.engine.host_memory_gib:g} GiB."
        )
    needed = checked_blocks(demand, resolved, rank, demand.max_model_len)
    total = max(0.0, total - demand.occupied_bytes)
    if family == "llamacpp":
        used = rank.weights_bytes + rank.pool_bytes + rank.activation_bytes + rank.non_torch_bytes
        if used > total:
            return PARTLY_ON_CPU, (
                f"The model needs {used / GIB:.1f} GiB and the GPU has {total / GIB:.1f} GiB: "
                f"{layers_on_gpu(demand, rank, total)} of {demand.model.num_layers} layers run on the GPU, "
                "the others on the CPU."
            )
        return STARTED, ""
    outcome, reason = _while_loading(demand, resolved, rank, total)
    if reason:
        return outcome, reason
    if blocks <= 0:
        return REFUSED_NO_BLOCKS, (
            "No available memory for the cache blocks: "
            f"{rank.pool_bytes / GIB:.2f} GiB remain of {rank.budget_bytes / GIB:.2f} GiB after "
            f"{_before_the_cache(rank, family, demand.occupied_bytes)}. Try increasing `gpu_memory_utilization`."
        )
    fits = needed <= rank.layout.fitting_blocks(rank.pool_bytes)
    if not fits and family not in STARTS_SHORT:
        return REFUSED_LENGTH, _too_long(demand, resolved, rank, needed, held)
    if rank.states is not None and not rank.states.max_sequences:
        return REFUSED_STATE_CACHE, "Hybrid (mamba/linear-attention) state cache is too small to serve any requests."
    if checks_states(demand, resolved, rank) and resolved.max_num_seqs > blocks:
        return REFUSED_STATES, (
            f"max_num_seqs ({resolved.max_num_seqs}) exceeds available Mamba cache blocks ({blocks})."
        )
    return _after_the_pool(demand, resolved, rank, total)


def _while_loading(demand: Demand, resolved: Resolved, rank: Rank, total: float) -> tuple[str, str]:
    """Whether the weights fit, and beside them the copy that repacking one module makes."""
    room = total - FRAMEWORK_FREE_BYTES - rank.weights_bytes
    if room < 0:
        return OOM, (
            f"torch.OutOfMemoryError: CUDA out of memory: {rank.weights_bytes / GIB:.1f} GiB of weights "
            f"for {total / GIB:.1f} GiB."
        )
    copy = repacked_bytes(
        demand.model, rank.stage.layers, demand.weight_dtype, demand.gpu, demand.parallelism, resolved.edition
    )
    if copy > room:
        return OOM, (
            "torch.OutOfMemoryError: CUDA out of memory while weights are repacked for Marlin: a copy of "
            f"{copy / GIB:.2f} GiB beside {rank.weights_bytes / GIB:.1f} GiB of weights, for {total / GIB:.1f} GiB."
        )
    return STARTED, ""


def _too_long(demand: Demand, resolved: Resolved, rank: Rank, needed: int, held: int) -> str:
    """The refusal in vLLM's words (V0: worker.py raise_if_cache_size_invalid; V1: kv_cache_utils.py)."""
    advice = "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    if resolved.edition.is_v0:
        return (
            f"The model's max seq len ({demand.max_model_len}) is larger than the maximum number of tokens that can be "
            f"stored in KV cache ({held}). {advice}"
        )
    need = needed * (rank.layout.checked_block_bytes or rank.layout.block_bytes) / GIB
    estimate = f"Based on the available memory, the estimated maximum model length is {held}. " if held else ""
    return (
        f"To serve at least one request with the model's max seq len ({demand.max_model_len}), "
        f"{need:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({rank.pool_bytes / GIB:.2f} GiB). {estimate}{advice}"
    )


def _before_the_cache(rank: Rank, family: str, occupied_bytes: float) -> str:
    """What the budget holds besides the KV cache, in GiB; together with the pool it adds up to the budget."""
    parts = [(rank.weights_bytes, "weights")]
    if rank.states:
        parts.append((rank.states.total_bytes, "states"))
    if family in ("vllm", "generic"):
        other = rank.non_torch_bytes + (rank.cuda_graph_bytes if rank.graphs_in_budget else 0.0)
        named = "runtime and CUDA graphs" if rank.graphs_in_budget else "runtime"
        parts += [(rank.activation_bytes, "activations"), (other, named)]
    if family == "generic" and occupied_bytes:
        parts.append((occupied_bytes, "other processes"))
    *first, last = [f"{size / GIB:.2f} GiB of {name}" for size, name in parts]
    return f"{', '.join(first)} and {last}" if first else last


def _after_the_pool(demand: Demand, resolved: Resolved, rank: Rank, free: float) -> tuple[str, str]:
    """Whether what follows the cache fits beside weights, cache and runtime: the CUDA graphs, then the sampler.

    The profile run's activations are free by then. vLLM's first runner warms the sampler once more after the graphs, as
    large as in the profile run (gpu_model_runner.py `_dummy_sampler_run`).
    """
    family, graphs = resolved.edition.family, rank.cuda_graph_bytes
    room = free - rank.weights_bytes - rank.pool_bytes - rank.non_torch_bytes
    if family in RAISES_AT_CAPTURE and graphs > max(0.0, room):
        return OOM_CAPTURE, (
            "torch.OutOfMemoryError: CUDA out of memory while capturing CUDA graphs: "
            f"{graphs / GIB:.2f} GiB are needed, {max(0.0, room) / GIB:.2f} of {free / GIB:.2f} GiB are free."
        )
    rows = min(resolved.max_num_seqs, resolved.max_num_batched_tokens)
    if _warms_sampler_unseen(demand, resolved, rank):
        per_logit = bytes_per_logit(resolved.edition, drafts=False, second_runner=False)
        if per_logit * rows * demand.model.vocab_size > room + ERROR_BYTES:
            return OOM_SAMPLER, (
                f"torch.OutOfMemoryError: CUDA out of memory while warming up the sampler with {rows} requests. Lower "
                "`max_num_seqs` or `gpu_memory_utilization`."
            )
    sampler = _sampler_bytes(demand, resolved, rank, rows) if _warms_sampler_last(demand, resolved, rank) else 0.0
    if graphs + sampler > room + ERROR_BYTES and sampler:
        return OOM_SAMPLER, (
            f"CUDA out of memory occurred when warming up sampler with {rows} dummy requests. Please try lowering "
            "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
        )
    return STARTED, ""


def _warms_sampler_last(demand: Demand, resolved: Resolved, rank: Rank) -> bool:
    edition = resolved.edition
    if edition.family != "vllm" or edition.is_v0 or not edition.since(SAMPLER_AT_END) or not rank.stage.is_last:
        return False
    quantized = not resolve_scheme(demand.model, demand.weight_dtype).is_native
    return not runs_second_runner(edition, demand.model, quantized=quantized)


def _warms_sampler_unseen(demand: Demand, resolved: Resolved, rank: Rank) -> bool:
    """Whether sampling with all parameters first runs after the pool: vLLM's second runner until it profiled that."""
    if resolved.edition.since(SECOND_RUNNER_SAMPLES) or not rank.stage.is_last:
        return False
    quantized = not resolve_scheme(demand.model, demand.weight_dtype).is_native
    return runs_second_runner(resolved.edition, demand.model, quantized=quantized)


def _sampler_bytes(demand: Demand, resolved: Resolved, rank: Rank, rows: int) -> float:
    return activation_of(demand, resolved, rank.stage).bytes_per_logit * rows * demand.model.vocab_size


def held_length(demand: Demand, resolved: Resolved, rank: Rank) -> int:
    """Longest sequence that fits into the pool as it is, by bisection. [tokens].

    Source: vLLM kv_cache_utils.py estimate_max_model_len.
    """
    if resolved.edition.family == "llamacpp":
        free = rank.budget_bytes - rank.weights_bytes - rank.activation_bytes - rank.non_torch_bytes
        return _longest(demand, lambda length: reserved_pool(demand, resolved, rank.stage, length) <= free)
    blocks = rank.layout.fitting_blocks(rank.pool_bytes)
    return _longest(demand, lambda length: checked_blocks(demand, resolved, rank, length) <= blocks)


def longest_context(demand: Demand, resolved: Resolved, held: int) -> int:
    """Longest max_model_len with which the engine starts. [tokens].

    Usually what the pool holds. Where the activation peak grows with the length (prompts in one step, videos), the pool
    shrinks, and each length is judged with its own pool.
    """
    if resolved.edition.family == "llamacpp":
        return held
    if resolved.edition.is_v0:
        # Above this length prefill is chunked: longer contexts may start where shorter ones do not.
        return _longest(demand, lambda length: _fits_at(demand, length), above=V0_CHUNKED_PREFILL_FROM_TOKENS)
    tower = demand.model.vision_tower
    longer_videos = tower is not None and tower.videos_as_images
    if not demand.engine.enable_chunked_prefill or longer_videos:
        return _longest(demand, lambda length: _fits_at(demand, length))
    return held


def shorter_context(demand: Demand, verdict: Verdict) -> int:
    """Longest max_model_len that the engine starts with, below the one that it refused. [tokens]."""
    longest, asked = verdict.longest_context_tokens, demand.max_model_len
    if longest < asked or verdict.outcome != REFUSED_LENGTH:
        return longest
    return largest_that_fits(lambda length: _fits_at(demand, length), 0, asked)


def _longest(demand: Demand, fits: Callable[[int], bool], above: int = 0) -> int:
    """Bisect for the longest length that fits: above the bound if any fits there, else below it."""
    low, high = 0, max(demand.model.longest_context, demand.max_model_len)
    if above and high > above:
        low, high = (above, high) if fits(above + 1) else (0, above)
    return high if fits(high) else largest_that_fits(fits, low, high)


def largest_that_fits(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Largest number below `high` that fits, by bisection, where `low` does and `high` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits_at(demand: Demand, length: int) -> bool:
    other = dataclasses.replace(demand, max_model_len=length)
    resolved = limits_of(other)
    rank = binding_rank(all_ranks(other, resolved))
    return checked_blocks(other, resolved, rank, length) <= rank.layout.fitting_blocks(rank.pool_bytes)


def logged_kv_tokens(verdict: Verdict, max_model_len: int, engine: EngineSettings) -> int:
    """KV cache size in the engine's log. [tokens]

    Since v0.20.2 vLLM prints concurrency × max_model_len; before, blocks ÷ groups × block size, too little for hybrid
    models. Decode context parallelism multiplies both. llama.cpp: slots × context, or one context that all share.
    """
    layout, edition = verdict.rank.layout, verdict.resolved.edition
    if edition.family == "llamacpp":
        return reserved_contexts(engine, verdict.resolved) * max_model_len
    if logs_concurrency(verdict.resolved):
        return int(verdict.max_concurrency * max_model_len)
    smallest = min(group.block_tokens for group in layout.groups)
    return verdict.num_blocks // layout.num_groups * smallest * layout.context_parallel
