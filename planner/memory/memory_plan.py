"""The memory of one GPU after the engine has started: the value object that `plan_memory` returns."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import Limits
from planner.units import GIB

SHORT_BYTES = 0.005 * GIB  # counts as rounding


class Remedy(str):
    """A change that makes an engine start, in words; `changes` are the settings to change, by the Scenario's names.

    Without changes it is nothing that a setting can do.
    """

    changes: dict[str, object]

    def __new__(cls, text: str, **changes: object) -> Remedy:
        """The text with its changes."""
        made = super().__new__(cls, text)
        made.changes = changes
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A figure with its derivation: `expression` in symbols, `substituted` with this plan's values."""

    name: str
    expression: str
    substituted: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of a replica's fullest GPU, as the engine's start-up log would print it. All `*_bytes` are per GPU.

    `budget_bytes` is what the engine plans with. vLLM: utilization × total, for weights, KV cache, activations and
    runtime. TensorRT-LLM and TGI: the whole GPU; a share of what is left after loading becomes KV cache. llama.cpp:
    what other processes leave. SGLang: its static fraction holds weights and KV cache only, activations, runtime and
    graphs take the rest (`activations_in_budget` is False).
    `cuda_graph_bytes` comes out of the budget only when `cuda_graphs_in_budget` (vLLM, by release and model). Otherwise
    an engine can start with negative `free_bytes` and run out of memory in its first full step.
    `kv_tokens` is the KV cache size in the log. `kv_bytes_per_token` is what one more token of a sequence within its
    window costs.
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
    typical_concurrency_paged: float  # sequences of the traffic's lengths, each holding what it wrote
    typical_concurrency_reserved: float  # the same when each reserves max_model_len
    longest_context_tokens: int  # longest max_model_len with which the engine starts
    held_length_tokens: int  # longest sequence in the pool as it is; a refusal names it
    starts: bool
    refusal: str  # the engine's reason in its own terms, "" when it starts
    outcome: str  # started, refused_max_len_exceeds_kv, refused_no_cache_blocks, refused_mamba_blocks, ...
    remedies: tuple[Remedy, ...]  # smallest changes that make it start, most likely first
    formulas: tuple[Formula, ...]
    notes: tuple[str, ...] = ()  # estimates and assumptions
    weights_error: float = 0.0  # relative half-width of the band on weights
    kv_pool_error: float = 0.0  # half of high − low, relative
    kv_pool_low_bytes: float = 0.0  # the pool of the same command differs between starts, from this ...
    kv_pool_high_bytes: float = 0.0  # ... to this
    doubt: str = ""  # what decides between start and refusal where both lie within that range
    settled_by: Remedy | None = None  # the change with which it starts whatever decides that
    block_bytes: float = 0.0  # of one KV block on one GPU
    logged_kv_blocks: int = 0  # as the log prints them, with the null block that no sequence uses
    blocks_per_sequence: int = 0  # of a sequence of max_model_len, as the start-up check counts them
    estimated: tuple[tuple[str, float, float], ...] = ()  # part, printed by the user's engine, our estimate of it
    occupied_bytes: float = 0.0  # held by other processes, unless the engine counts it as its own
    activations_in_budget: bool = True  # False: the budget holds weights and KV cache only (SGLang)
    state_bytes: float = 0.0  # SGLang: the pool of recurrent states of hybrid models
    offloaded_kv_tokens: int = 0  # tokens that CPU offload keeps for reuse, in addition

    @property
    def free_bytes(self) -> float:
        """What weights, activations, runtime, graphs, KV pool, states and other processes leave of the GPU."""
        used = self.weights_bytes + self.activation_bytes + self.non_torch_bytes + self.cuda_graph_bytes
        return self.total_bytes - used - self.state_bytes - max(0.0, self.kv_pool_bytes) - self.occupied_bytes

    @property
    def is_short(self) -> bool:
        """Whether the engine starts although a full step needs more memory than the GPU has."""
        return self.starts and self.free_bytes < -SHORT_BYTES

    def limits(self) -> Limits:
        """Limits of the scheduler."""
        return Limits(
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            num_kv_blocks=self.num_kv_blocks,
            block_size=self.block_size,
            fixed_blocks_per_sequence=self.fixed_blocks_per_sequence,
        )
