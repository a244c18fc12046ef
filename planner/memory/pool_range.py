"""How much the KV pool of the same command varies between starts, and whether that leaves the start in doubt.

A start measures part of what it subtracts: activations depend on whether kernels are compiled in it, the estimate of
CUDA graphs on two captures, and where CPU and GPU share memory, on what the system holds at that moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.memory.cuda_graphs import captured_sizes
from planner.memory.demand import Demand
from planner.memory.memory_plan import Remedy
from planner.memory.ranks import Rank
from planner.memory.sparse_workspace import mega_experts_bytes
from planner.memory.verdict import (
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_STATES,
    Verdict,
    checked_blocks,
    checks_states,
    largest_that_fits,
    needed_bytes,
)
from planner.model import ModelShape
from planner.units import GIB

#: other engines and vLLM's first core: from start-up logs
KV_POOL_ERROR = 0.1
KV_POOL_LEAST_ERROR_BYTES = 1.0 * GIB
WEIGHTS_SHARE = 0.01
#: of weights whose architecture is not known and taken as Llama-like: read so, 327 configs of the catalog give their
#: true total within 0.003 % in three of four and within 9 % in nine of ten; 116 more are refused
UNKNOWN_ARCHITECTURE_SHARE = 0.09
#: kernels of DeepSeek-V4 with a workspace: three logs lie up to this far from the constants (memory_constants.csv)
COMPRESSED_WORKSPACE_BYTES = 4.0 * GIB
ACTIVATION_SHARE = 0.1
RUNTIME_BYTES = 0.25 * GIB
COLLECTIVES_SHARE = 0.1
#: a start that compiles keeps autotuning buffers in its peak: 0.6 to 1.2 GiB in pairs of starts (vLLM #54122, #54383)
COLD_COMPILE_BYTES = 1.2 * GIB
#: vLLM's estimate ÷ ours: 0.7 to 2.05 in 35 logs of vLLM 0.19 (H100), 2.8 for experts over two GB10
GRAPHS_LOW, GRAPHS_HIGH, GRAPHS_HIGH_EXPERTS = 0.5, 2.1, 3.0
#: experts over data-parallel ranks: 62 GiB with 51 captured sizes (#45178) and 119 GiB with 83 (#53013)
GRAPH_BYTES_PER_SIZE_OVER_RANKS = 1.4 * GIB
#: unified memory: 0 to 13 GiB of the system count as used, 6 are assumed
HOST_LOW_BYTES, HOST_HIGH_BYTES = 7.0 * GIB, 6.0 * GIB
CONTEXT_STEP = 1024  # tokens, to which a context that settles a doubt is rounded down
GRAPHS, COMPILING, HOST, OTHER = "graphs", "compiling", "host", "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRange:
    """How much smaller and larger than planned the pool may be, by cause. [bytes per GPU].

    The causes of a smaller pool are independent and their squares add up; but what the system holds where CPU and GPU
    share memory is a condition of the machine, which comes on top.
    """

    pool: float
    smaller: tuple[tuple[str, float], ...]
    larger: float

    @property
    def low(self) -> float:
        """Smallest pool."""
        if self.pool <= 0:
            return self.pool
        host = sum(size for cause, size in self.smaller if cause == HOST)
        others = math.hypot(*(size for cause, size in self.smaller if cause != HOST))
        return max(0.0, self.pool - host - others)

    @property
    def high(self) -> float:
        """Largest pool."""
        return self.pool + self.larger


def pool_range(demand: Demand, verdict: Verdict) -> PoolRange:
    """Range of the KV pool on the GPU that binds.

    Parameters
    ----------
    demand : Demand
        The deployment.
    verdict : Verdict
        Its figures.

    Returns
    -------
    PoolRange
        Of zero width for llama.cpp, which reserves a computed size, where the user caps the tokens, and where the
        engine's own log says it.
    """
    rank, edition = verdict.rank, verdict.resolved.edition
    pool = rank.pool_bytes
    told = demand.printed is not None and (demand.printed.kv_pool_bytes or demand.printed.kv_tokens)
    if edition.family == "llamacpp" or rank.is_capped or told:
        return PoolRange(pool=pool, smaller=(), larger=0.0)
    host_low = HOST_LOW_BYTES if demand.gpu.unified_memory else 0.0
    host_high = HOST_HIGH_BYTES if demand.gpu.unified_memory else 0.0
    unknown = unknown_share(demand.model) * rank.weights_bytes
    if edition.family != "vllm" or edition.is_v0:
        least = max(KV_POOL_ERROR * pool, KV_POOL_LEAST_ERROR_BYTES) + unknown
        return PoolRange(
            pool=pool, smaller=((OTHER, least + host_low),), larger=least + host_high + rank.page_cache_bytes
        )
    noise = WEIGHTS_SHARE * rank.weights_bytes + ACTIVATION_SHARE * rank.activation_bytes
    noise += RUNTIME_BYTES + COLLECTIVES_SHARE * min(rank.non_torch_bytes, 3 * GIB) + unknown
    if mega_experts_bytes(rank.stage.layers, demand.gpu, demand.parallelism, verdict.resolved):
        noise += COMPRESSED_WORKSPACE_BYTES
    fewer, more = _graph_bounds(demand, rank, verdict) if rank.graphs_in_budget else (0.0, 0.0)
    compiling = COLD_COMPILE_BYTES if demand.engine.cuda_graphs else 0.0
    causes = ((GRAPHS, more), (COMPILING, compiling + noise), (HOST, host_low))
    return PoolRange(pool=pool, smaller=causes, larger=noise + fewer + host_high)


def unknown_share(model: ModelShape) -> float:
    """Share of the weights that may be wrong because the architecture is not known; 0 where it is."""
    return 0.0 if model.architecture_is_known else UNKNOWN_ARCHITECTURE_SHARE


def _graph_bounds(demand: Demand, rank: Rank, verdict: Verdict) -> tuple[float, float]:
    """How far the engine's estimate may lie below and above ours. [bytes]"""
    graphs, model, split = rank.cuda_graph_bytes, demand.model, demand.parallelism
    most = (GRAPHS_HIGH_EXPERTS if model.is_moe else GRAPHS_HIGH) * graphs
    if model.is_moe and split.expert_parallel and split.attention_data_parallel_size > 1:
        sizes = captured_sizes(demand.engine, demand.gpu, split, verdict.resolved.max_num_seqs)
        most = max(most, GRAPH_BYTES_PER_SIZE_OVER_RANKS * len(sizes))
    return (1 - GRAPHS_LOW) * graphs, most - graphs


