"""What goes into a simulation and what comes out: arrays, one entry per request or per sampled step."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.arrays import Bytes, Floats, Ints

FINISHED, REJECTED, UNFINISHED, ABANDONED = 0, 1, 2, 3


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
    `first_token_s` and `finish_s` are the times at which the client saw the first and the last token, NaN
    where it never did. Averages are over simulated time: `mean_running` sequences, `mean_waiting` in the
    queue, `mean_kv_used_fraction` of the pool held (reserved), `mean_kv_written_fraction` of the pool that
    holds tokens.
    """

    arrival_s: Floats
    first_token_s: Floats
    finish_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    status: Bytes
    num_preemptions: Ints
    max_itl_s: Floats  # the longest gap between two tokens, or messages, that the client saw
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
    binding: str = ""  # what limits: api server, kv cache, max_num_seqs, token budget, lora slots, compute, none
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
    closed_loop_users: int = 0  # 0: an open loop
