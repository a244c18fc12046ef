"""What goes into a simulation and what comes out: arrays, one entry per request or per sampled step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.int8]

FINISHED, REJECTED, UNFINISHED, ABANDONED = 0, 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """The workload: one entry per request, sorted by arrival.

    `prompt_tokens` includes `prefix_tokens` shared with the requests of the same `prefix_group`
    (-1 = none). `output_limit_tokens` is what the client asked for at most (max_tokens).
    In a closed loop (`closed_loop_users` > 0) `arrival_s` is ignored: that many clients issue the
    requests in order, each waiting `think_time_s` after its answer.
    """

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    output_limit_tokens: Ints
    prefix_group: Ints
    prefix_tokens: Ints
    closed_loop_users: int = 0
    think_time_s: float = 0.0
    rate_rps: float | None = None  # nominal mean rate of an open loop, where one was set
    kv_ready_tokens: Ints | None = None  # prompt tokens whose KV arrives with the request (disaggregated prefill)
    priority: Ints | None = None  # lower is served first and evicted last; None: all alike
    adapter: Ints | None = None  # LoRA adapter that the request asks for, -1: the base model; None: base model for all
    notes: tuple[str, ...] = ()  # what a reader should know, such as "was unsorted"

    def __post_init__(self) -> None:
        n = len(self.arrival_s)
        for name in ("prompt_tokens", "output_tokens", "output_limit_tokens", "prefix_group", "prefix_tokens"):
            if len(getattr(self, name)) != n:
                raise InvalidInput(name, len(getattr(self, name)), f"{n} entries, one per request")
        if self.adapter is not None and (len(self.adapter) != n or (n and self.adapter.min() < -1)):
            raise InvalidInput("adapter", len(self.adapter), f"{n} entries from -1, one per request")
        if n and (np.diff(self.arrival_s) < 0).any():
            raise InvalidInput("arrival_s", "unsorted", "times that never fall")
        if n and (self.prompt_tokens.min() < 0 or self.output_tokens.min() < 1):
            raise InvalidInput("output_tokens", int(self.output_tokens.min()), "at least 1 token per request")

    def __len__(self) -> int:
        return len(self.arrival_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The replica's capacity as the scheduler sees it (all resolved, nothing None).

    `num_kv_blocks` usable blocks of `block_size` tokens; `blocks_per_window_sequence` is the fixed
    number of further blocks that windowed or state layers hold per running sequence (hybrids).
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    num_kv_blocks: int
    block_size: int
    fixed_blocks_per_sequence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Samples of the step loop, at most a few thousand, evenly spread over steps."""

    time_s: Floats
    running: Ints
    waiting: Ints
    step_tokens: Ints
    kv_blocks_used: Ints
    kv_tokens_written: Ints
    preemptions: Ints  # cumulative


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationResult:
    """Per-request records and totals of one simulated replica or service.

    `status` per request: FINISHED, REJECTED, UNFINISHED (the run was cut), ABANDONED (the client
    was gone before its first token, or before its last).
    `first_token_s` and `finish_s` are absolute times, NaN where they never came. Averages are over
    simulated time: `mean_running` sequences, `mean_kv_used_fraction` of the pool held (reserved) and
    `mean_kv_written_fraction` of the pool that holds real tokens, `mean_waiting` in the queue.
    """

    arrival_s: Floats
    first_token_s: Floats
    finish_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    status: Bytes
    num_preemptions: Ints
    max_itl_s: Floats  # the longest gap between two tokens of the request
    replica: Ints
    duration_s: float
    num_steps: int
    busy_s: float
    mean_running: float
    mean_waiting: float
    mean_kv_used_fraction: float
    mean_kv_written_fraction: float
    peak_running: int
    prefill_tokens_computed: int
    prefix_tokens_hit: int
    decode_tokens: int
    verdict: str = "stable"  # stable, backlogged, overloaded
    binding: str = ""  # what limits: kv cache, max_num_seqs, token budget, compute, none
    timeline: Timeline | None = None
    term_s: dict[str, float] = field(default_factory=dict)  # busy seconds by step-time term
    admitted_s: Floats | None = None  # when the engine first took the request up; NaN where it never did
    itl_gap_s: Floats | None = None  # histogram of gaps between emissions: middle of each bin, ...
    itl_count: Floats | None = None  # ... and how many sequences saw such a gap
    itl_parts: Floats | None = None  # the same by twentieths of the requests, as these began to arrive: one row each
    blocked_s: dict[str, float] = field(default_factory=dict)  # time that requests waited, by what held them
    capacity_rps: float = float("nan")  # completions per second while overloaded or backlogged
    message: str = ""  # the verdict in a sentence
    num_slots: int = 0  # sequences that could have run at once (all replicas)