def start_doubt(demand: Demand, verdict: Verdict, spread: PoolRange) -> tuple[str, Remedy | None]:
    """What decides between a start and a refusal where the range holds both, and the setting that settles it.

    Parameters
    ----------
    demand : Demand
        The deployment.
    verdict : Verdict
        With the pool as planned.
    spread : PoolRange
        Its range.

    Returns
    -------
    str, Remedy or None
        Two or three sentences, "" where there is no doubt; the change with which the smallest pool starts, too.
    """
    needed = needed_bytes(demand, verdict)
    refused = verdict.outcome in (REFUSED_LENGTH, REFUSED_NO_BLOCKS, REFUSED_STATES)
    if verdict.starts and spread.low < needed <= spread.pool:
        text = _may_refuse(verdict.rank, spread, spread.pool - needed)
    elif refused and spread.pool < needed <= spread.high:
        text = (
            f"Refuses by {(needed - spread.pool) / GIB:,.2f} GiB, less than the KV pool differs between starts "
            f"(up to {spread.high / GIB:,.2f} GiB): it may start."
        )
    else:
        return "", None
    settled = _settled_by(demand, verdict, spread)
    return f"{text} It starts in any case with {settled}." if settled else text, settled


def _settled_by(demand: Demand, verdict: Verdict, spread: PoolRange) -> Remedy | None:
    """Fewer sequences or a shorter context, whichever the smallest pool needs; None where it needs both."""
    rank, resolved = verdict.rank, verdict.resolved
    blocks, asked = rank.layout.fitting_blocks(spread.low), demand.max_model_len

    def fits(length: int) -> bool:
        return checked_blocks(demand, resolved, rank, length) <= blocks

    sequences = int(spread.low / rank.layout.block_bytes) // 8 * 8
    too_many = checks_states(demand, resolved, rank) and sequences < resolved.max_num_seqs
    if fits(asked):
        return Remedy(f"max_num_seqs {sequences:,}", max_num_seqs=sequences) if too_many and sequences else None
    length = largest_that_fits(fits, 0, asked) // CONTEXT_STEP * CONTEXT_STEP
    return Remedy(f"max_model_len {length:,}", max_model_len=length) if length and not too_many else None


def _may_refuse(rank: Rank, spread: PoolRange, margin: float) -> str:
    """The first cause that alone uses up the margin, else all of them."""
    causes = dict(spread.smaller)
    if causes.get(GRAPHS, 0.0) > margin:
        most = (rank.cuda_graph_bytes + margin) / GIB
        return (
            f"Starts; refuses if vLLM's estimate of its CUDA graphs is above {most:,.1f} GiB. A smaller "
            "--max-cudagraph-capture-size lowers the estimate; VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 omits it."
        )
    if causes.get(HOST, 0.0):
        more = "that much more" if causes[HOST] > margin else "several GiB more"
        return (
            f"Starts with {margin / GIB:,.2f} GiB of KV pool to spare, and refuses where the system holds {more}: "
            "CPU and GPU share memory. --kv-cache-memory-bytes sets the pool whatever the system holds."
        )
    if causes.get(COMPILING, 0.0) > margin:
        return (
            f"Starts with {margin / GIB:,.2f} GiB of KV pool to spare. A first start, which compiles, needs up to "
            f"{COLD_COMPILE_BYTES / GIB:,.1f} GiB more and may refuse; a second start finds the compiled kernels."
        )
    return (
        f"Starts with {margin / GIB:,.2f} GiB of KV pool to spare, less than it differs between starts: it may refuse."
    )
