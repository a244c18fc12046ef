"""What the compiled loop works on: arrays of records, and how they are filled at the start.

Sequences hold slots, requests wait in a linked queue. All decoding sequences advance together, so none
is touched while it decodes: `token_clock` counts the tokens that each has made since the start, a
sequence remembers its length less that clock, and events (the last token, a length that passes the
attention window, a new block) are filed under the clock's value at which they fall due.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.inputs import Batching, EngineSettings, KvReservation, Limits, OnMemoryShortage, StepOrder
from planner.simulation.records import UNFINISHED
from planner.step_time import StepTimeTable
from planner.workload import Requests

Records = NDArray[Any]

BY_NOTHING, BY_SLOTS, BY_KV, BY_BUDGET, BY_LORA = range(5)
NUM_REASONS = 5
PARTIAL, DECODES = 1, 2  # kinds of a used slot
NO_SLOT = -1
NO_RUN = 0  # runs of free blocks are numbered from 1
DECODE, MIXED, HEAD = range(3)  # rows of the tables
# Gaps between tokens are counted in 64 bins per octave from 2**-24 s to 2**20 s (1.6 % wide at most).
BINS_PER_OCTAVE = 64
FIRST_OCTAVE, LAST_OCTAVE = -24, 20
NUM_BINS = (LAST_OCTAVE - FIRST_OCTAVE) * BINS_PER_OCTAVE
NUM_PARTS = 20  # gaps are filed by the share of the requests that had begun to arrive
MAX_SAMPLES = 4096
SAMPLE_WIDTH = 7
SAMPLES_FROM = NUM_REASONS + NUM_PARTS * NUM_BINS
CLIP_OUTPUT_TOKENS = 4096  # SGLang counts at most this many of a request's remaining output
RATIO_DECAY_STEPS = 600  # SGLang: decode steps over which the ratio falls to its minimum
RETRACT_STEPS = 20  # SGLang: after a retraction the pool must hold this many further steps


def _dtype(ints: str = "", floats: str = "") -> np.dtype[Any]:
    return np.dtype([(name, np.float64) for name in floats.split()] + [(name, np.int64) for name in ints.split()])


# One per request: what was asked, the tokens whose KV comes with it (`given`), what became of it, its
# place in the queue and later among those that are finished (`after`), since when it waits for the scheduler
# (`waits_since`: read by the API server, or preempted), the tokens it had made when it was last preempted
# (`made`), the time of its last token before (of its last message, where messages hold several tokens) and how many
# it had made since (`untold`), the run of free blocks that it left then (`own`), its slot + 1
# while it runs (`place`). `ready` has nothing to do with the request: the first entries are the ring of idle
# closed-loop users.
JOB = _dtype(
    floats="arrival waits_since first_token finish admitted max_gap last_token ready",
    ints="prompt output limit group prefix given priority adapter status preemptions after made own place untold",
)
# One per slot. `offset` = length less token clock and `key` = token clock at the last token, while it
# decodes; `computed` of `known` tokens are done, while it prefills; `held` blocks were taken at
# admission, `shared` leading blocks belong to the prefix group; `entry` is the emission after which its
# gaps are those of the batch, `joined` the time of its token there; where messages hold several tokens, `told` is when
# its client saw the last one, and `untold` tokens have been made since. `run_*` link the running sequences
# in admission order, which `turn` counts, `due_*` those that end together. The last are lists that live
# here because they are as long: unused slots, slots that prefill, chunks of the step, sequences new since
# the last emission, those that end in it, and by priority class the last request in the queue.
SLOT = _dtype(
    floats="joined told",
    ints="job kind untold offset key computed known held shared entry run_before run_after due_before due_after "
    "turn spare partial chunk_slot chunk_tokens newcomer ending class_tail",
)
# One per prefix group: leading blocks of its text in the cache, how many anyone will ask for (`limit`),
# running sequences that hold some, the most that one of them holds (`top`) and how many hold that many,
# its first and last run of free blocks. `adapter_users` and `adapter_waiting` have nothing to do with
# the group: running and waiting requests by LoRA adapter.
GROUP = _dtype(ints="cached limit users top at_top lowest highest adapter_users adapter_waiting")
# Runs of free blocks that can still be found: blocks `low` to `high` of a group's text, or of a preempted
# request. `dead` blocks, which nobody will look for, stand before the run in the queue of free blocks.
RUN = _dtype(ints="low high dead group job before after lower upper")
# By token clock (its lower half): first slot whose last token falls there, sequences that fill the
# attention window there, sequences that need a block (by clock modulo block size). `stack_*` are the
# suffix maxima of the gaps between emissions.
CALENDAR = _dtype(floats="stack_gap", ints="due crossing growth stack_index")
RULES = _dtype(
    floats="batch_timeout_s serve_ratio gain start_ratio min_ratio patience_s timeout_s think_s "
    "server_request_s server_prompt_s server_token_s",
    ints="slots budget max_len blocks block_size fixed_blocks paged reserve_output static prefill_first chunked "
    "one_is_decode retract caching grouped at_once impatient lora max_loras classes threshold max_queued "
    "max_concurrent max_waiting_steps tokens_per_decode users stop_waiting receive_interval stream_interval "
    "ahead_of_time",
)
TIMES = _dtype(
    floats="decode_slope mixed_slope head_slope base per_sequence per_kv floor window_base window_per_sequence "
    "window_per_kv window_floor pair token window_pair host host_per_sequence launch",
    ints="decode_last mixed_last head_last window overlaps stages",
)
# One per replica. `filled`: when the step that follows the last one was filled, with async scheduling; `launching`: for
# how long the last one held the scheduler. `passed_over`: the queue up to this request waits for adapters that have no
# slot; -1: look again. `unsent` finished requests, from first to last, had not been sent to their clients when a router
# last looked.
STATE = _dtype(
    floats="clock busy_s running_area waiting_area used_area written_area linear_s head_s decode_attention_s "
    "prefill_attention_s host_s last_emission ratio reserved_tokens server_free sending launching filled",
    ints="token_clock emissions decoding running free_blocks kv_tokens window_tokens window_growing partial_tokens "
    "partials queue_head waiting fed read next closed done steps decode_steps peak_running "
    "prefill_tokens hit_tokens decode_tokens preemptions run_first run_last free_slots blocked reason stack_from "
    "stack_to batch batch_kv batch_pad steps_since_prefill allocated shared_twice newcomers chunks sample_stride "
    "samples next_sample ready_from ready ahead retracting stopped adapters fitting turns oldest_run newest_run "
    "last_run spare_run settled queued silent_from open_from gaps_from step_open made prompts passed_over "
    "unsent unsent_first unsent_last",
)
ROWS_AT_ONCE = 4096
UNBOUNDED = int(np.iinfo(np.int64).max // 16)


def tokens_per_step(engine: EngineSettings) -> float:
    """Tokens that a sequence makes per decode step: (1 − a^(k+1)) / (1 − a) with k drafts accepted at rate a."""
    drafts, chance = engine.num_speculative_tokens, engine.speculative_acceptance
    if drafts == 0:
        return 1.0
    return float(drafts + 1) if chance == 1 else (1 - chance ** (drafts + 1)) / (1 - chance)


def make_rules(engine: EngineSettings, limits: Limits, requests: Requests) -> Records:
    """Translate settings and limits into numbers."""
    per_decode = 1 + engine.num_speculative_tokens
    budget = limits.max_num_batched_tokens
    if not engine.enable_chunked_prefill and engine.family == "vllm":
        budget = max(budget, limits.max_model_len)
    whole_prompts = engine.is_v0 and not engine.enable_chunked_prefill  # the first core had no other way to split them
    slots = min(limits.max_num_seqs, engine.max_num_seqs or limits.max_num_seqs)
    static = engine.batching == Batching.STATIC
    if engine.batching == Batching.SINGLE:
        slots = 1
    if not static:
        slots = min(slots, budget // per_decode)
    reservation = engine.kv_reservation
    rules = np.zeros(1, dtype=RULES)
    values: dict[str, float] = {
        "slots": max(1, min(slots, len(requests))),
        "budget": budget,
        "max_len": limits.max_model_len,
        "blocks": max(0, limits.num_kv_blocks),
        "block_size": limits.block_size,
        "fixed_blocks": limits.fixed_blocks_per_sequence,
        "paged": reservation == KvReservation.PAGED and not static,
        "reserve_output": reservation == KvReservation.OUTPUT_LIMIT or (static and reservation == KvReservation.PAGED),
        "static": static,
        "prefill_first": engine.step_order == StepOrder.PREFILL_FIRST,
        "chunked": engine.enable_chunked_prefill,
        "one_is_decode": engine.family == "vllm" and not engine.is_v0 and per_decode == 1,
        "retract": engine.on_memory_shortage == OnMemoryShortage.RETRACT_SHORTEST,
        "caching": engine.enable_prefix_caching and not static,
        "grouped": engine.enable_prefix_caching and not static and bool((requests.prefix_group >= 0).any()),
        "at_once": engine.family in ("vllm", "generic"),  # the others offer a prompt's blocks once it is computed
        "impatient": engine.patience_s is not None or engine.timeout_s is not None,
        "lora": requests.adapter is not None and bool((requests.adapter >= 0).any()),
        "max_loras": engine.max_loras,
        "classes": 1 if requests.priority is None else len(np.unique(requests.priority)),
        "threshold": UNBOUNDED if whole_prompts else engine.long_prefill_token_threshold or UNBOUNDED,
        "max_queued": _or_unbounded(engine.max_queued_requests),
        "max_concurrent": _or_unbounded(engine.max_concurrent_requests),
        "max_waiting_steps": engine.max_waiting_steps,
        "tokens_per_decode": per_decode,
        "users": min(requests.closed_loop_users, len(requests)),
        "stop_waiting": UNBOUNDED,
        "batch_timeout_s": np.inf if engine.batch_timeout_s is None else engine.batch_timeout_s,
        "serve_ratio": engine.waiting_served_ratio,
        "gain": tokens_per_step(engine),
        "start_ratio": engine.new_token_ratio,
        "min_ratio": min(engine.min_new_token_ratio, engine.new_token_ratio),
        "patience_s": np.inf if engine.patience_s is None else engine.patience_s,
        "timeout_s": np.inf if engine.timeout_s is None else engine.timeout_s,
        "think_s": requests.think_time_s,
        "receive_interval": engine.receive_interval_steps,
        "stream_interval": engine.stream_interval_tokens,
        "ahead_of_time": engine.schedules_ahead,
    }
    for name, value in values.items():
        rules[name] = value
    return rules


def add_front_end(rules: Records, engine: EngineSettings, table: StepTimeTable) -> None:
    """Add what stands between client and scheduler: a fixed latency, and the work of the API server."""
    overhead = table.request_overhead_s
    rules["think_s"] += overhead
    for name in ("patience_s", "timeout_s"):  # the client sees every token that much later
        rules[name] = max(0.0, float(rules[name][0]) - overhead)
    rules["server_request_s"] = table.server_per_request_s
    rules["server_prompt_s"] = table.server_per_prompt_token_s
    rules["server_token_s"] = table.server_per_token_s / engine.stream_interval_tokens


def _or_unbounded(value: int | None) -> int:
    return UNBOUNDED if value is None else value


def make_times(table: StepTimeTable) -> tuple[Floats, Records]:
    """Translate a step-time table into one array and one record; slopes follow its own rule beyond the end."""
    arrays = {"decode": table.decode_s, "mixed": table.mixed_s, "head": table.head_s}
    tables = np.zeros((3, max(len(array) for array in arrays.values())))
    times = np.zeros(1, dtype=TIMES)
    for row, (name, array) in enumerate(arrays.items()):
        tables[row, : len(array)] = array
        times[f"{name}_last"] = len(array) - 1
        times[f"{name}_slope"] = _slope(array)
    values: dict[str, float] = {
        "base": table.attention_base_s,
        "per_sequence": table.attention_per_sequence_s,
        "per_kv": table.attention_per_kv_token_s,
        "floor": table.attention_floor_s,
        "window_base": table.window_base_s,
        "window_per_sequence": table.window_per_sequence_s,
        "window_per_kv": table.window_per_kv_token_s,
        "window_floor": table.window_floor_s,
        "window": table.window_tokens,
        "pair": table.prefill_pair_s,
        "token": table.prefill_token_s,
        "window_pair": table.window_prefill_pair_s,
        "host": table.host_s,
        "launch": table.launch_s,
        "host_per_sequence": table.host_per_sequence_s,
        "overlaps": table.host_overlaps,
        "stages": table.pipeline_stages,
    }
    for name, value in values.items():
        times[name] = value
    return tables, times


def _slope(table: Floats) -> float:
    last = len(table) - 1
    slope = float(table[last] - table[last - 1]) if last else 0.0
    half = last // 2
    return float(table[last] - table[half]) / (last - half) if last > half else slope


def make_jobs(requests: Requests, max_len: int) -> Records:
    """Records of all requests; results start as never finished."""
    count = len(requests)
    jobs = np.zeros(count, dtype=JOB)
    ranks = None if requests.priority is None else np.unique(requests.priority, return_inverse=True)[1]
    blank = np.zeros(1, dtype=JOB)
    blank["status"] = UNFINISHED
    blank["adapter"] = -1
    groups = text_groups(requests)
    for name in ("first_token", "finish", "admitted"):
        blank[name] = np.nan
    for begin in range(0, count, ROWS_AT_ONCE):  # a record's fields lie together: fill them while they are in cache
        part = slice(begin, begin + ROWS_AT_ONCE)
        some = jobs[part]
        some[:] = blank
        prompt, output = np.maximum(1, requests.prompt_tokens[part]), requests.output_tokens[part]
        if not requests.closed_loop_users:
            some["arrival"] = requests.arrival_s[part]
        some["prompt"] = prompt
        some["output"] = output
        limit = np.minimum(requests.output_limit_tokens[part], np.maximum(1, max_len - prompt))
        some["limit"] = np.maximum(limit, output)
        some["group"] = groups[part]
        some["prefix"] = requests.prefix_tokens[part]
        if ranks is not None:
            some["priority"] = ranks[part]
        if requests.adapter is not None:
            some["adapter"] = requests.adapter[part]
        if requests.kv_ready_tokens is not None:
            some["given"] = np.minimum(requests.kv_ready_tokens[part], prompt - 1)
    return jobs


def text_groups(requests: Requests) -> Ints:
    """Prefix group of each request as the cache sees it: KV of one adapter is of no use to another."""
    group, adapter = requests.prefix_group, requests.adapter
    if adapter is None or not (group >= 0).any() or not (adapter >= 0).any():
        return group
    pair = group * (int(adapter.max()) + 2) + adapter + 1
    numbers: Ints = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    return np.where(group >= 0, numbers, -1)


def take_columns(jobs: Records, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Copy fields of all records into arrays of their own."""
    columns = {name: np.empty(len(jobs), dtype=JOB[name]) for name in names}
    for begin in range(0, len(jobs), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        for name in names:
            columns[name][part] = jobs[part][name]
    return columns


def make_calendar(requests: Requests, rules: Records, window: int) -> Records:
    """Empty calendar: twice a power of two that exceeds how far ahead any event can fall."""
    longest = min(int(requests.output_tokens.max()), int(rules["max_len"][0]))  # a longer one is turned away
    ahead = max(longest, window, int(rules["block_size"][0]))
    size = 1 << (ahead + int(rules["tokens_per_decode"][0]) + 2).bit_length()
    calendar = np.zeros(2 * size, dtype=CALENDAR)
    calendar["due"] = NO_SLOT
    return calendar


def make_slots(rules: Records) -> Records:
    """Unused slots."""
    count = int(rules["slots"][0])
    slots = np.zeros(max(count, int(rules["classes"][0])), dtype=SLOT)
    slots["class_tail"] = -1
    slots["spare"][:count] = np.arange(count - 1, -1, -1)
    return slots


def make_groups(requests: Requests, rules: Records) -> Records:
    """Prefix groups, nothing cached."""
    adapters = int(requests.adapter.max()) + 1 if rules["lora"][0] and requests.adapter is not None else 0
    if not rules["grouped"][0]:
        return np.zeros(max(1, adapters), dtype=GROUP)
    group = text_groups(requests)
    groups = np.zeros(max(1, int(group.max()) + 1, adapters), dtype=GROUP)
    limit = np.zeros(len(groups) + 1, dtype=np.int64)
    np.maximum.at(limit, group, requests.prefix_tokens // int(rules["block_size"][0]))
    groups["limit"] = limit[:-1]  # the last is that of no group
    return groups


def make_runs(rules: Records, num_requests: int) -> Records:
    """Room for the runs of free blocks: a request leaves at most two, each of a block or more."""
    count = min(int(rules["blocks"][0]), 2 * num_requests) if rules["caching"][0] else 0
    return np.zeros(count + 2, dtype=RUN)


def make_state(rules: Records, *, fed: int, closed: bool, timeline: bool) -> tuple[Records, Floats]:
    """State and tallies at the start. `fed` requests are known from the outset; `closed`: no more will come."""
    state = np.zeros(1, dtype=STATE)
    values: dict[str, float] = {
        "free_blocks": int(rules["blocks"][0]),
        "free_slots": int(rules["slots"][0]),
        "queue_head": -1,
        "passed_over": -1,
        "run_first": NO_SLOT,
        "run_last": NO_SLOT,
        "fed": fed,
        "closed": closed,
        "sample_stride": 1,
        "next_sample": 1 if timeline else UNBOUNDED,
        "ready": int(rules["users"][0]),
        "ratio": float(rules["start_ratio"][0]),
        "gaps_from": NUM_REASONS,
    }
    for name, value in values.items():
        state[name] = value
    return state, np.zeros(SAMPLES_FROM + (SAMPLE_WIDTH * MAX_SAMPLES if timeline else 0))
