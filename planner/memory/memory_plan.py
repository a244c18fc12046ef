"""The memory of one GPU after the engine has started: the value object that `planner.memory` fills."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import Limits
from planner.units import GIB

SHORT_BYTES = 0.005 * GIB  # less is not told apart from none


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """One figure with its derivation, so that every number can be opened.

    `expression` in symbols, `substituted` with the values of this plan, `value` in `unit`.
    """

    name: str
    expression: str
    substituted: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory per GPU (worst rank) of one replica, as the engine's start-up log would print it.

    All `*_bytes` are per GPU. `budget_bytes` is what the engine sets aside for weights, KV cache, activations and
    runtime together: vLLM utilisation × total; TensorRT-LLM and TGI all of the GPU, of which a share of what is
    left becomes cache; llama.cpp what other processes leave. SGLang's static fraction holds weights and cache
    alone, and activations, runtime and graphs run in the remainder: then not `activations_in_budget`.
    `cuda_graph_bytes` is subtracted from the budget only when `cuda_graphs_in_budget` (vLLM ≥ 0.21), so that
    `free_bytes` of an engine that starts can be negative: it then runs out of memory when a full step meets them.
    `kv_tokens` is what the engine's log calls KV cache size, `pool_tokens` = num_kv_blocks × block_size.
    `kv_bytes_per_token` is the marginal cost of one more token of one sequence within its window,
    `kv_bytes_for(length)` is on `planner.memory`. `relative_error` are the bands from validation.
    """

    total_bytes: float
    budget_bytes: float
    weights_bytes: float
    weights_by_group: tuple[tuple[str, float], ...]
    activation_bytes: float
    non_torch_bytes: float
    cuda_graph_bytes: float
    cuda_graphs_in_budget: bool
    kv_pool_bytes: float
    kv_bytes_per_token: float
    num_kv_blocks: int
    block_size: int
    fixed_blocks_per_sequence: int
    kv_tokens: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    max_concurrency: float  # sequences of max_model_len that fit at once
    typical_concurrency_paged: float  # sequences at the traffic's lengths, holding what they wrote
    typical_concurrency_reserved: float  # the same when each reserves max_model_len
    longest_context_tokens: int  # longest max_model_len with which the engine starts
    held_length_tokens: int  # longest sequence that the pool as it stands holds; a refusal names it
    starts: bool
    refusal: str  # the engine's reason in its own terms, "" when it starts
    outcome: str  # started, refused_max_len_exceeds_kv, refused_no_cache_blocks, refused_mamba_blocks, ...
    remedies: tuple[str, ...]  # smallest changes that make it start, most likely first
    formulas: tuple[Formula, ...]
    notes: tuple[str, ...] = ()  # estimates and assumptions, visibly marked
    weights_error: float = 0.0  # relative half-width of the band on weights
    kv_pool_error: float = 0.0
    block_bytes: float = 0.0  # of one KV block on one GPU
    logged_kv_blocks: int = 0  # as the log prints them: with the null block that no sequence may use
    blocks_per_sequence: int = 0  # of a sequence of max_model_len, as the start-up check counts them
    occupied_bytes: float = 0.0  # held by other processes, where it is not counted as the runtime's
    activations_in_budget: bool = True  # False: the budget holds weights and cache alone (SGLang)
    state_bytes: float = 0.0  # SGLang: states of hybrids, which have a pool of their own
    offloaded_kv_tokens: int = 0  # more tokens that CPU offload keeps for reuse; running sequences cannot use it

    @property
    def free_bytes(self) -> float:
        """What is left of the GPU beside weights, activations, runtime, graphs, KV pool, states and other processes."""
        used = self.weights_bytes + self.activation_bytes + self.non_torch_bytes + self.cuda_graph_bytes
        return self.total_bytes - used - self.state_bytes - max(0.0, self.kv_pool_bytes) - self.occupied_bytes

    @property
    def is_short(self) -> bool:
        """Whether the engine starts although a full step needs more than there is, by more than rounding."""
        return self.starts and self.free_bytes < -SHORT_BYTES

    def limits(self) -> Limits:
        """The capacity as the scheduler sees it."""
        return Limits(
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            num_kv_blocks=self.num_kv_blocks,
            block_size=self.block_size,
            fixed_blocks_per_sequence=self.fixed_blocks_per_sequence,
        )
