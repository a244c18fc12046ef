"""What the compiled loop works on: plain arrays in named tuples, and where each counter lives.

Sequences hold slots, requests wait in a linked queue. All decoding sequences advance together, so none
is touched while it decodes: `token_clock` counts the tokens that each has made since the start, a
sequence remembers its length less that clock, and events (the last token, a length that passes the
attention window, a new block) are filed under the clock's value at which they fall due.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.engine import Batching, EngineSettings, KvReservation, OnMemoryShortage, StepOrder
from planner.simulation.records import UNFINISHED, Bytes, Floats, Ints, Limits, Requests
from planner.step_time import StepTimeTable

# Whole-number counters.
(
    TOKEN_CLOCK,
    EMISSIONS,
    DECODING,
    RUNNING,
    FREE_BLOCKS,
    KV_TOKENS,
    WINDOW_TOKENS,
    WINDOW_GROWING,
    PARTIAL_TOKENS,
    PARTIALS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    WAITING,
    FED,
    NEXT,
    CLOSED,
    DONE,
    DONE_BEFORE_STEP,
    STEPS,
    DECODE_STEPS,
    PEAK_RUNNING,
    PREFILL_TOKENS,
    HIT_TOKENS,
    DECODE_TOKENS,
    PREEMPTIONS,
    RUN_FIRST,
    RUN_LAST,
    FREE_SLOTS,
    BLOCKED,
    REASON,
    STACK_FROM,
    STACK_TO,
    BATCH,
    BATCH_KV,
    BATCH_WINDOW,
    BATCH_PAD,
    STEPS_SINCE_PREFILL,
    ALLOCATED,
    SHARED_TWICE,
    NEWCOMERS,
    CHUNKS,
    SAMPLE_STRIDE,
    SAMPLES,
    NEXT_SAMPLE,
    READY_FROM,
    READY,
    STOPPED,
    NUM_INTS,
) = range(48)

# Seconds and ratios.
(
    CLOCK,
    BUSY_S,
    RUNNING_AREA,
    WAITING_AREA,
    USED_AREA,
    WRITTEN_AREA,
    LINEAR_S,
    HEAD_S,
    DECODE_ATTENTION_S,
    PREFILL_ATTENTION_S,
    HOST_S,
    LAST_EMISSION,
    BLOCKED_BY_NOTHING_S,
    BLOCKED_BY_SLOTS_S,
    BLOCKED_BY_KV_S,
    BLOCKED_BY_BUDGET_S,
    RATIO,
    RESERVED_TOKENS,
    NUM_FLOATS,
) = range(19)

BY_NOTHING, BY_SLOTS, BY_KV, BY_BUDGET = range(4)
PARTIAL, DECODES = 1, 2
NO_SLOT = -1
MAX_SAMPLES = 4096
# Gaps between tokens are counted in 64 bins per octave from 2**-24 s to 2**20 s (0.8 % wide).
BINS_PER_OCTAVE_BITS = 6
FIRST_OCTAVE, LAST_OCTAVE = -24, 20
NUM_BINS = ((LAST_OCTAVE - FIRST_OCTAVE) << BINS_PER_OCTAVE_BITS) + 2
CLIP_OUTPUT_TOKENS = 4096  # SGLang counts at most this many of a request's remaining output
RATIO_DECAY_STEPS = 600  # SGLang: decode steps over which the ratio falls to its minimum
RETRACT_STEPS = 20  # SGLang: after a retraction the pool must hold this many further steps


class Jobs(NamedTuple):
    """One entry per request: what was asked, what became of it, and its place in the queue."""

    arrival: Floats
    prompt: Ints
    output: Ints
    limit: Ints
    group: Ints
    prefix: Ints
    first_token: Floats
    finish: Floats
    admitted: Floats
    max_gap: Floats
    status: Bytes
    preemptions: Ints
    after: Ints  # next in the queue
    made: Ints  # tokens made before the last preemption
    paused: Floats  # time of that preemption
    last_token: Floats  # time of the last token before it


class Slots(NamedTuple):
    """One entry per slot, plus the calendars that are indexed by token clock."""

    job: Ints
    kind: Ints
    offset: Ints  # length less token clock, while decoding
    key: Ints  # token clock at the last token
    computed: Ints  # prompt tokens done, while prefilling
    known: Ints  # tokens to prefill: prompt, and what was made before a preemption
    held: Ints  # blocks reserved at admission (not paged)
    shared: Ints  # leading blocks that belong to the prefix group
    entry: Ints  # emission at which it joined
    joined: Floats  # time of its first token in this stay
    run_before: Ints
    run_after: Ints
    due_before: Ints
    due_after: Ints
    spare: Ints  # stack of unused slots
    partial: Ints  # slots that prefill, in admission order
    chunk_slot: Ints
    chunk_tokens: Ints
    newcomer: Ints
    due: Ints  # calendar of last tokens: first slot
    crossing: Ints  # calendar: sequences that fill the attention window
    growth: Ints  # sequences that need a block, by token clock modulo block size
    stack_index: Ints  # suffix maxima of the gaps between emissions
    stack_gap: Floats


class Groups(NamedTuple):
    """One entry per prefix group."""

    cached: Ints  # tokens in the cache
    users: Ints  # running sequences that share it
    held: Ints  # blocks pinned by them
    expiry: Ints  # block allocations after which an unused prefix is overwritten


class Rules(NamedTuple):
    """The engine's settings and the replica's limits as numbers."""

    slots: int
    budget: int
    max_len: int
    blocks: int
    block_size: int
    fixed_blocks: int
    paged: bool
    reserve_output: bool
    static: bool
    prefill_first: bool
    chunked: bool
    retract: bool
    caching: bool
    threshold: int
    max_queued: int
    max_concurrent: int
    timeout_s: float
    serve_ratio: float
    max_waiting_steps: int
    tokens_per_decode: int
    gain: float
    start_ratio: float
    min_ratio: float
    patience_s: float
    users: int
    think_s: float
    stop_waiting: int


class Times(NamedTuple):
    """A StepTimeTable as the loop reads it; `*_slope` extends an array beyond its end."""

    decode: Floats
    mixed: Floats
    head: Floats
    decode_slope: float
    mixed_slope: float
    head_slope: float
    base: float
    per_sequence: float
    per_kv: float
    floor: float
    window_base: float
    window_per_sequence: float
    window_per_kv: float
    window_floor: float
    window: int
    pair: float
    token: float
    window_pair: float
    host: float
    host_per_sequence: float
    overlaps: bool
    stages: int


class Totals(NamedTuple):
    """Counters, histogram of gaps, samples, and the users of a closed loop."""

    ints: Ints
    floats: Floats
    gap_count: Floats
    scratch: Floats  # a gap seen as float ...
    scratch_bits: Ints  # ... and the same memory seen as bits
    samples: Floats
    ready: Floats  # closed loop: when each idle user asks next, as a ring


def tokens_per_step(engine: EngineSettings) -> float:
    """Tokens that a sequence makes per decode step: (1 − a^(k+1)) / (1 − a) with k drafts accepted at rate a."""
    drafts, chance = engine.num_speculative_tokens, engine.speculative_acceptance
    if drafts == 0:
        return 1.0
    return float(drafts + 1) if chance == 1 else (1 - chance ** (drafts + 1)) / (1 - chance)


def make_rules(engine: EngineSettings, limits: Limits, requests: Requests, *, stop_waiting: int) -> Rules:
    """Translate settings and limits into numbers."""
    per_decode = 1 + engine.num_speculative_tokens
    budget = limits.max_num_batched_tokens
    if not engine.enable_chunked_prefill and engine.family == "vllm":
        budget = max(budget, limits.max_model_len)
    slots = min(limits.max_num_seqs, engine.max_num_seqs or limits.max_num_seqs)
    static = engine.batching is Batching.STATIC
    if engine.batching is Batching.SINGLE:
        slots = 1
    if not static:
        slots = max(1, min(slots, budget // per_decode))
    slots = min(slots, max(1, len(requests)))
    reservation = engine.kv_reservation
    unbounded = np.iinfo(np.int64).max
    queued, concurrent = engine.max_queued_requests, engine.max_concurrent_requests
    return Rules(
        slots=slots,
        budget=budget,
        max_len=limits.max_model_len,
        blocks=max(0, limits.num_kv_blocks),
        block_size=limits.block_size,
        fixed_blocks=limits.fixed_blocks_per_sequence,
        paged=reservation is KvReservation.PAGED and not static,
        reserve_output=reservation is KvReservation.OUTPUT_LIMIT or (static and reservation is KvReservation.PAGED),
        static=static,
        prefill_first=engine.step_order is StepOrder.PREFILL_FIRST,
        chunked=engine.enable_chunked_prefill,
        retract=engine.on_memory_shortage is OnMemoryShortage.RETRACT_SHORTEST,
        caching=engine.enable_prefix_caching,
        threshold=engine.long_prefill_token_threshold or unbounded,
        max_queued=unbounded if queued is None else queued,
        max_concurrent=unbounded if concurrent is None else concurrent,
        timeout_s=np.inf if engine.batch_timeout_s is None else float(engine.batch_timeout_s),
        serve_ratio=float(engine.waiting_served_ratio),
        max_waiting_steps=engine.max_waiting_steps,
        tokens_per_decode=per_decode,
        gain=tokens_per_step(engine),
        start_ratio=float(engine.new_token_ratio),
        min_ratio=float(min(engine.min_new_token_ratio, engine.new_token_ratio)),
        patience_s=np.inf if engine.patience_s is None else float(engine.patience_s),
        users=requests.closed_loop_users,
        think_s=float(requests.think_time_s),
        stop_waiting=stop_waiting,
    )


def make_times(table: StepTimeTable) -> Times:
    """Translate a step-time table; slopes follow its own rule beyond the end of an array."""
    arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (table.decode_s, table.mixed_s, table.head_s)]
    slopes = [_slope(array) for array in arrays]
    return Times(
        decode=arrays[0],
        mixed=arrays[1],
        head=arrays[2],
        decode_slope=slopes[0],
        mixed_slope=slopes[1],
        head_slope=slopes[2],
        base=float(table.attention_base_s),
        per_sequence=float(table.attention_per_sequence_s),
        per_kv=float(table.attention_per_kv_token_s),
        floor=float(table.attention_floor_s),
        window_base=float(table.window_base_s),
        window_per_sequence=float(table.window_per_sequence_s),
        window_per_kv=float(table.window_per_kv_token_s),
        window_floor=float(table.window_floor_s),
        window=int(table.window_tokens),
        pair=float(table.prefill_pair_s),
        token=float(table.prefill_token_s),
        window_pair=float(table.window_prefill_pair_s),
        host=float(table.host_s),
        host_per_sequence=float(table.host_per_sequence_s),
        overlaps=bool(table.host_overlaps),
        stages=int(table.pipeline_stages),
    )


def _slope(table: Floats) -> float:
    last = len(table) - 1
    slope = float(table[last] - table[last - 1]) if last else 0.0
    half = last // 2
    return float(table[last] - table[half]) / (last - half) if last > half else slope


def make_jobs(requests: Requests, max_len: int) -> Jobs:
    """Arrays of all requests; results start as never finished."""
    n = len(requests)
    prompt = np.maximum(1, requests.prompt_tokens).astype(np.int64)
    limit = np.minimum(requests.output_limit_tokens, np.maximum(1, max_len - prompt)).astype(np.int64)
    arrival = np.zeros(n) if requests.closed_loop_users else np.array(requests.arrival_s, dtype=np.float64)

    def ints(values: Ints) -> Ints:
        return np.ascontiguousarray(values, dtype=np.int64)

    return Jobs(
        arrival=arrival,
        prompt=prompt,
        output=ints(requests.output_tokens),
        limit=np.maximum(limit, ints(requests.output_tokens)),
        group=ints(requests.prefix_group),
        prefix=ints(requests.prefix_tokens),
        first_token=np.full(n, np.nan),
        finish=np.full(n, np.nan),
        admitted=np.full(n, np.nan),
        max_gap=np.zeros(n),
        status=np.full(n, UNFINISHED, dtype=np.int8),
        preemptions=np.zeros(n, dtype=np.int64),
        after=np.zeros(n, dtype=np.int64),
        made=np.zeros(n, dtype=np.int64),
        paused=np.zeros(n),
        last_token=np.zeros(n),
    )


def calendar_size(requests: Requests, rules: Rules, window: int) -> int:
    """Entries of the calendars: a power of two beyond the longest time any event lies ahead."""
    ahead = int(requests.output_tokens.max()) if len(requests) else 1
    return 1 << (max(ahead, window) + rules.tokens_per_decode + 2).bit_length()


def make_slots(rules: Rules, calendar: int, window: int) -> Slots:
    """Empty slots and calendars."""
    n = rules.slots

    def ints(size: int, value: int = 0) -> Ints:
        return np.full(size, value, dtype=np.int64)

    return Slots(
        job=ints(n, -1),
        kind=ints(n),
        offset=ints(n),
        key=ints(n),
        computed=ints(n),
        known=ints(n),
        held=ints(n),
        shared=ints(n),
        entry=ints(n),
        joined=np.zeros(n),
        run_before=ints(n, NO_SLOT),
        run_after=ints(n, NO_SLOT),
        due_before=ints(n, NO_SLOT),
        due_after=ints(n, NO_SLOT),
        spare=np.arange(n - 1, -1, -1, dtype=np.int64),
        partial=ints(n),
        chunk_slot=ints(n + 1),
        chunk_tokens=ints(n + 1),
        newcomer=ints(n),
        due=ints(calendar, NO_SLOT),
        crossing=ints(calendar if window else 1),
        growth=ints(rules.block_size),
        stack_index=ints(2 * calendar),
        stack_gap=np.zeros(2 * calendar),
    )


def make_groups(requests: Requests) -> Groups:
    """Prefix groups, nothing cached."""
    count = int(requests.prefix_group.max(initial=-1)) + 1
    arrays = [np.zeros(max(1, count), dtype=np.int64) for _ in range(4)]
    return Groups(*arrays)


def make_totals(rules: Rules, *, fed: int, closed: bool, timeline: bool) -> Totals:
    """Counters at the start. `fed` requests are known from the outset; `closed` when no more will come."""
    ints, floats = np.zeros(NUM_INTS, dtype=np.int64), np.zeros(NUM_FLOATS)
    ints[FREE_BLOCKS] = rules.blocks
    ints[FREE_SLOTS] = rules.slots
    ints[[QUEUE_HEAD, QUEUE_TAIL, RUN_FIRST, RUN_LAST]] = -1
    ints[FED], ints[CLOSED] = fed, int(closed)
    ints[SAMPLE_STRIDE] = 1
    ints[NEXT_SAMPLE] = 1 if timeline else np.iinfo(np.int64).max
    ints[READY] = min(rules.users, fed)
    floats[RATIO] = rules.start_ratio
    scratch = np.zeros(1)
    return Totals(
        ints=ints,
        floats=floats,
        gap_count=np.zeros(NUM_BINS),
        scratch=scratch,
        scratch_bits=scratch.view(np.int64),
        samples=np.zeros((MAX_SAMPLES if timeline else 1, 7)),
        ready=np.zeros(max(1, rules.users)),
    )
