"""The compiled step loop: one scheduler for every engine, driven by `Rules`.

`advance` runs one replica until a time. A general step schedules (`_step`); runs of steps in which
nothing but the clock changes pass through `_decode_run`, whose cost per step does not depend on the
batch. Both add the same floating-point numbers in the same order, so a run equals its single steps
bit for bit.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from planner.simulation.records import ABANDONED, FINISHED, REJECTED
from planner.simulation.state import (
    ALLOCATED,
    BATCH,
    BATCH_KV,
    BATCH_PAD,
    BINS_PER_OCTAVE_BITS,
    BLOCKED,
    BLOCKED_BY_NOTHING_S,
    BUSY_S,
    BY_BUDGET,
    BY_KV,
    BY_NOTHING,
    BY_SLOTS,
    CHUNKS,
    CLIP_OUTPUT_TOKENS,
    CLOCK,
    CLOSED,
    DECODE_ATTENTION_S,
    DECODE_STEPS,
    DECODE_TOKENS,
    DECODES,
    DECODING,
    DONE,
    DONE_BEFORE_STEP,
    EMISSIONS,
    FED,
    FIRST_OCTAVE,
    FREE_BLOCKS,
    FREE_SLOTS,
    HEAD_S,
    HIT_TOKENS,
    HOST_S,
    KV_TOKENS,
    LAST_EMISSION,
    LINEAR_S,
    MAX_SAMPLES,
    NEWCOMERS,
    NEXT,
    NEXT_SAMPLE,
    NO_SLOT,
    NUM_BINS,
    PARTIAL,
    PARTIAL_TOKENS,
    PARTIALS,
    PEAK_RUNNING,
    PREEMPTIONS,
    PREFILL_ATTENTION_S,
    PREFILL_TOKENS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RATIO,
    RATIO_DECAY_STEPS,
    READY,
    READY_FROM,
    REASON,
    RESERVED_TOKENS,
    RETRACT_STEPS,
    RUN_FIRST,
    RUN_LAST,
    RUNNING,
    RUNNING_AREA,
    SAMPLE_STRIDE,
    SAMPLES,
    SHARED_TWICE,
    STACK_FROM,
    STACK_TO,
    STEPS,
    STEPS_SINCE_PREFILL,
    STOPPED,
    TOKEN_CLOCK,
    USED_AREA,
    WAITING,
    WAITING_AREA,
    WINDOW_GROWING,
    WINDOW_TOKENS,
    WRITTEN_AREA,
)

log = logging.getLogger(__name__)
MAX_STEPS = 500_000_000
STOPPED_BY_LOAD, STOPPED_BY_FAULT = 1, 2


def compiled(function: Callable[..., Any]) -> Any:
    """Compile with numba; keep the machine code on disk where some cache folder can be written."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to write to: compile in memory, once per process
        return numba.njit(nogil=True)(function)


def is_compiled() -> bool:
    """Whether this process has the step loop ready to run."""
    return bool(getattr(advance, "signatures", True))


# -- time ---------------------------------------------------------------------------------------


@compiled
def _at(table, slope, index):
    last = len(table) - 1
    if index <= last:
        return table[index]
    return table[last] + slope * (index - last)


@compiled
def _chunk_attention_s(times, tokens, context):
    pairs = tokens * (context + (tokens + 1) / 2)
    seconds = times.pair * pairs + times.token * tokens
    if times.window:
        growing = min(max(0, times.window - context), tokens)
        inside = growing * context + growing * (growing + 1) / 2 + (tokens - growing) * times.window
        seconds += times.window_pair * inside
    return seconds


@compiled
def _step_s(times, floats, tokens, mixed, rows, decodes, kv, window_kv, prefill, sequences):
    """Time of one step, filed by term. With pipeline stages one step is a round of all micro-batches."""
    parts = min(times.stages, sequences)
    kv_part = kv / parts
    window_part = window_kv / parts
    if parts > 1:
        tokens = (tokens + parts - 1) // parts
        rows = (rows + parts - 1) // parts
        decodes = (decodes + parts - 1) // parts
        sequences = (sequences + parts - 1) // parts
        prefill = prefill / parts
    head = 0.0
    if mixed:
        linear = _at(times.mixed, times.mixed_slope, tokens)
        head = _at(times.head, times.head_slope, rows)
    else:
        linear = _at(times.decode, times.decode_slope, tokens)
    attention = 0.0
    if decodes:
        attention = max(times.floor, times.base + times.per_sequence * decodes + times.per_kv * kv_part)
        if times.window:
            attention += max(
                times.window_floor,
                times.window_base + times.window_per_sequence * decodes + times.window_per_kv * window_part,
            )
    device = linear + head + attention + prefill
    host = times.host + times.host_per_sequence * sequences
    exposed = max(0.0, host - device) if times.overlaps else host
    stages = times.stages
    floats[LINEAR_S] += stages * linear
    floats[HEAD_S] += stages * head
    floats[DECODE_ATTENTION_S] += stages * attention
    floats[PREFILL_ATTENTION_S] += stages * prefill
    floats[HOST_S] += stages * exposed
    return stages * (device + exposed)


@compiled
def _gain(rules, steps):
    """Tokens that every sequence makes in the next decode step; its mean is rules.gain."""
    return int(np.floor((steps + 1) * rules.gain)) - int(np.floor(steps * rules.gain))


# -- gaps between tokens --------------------------------------------------------------------------


@compiled
def _gap_bin(totals, gap):
    totals.scratch[0] = gap
    index = (totals.scratch_bits[0] >> (52 - BINS_PER_OCTAVE_BITS)) - ((1023 + FIRST_OCTAVE) << BINS_PER_OCTAVE_BITS)
    return min(max(0, index + 1), NUM_BINS - 1)


@compiled
def _push_gap(slots, ints, gap):
    """File the gap of this emission, dropping smaller ones before it: what remains are suffix maxima."""
    stack, gaps = slots.stack_index, slots.stack_gap
    first, top = ints[STACK_FROM], ints[STACK_TO]
    while top > first and gaps[top - 1] <= gap:
        top -= 1
    if top == len(stack):
        # No sequence decodes longer than the calendar: older entries are asked for no more.
        oldest = ints[EMISSIONS] - len(stack) // 2
        kept = 0
        for k in range(first, top):
            if stack[k] > oldest:
                stack[kept], gaps[kept] = stack[k], gaps[k]
                kept += 1
        top = kept
        ints[STACK_FROM] = 0
    stack[top], gaps[top] = ints[EMISSIONS], gap
    ints[STACK_TO] = top + 1


@compiled
def _longest_gap(slots, ints, entry):
    """The longest gap of the emissions after `entry`."""
    low, high = ints[STACK_FROM], ints[STACK_TO]
    while low < high:
        middle = (low + high) // 2
        if slots.stack_index[middle] > entry:
            high = middle
        else:
            low = middle + 1
    return slots.stack_gap[low] if low < ints[STACK_TO] else 0.0


@compiled
def _emit(slots, jobs, totals, rules):
    """All decoding sequences got tokens at this clock: record the gap."""
    ints, floats = totals.ints, totals.floats
    ints[EMISSIONS] += 1
    gap = floats[CLOCK] - floats[LAST_EMISSION]
    floats[LAST_EMISSION] = floats[CLOCK]
    newcomers = ints[NEWCOMERS]
    if ints[DECODING] > newcomers:
        _push_gap(slots, ints, gap)
        totals.gap_count[_gap_bin(totals, gap)] += ints[DECODING] - newcomers
    for k in range(newcomers):
        slot = slots.newcomer[k]
        own = floats[CLOCK] - slots.joined[slot]
        job = slots.job[slot]
        jobs.max_gap[job] = max(jobs.max_gap[job], own)
        totals.gap_count[_gap_bin(totals, own)] += 1
        slots.entry[slot] = ints[EMISSIONS]
    ints[NEWCOMERS] = 0


# -- queue ----------------------------------------------------------------------------------------


@compiled
def _next_arrival_s(jobs, rules, totals, feed):
    ints = totals.ints
    if ints[NEXT] >= ints[FED]:
        return np.inf
    if rules.users:
        return totals.ready[ints[READY_FROM]] if ints[READY] else np.inf
    return jobs.arrival[feed[ints[NEXT]]]


@compiled
def _ask_again(rules, totals):
    """Closed loop: the user thinks and will ask again."""
    ints = totals.ints
    if rules.users:
        totals.ready[(ints[READY_FROM] + ints[READY]) % rules.users] = totals.floats[CLOCK] + rules.think_s
        ints[READY] += 1


@compiled
def _never_fits(jobs, rules, job):
    prompt, output = jobs.prompt[job], jobs.output[job]
    if prompt + output > rules.max_len:
        return True
    size = rules.block_size
    if rules.paged:
        tokens = prompt + output - 1 + rules.tokens_per_decode - 1
    elif rules.reserve_output:
        tokens = prompt + jobs.limit[job]
    else:
        tokens = rules.max_len
    return (tokens + size - 1) // size + rules.fixed_blocks > rules.blocks


@compiled
def _take_arrivals(jobs, rules, totals, feed):
    """Move who has arrived into the queue, or turn them away."""
    ints, floats = totals.ints, totals.floats
    now = floats[CLOCK]
    while ints[QUEUE_HEAD] >= 0:
        job = ints[QUEUE_HEAD]
        if jobs.preemptions[job] or not now - jobs.arrival[job] > rules.patience_s:
            break
        _pop_head(jobs, ints)
        jobs.status[job] = ABANDONED
        floats[WAITING_AREA] += rules.patience_s
        ints[DONE] += 1
        _ask_again(rules, totals)
    while True:
        arrival = _next_arrival_s(jobs, rules, totals, feed)
        if not arrival <= now:
            break
        job = feed[ints[NEXT]]
        ints[NEXT] += 1
        if rules.users:
            jobs.arrival[job] = arrival
            ints[READY_FROM] = (ints[READY_FROM] + 1) % rules.users
            ints[READY] -= 1
        waiting, running = ints[WAITING], ints[RUNNING]
        full = waiting - max(0, rules.slots - running) >= rules.max_queued
        if full or waiting + running >= rules.max_concurrent or _never_fits(jobs, rules, job):
            jobs.status[job] = REJECTED
            ints[DONE] += 1
            _ask_again(rules, totals)
            continue
        _push_tail(jobs, ints, job)
    if ints[WAITING] > rules.stop_waiting and 10 * ints[WAITING] > 3 * ints[NEXT]:
        ints[STOPPED] = STOPPED_BY_LOAD


@compiled
def _push_tail(jobs, ints, job):
    jobs.after[job] = -1
    if ints[QUEUE_HEAD] < 0:
        ints[QUEUE_HEAD] = job
    else:
        jobs.after[ints[QUEUE_TAIL]] = job
    ints[QUEUE_TAIL] = job
    ints[WAITING] += 1


@compiled
def _push_head(jobs, ints, job):
    jobs.after[job] = ints[QUEUE_HEAD]
    if ints[QUEUE_HEAD] < 0:
        ints[QUEUE_TAIL] = job
    ints[QUEUE_HEAD] = job
    ints[WAITING] += 1


@compiled
def _pop_head(jobs, ints):
    job = ints[QUEUE_HEAD]
    ints[QUEUE_HEAD] = jobs.after[job]
    ints[WAITING] -= 1
    ints[BLOCKED] = 0
    return job


# -- memory ---------------------------------------------------------------------------------------


@compiled
def _blocks(rules, tokens):
    return (tokens + rules.block_size - 1) // rules.block_size


@compiled
def _growth(slots, rules, ints, gain):
    """Blocks that all decoding sequences together need for `gain` more tokens each."""
    if not rules.paged:
        return 0
    need = 0
    for step in range(gain):
        need += slots.growth[(ints[TOKEN_CLOCK] + step) % rules.block_size]
    return need


@compiled
def _release(slots, jobs, groups, rules, totals, slot, ahead, free_before):
    """Give back what a sequence holds. `ahead` tokens were allocated but not yet made."""
    ints = totals.ints
    job = slots.job[slot]
    if rules.static:
        return  # a static batch gives its memory back as a whole
    shared = slots.shared[slot]
    if rules.paged and slots.kind[slot] == DECODES:
        length = slots.offset[slot] + ints[TOKEN_CLOCK] + ahead
        ints[FREE_BLOCKS] += _blocks(rules, length) - shared + rules.fixed_blocks
    else:
        ints[FREE_BLOCKS] += slots.held[slot]
    group = jobs.group[job]
    if not rules.caching or group < 0:
        return
    if shared:
        groups.users[group] -= 1
        ints[SHARED_TWICE] -= shared
        if groups.users[group] == 0:
            ints[FREE_BLOCKS] += groups.held[group]
            ints[SHARED_TWICE] += groups.held[group]
            groups.held[group] = 0
    if groups.users[group] == 0:
        # Least recently used first: whatever was free before is overwritten before this.
        groups.expiry[group] = ints[ALLOCATED] + free_before


@compiled
def _cached_tokens(groups, ints, group):
    if groups.users[group] == 0 and ints[ALLOCATED] > groups.expiry[group]:
        groups.cached[group] = 0
    return groups.cached[group]


# -- sequences ------------------------------------------------------------------------------------


@compiled
def _unlink_running(slots, ints, slot):
    before, after = slots.run_before[slot], slots.run_after[slot]
    if before == NO_SLOT:
        ints[RUN_FIRST] = after
    else:
        slots.run_after[before] = after
    if after == NO_SLOT:
        ints[RUN_LAST] = before
    else:
        slots.run_before[after] = before
    slots.kind[slot] = 0
    slots.spare[ints[FREE_SLOTS]] = slot
    ints[FREE_SLOTS] += 1
    ints[RUNNING] -= 1
    ints[BLOCKED] = 0


@compiled
def _stop_decoding(slots, jobs, rules, times, totals, slot):
    """Take a sequence out of the decoding set; its place in the calendar of last tokens aside."""
    ints = totals.ints
    job = slots.job[slot]
    length = slots.offset[slot] + ints[TOKEN_CLOCK]
    jobs.max_gap[job] = max(jobs.max_gap[job], _longest_gap(slots, ints, slots.entry[slot]))
    ints[DECODING] -= 1
    ints[KV_TOKENS] -= length
    if rules.paged:
        slots.growth[(-slots.offset[slot]) % rules.block_size] -= 1
    if times.window:
        if length < times.window:
            ints[WINDOW_TOKENS] -= length
            ints[WINDOW_GROWING] -= 1
            slots.crossing[(times.window - slots.offset[slot]) & (len(slots.crossing) - 1)] -= 1
        else:
            ints[WINDOW_TOKENS] -= times.window


@compiled
def _start_decoding(slots, jobs, rules, times, totals, slot, made):
    ints = totals.ints
    job = slots.job[slot]
    length = slots.known[slot]
    offset = length - ints[TOKEN_CLOCK]
    key = ints[TOKEN_CLOCK] + jobs.output[job] - made
    slots.kind[slot] = DECODES
    slots.offset[slot] = offset
    slots.key[slot] = key
    slots.entry[slot] = ints[EMISSIONS]
    slots.joined[slot] = totals.floats[CLOCK]
    place = key & (len(slots.due) - 1)
    first = slots.due[place]
    slots.due_before[slot] = NO_SLOT
    slots.due_after[slot] = first
    if first != NO_SLOT:
        slots.due_before[first] = slot
    slots.due[place] = slot
    ints[DECODING] += 1
    ints[KV_TOKENS] += length
    if rules.paged:
        slots.growth[(-offset) % rules.block_size] += 1
    if times.window:
        if length < times.window:
            ints[WINDOW_TOKENS] += length
            ints[WINDOW_GROWING] += 1
            slots.crossing[(times.window - offset) & (len(slots.crossing) - 1)] += 1
        else:
            ints[WINDOW_TOKENS] += times.window
    if rules.prefill_first or rules.static:
        slots.newcomer[ints[NEWCOMERS]] = slot
        ints[NEWCOMERS] += 1


@compiled
def _finish(slots, jobs, groups, rules, totals, slot, free_before):
    ints = totals.ints
    job = slots.job[slot]
    jobs.finish[job] = totals.floats[CLOCK]
    jobs.status[job] = FINISHED
    ints[DONE] += 1
    group = jobs.group[job]
    if rules.caching and group >= 0:
        length = jobs.prompt[job] + jobs.output[job] - 1
        whole = length // rules.block_size * rules.block_size
        groups.cached[group] = max(_cached_tokens(groups, ints, group), whole)
    _release(slots, jobs, groups, rules, totals, slot, 0, free_before)
    _unlink_running(slots, ints, slot)
    _ask_again(rules, totals)


@compiled
def _finish_due(slots, jobs, groups, rules, times, totals, gain):
    """End the sequences whose last token fell into the `gain` tokens just made."""
    ints = totals.ints
    free_before = ints[FREE_BLOCKS]
    mask = len(slots.due) - 1
    for key in range(ints[TOKEN_CLOCK] - gain + 1, ints[TOKEN_CLOCK] + 1):
        slot = slots.due[key & mask]
        slots.due[key & mask] = NO_SLOT
        while slot != NO_SLOT:
            following = slots.due_after[slot]
            _stop_decoding(slots, jobs, rules, times, totals, slot)
            _finish(slots, jobs, groups, rules, totals, slot, free_before)
            slot = following


@compiled
def _preempt(slots, jobs, groups, rules, times, totals, slot, ahead, to_tail):
    """Free all blocks of a sequence and queue it again; prompt and answer so far are computed anew."""
    ints, floats = totals.ints, totals.floats
    job = slots.job[slot]
    free_before = ints[FREE_BLOCKS]
    _release(slots, jobs, groups, rules, totals, slot, ahead, free_before)
    if slots.kind[slot] == DECODES:
        length = slots.offset[slot] + ints[TOKEN_CLOCK]
        jobs.made[job] = length - jobs.prompt[job] + 1
        fresh = ints[EMISSIONS] == slots.entry[slot]
        jobs.last_token[job] = slots.joined[slot] if fresh else floats[LAST_EMISSION]
        _stop_decoding(slots, jobs, rules, times, totals, slot)
        before, after = slots.due_before[slot], slots.due_after[slot]
        if before == NO_SLOT:
            slots.due[slots.key[slot] & (len(slots.due) - 1)] = after
        else:
            slots.due_after[before] = after
        if after != NO_SLOT:
            slots.due_before[after] = before
        kept = 0
        for k in range(ints[NEWCOMERS]):
            if slots.newcomer[k] != slot:
                slots.newcomer[kept] = slots.newcomer[k]
                kept += 1
        ints[NEWCOMERS] = kept
    else:
        ints[PARTIAL_TOKENS] -= slots.computed[slot]
        kept = 0
        for k in range(ints[PARTIALS]):
            if slots.partial[k] != slot:
                slots.partial[kept] = slots.partial[k]
                kept += 1
        ints[PARTIALS] = kept
    _unlink_running(slots, ints, slot)
    jobs.paused[job] = floats[CLOCK]
    jobs.preemptions[job] += 1
    ints[PREEMPTIONS] += 1
    if to_tail:
        _push_tail(jobs, ints, job)
    else:
        _push_head(jobs, ints, job)


@compiled
def _grow(slots, jobs, groups, rules, times, totals, gain):
    """Take the blocks for the next tokens; preempt while they do not fit. True if anyone was."""
    ints = totals.ints
    need = _growth(slots, rules, ints, gain)
    preempted = need > ints[FREE_BLOCKS]
    if preempted and rules.retract:
        _retract(slots, jobs, groups, rules, times, totals, gain)
        need = _growth(slots, rules, ints, gain)
    while need > ints[FREE_BLOCKS]:
        slot = ints[RUN_LAST]
        _preempt(slots, jobs, groups, rules, times, totals, slot, 0, False)
        need = _growth(slots, rules, ints, gain)
    ints[FREE_BLOCKS] -= need
    ints[ALLOCATED] += need
    return preempted


@compiled
def _made(slots, jobs, ints, slot):
    job = slots.job[slot]
    if slots.kind[slot] == DECODES:
        return slots.offset[slot] + ints[TOKEN_CLOCK] - jobs.prompt[job] + 1
    return jobs.made[job]


@compiled
def _retract(slots, jobs, groups, rules, times, totals, gain):
    """SGLang: evict the fewest output tokens first (ties: longest prompt, then last admitted)."""
    ints, floats = totals.ints, totals.floats
    first = True
    while ints[DECODING] > 1 and (first or ints[FREE_BLOCKS] < _growth(slots, rules, ints, gain * RETRACT_STEPS)):
        first = False
        worst, slot = NO_SLOT, ints[RUN_FIRST]
        while slot != NO_SLOT:
            if slots.kind[slot] == DECODES:
                if worst == NO_SLOT:
                    worst = slot
                else:
                    a, b = _made(slots, jobs, ints, slot), _made(slots, jobs, ints, worst)
                    p, q = jobs.prompt[slots.job[slot]], jobs.prompt[slots.job[worst]]
                    if a < b or (a == b and p >= q):
                        worst = slot
            slot = slots.run_after[slot]
        _preempt(slots, jobs, groups, rules, times, totals, worst, 0, True)
    made, limit, slot = 0, 0, ints[RUN_FIRST]
    while slot != NO_SLOT:
        made += _made(slots, jobs, ints, slot) + RETRACT_STEPS
        limit += jobs.limit[slots.job[slot]]
        slot = slots.run_after[slot]
    floats[RATIO] = min(1.0, made / max(1, limit))


# -- scheduling -----------------------------------------------------------------------------------


@compiled
def _reserve_running(slots, jobs, totals):
    """SGLang: the part of the remaining outputs of all running sequences that admission sets aside."""
    ints = totals.ints
    remaining, slot = 0, ints[RUN_FIRST]
    while slot != NO_SLOT:
        left = jobs.limit[slots.job[slot]] - _made(slots, jobs, ints, slot)
        remaining += min(left, CLIP_OUTPUT_TOKENS)
        slot = slots.run_after[slot]
    totals.floats[RESERVED_TOKENS] = remaining * totals.floats[RATIO]


@compiled
def _add_chunk(slots, ints, slot, tokens):
    slots.chunk_slot[ints[CHUNKS]] = slot
    slots.chunk_tokens[ints[CHUNKS]] = tokens
    ints[CHUNKS] += 1
    ints[PREFILL_TOKENS] += tokens


@compiled
def _continue_partials(slots, jobs, groups, rules, times, totals, budget, ahead):
    """Go on with prompts that are under way. Returns the budget left and whether anyone was preempted."""
    ints = totals.ints
    preempted = False
    k = 0
    while k < ints[PARTIALS] and budget > 0:
        slot = slots.partial[k]
        tokens = min(min(slots.known[slot] - slots.computed[slot], rules.threshold), budget)
        evicted = False
        if rules.paged and not rules.prefill_first:
            covered = slots.computed[slot]
            need = _blocks(rules, covered + tokens) - _blocks(rules, covered)
            while need > ints[FREE_BLOCKS] and not evicted:
                victim = ints[RUN_LAST]
                evicted = victim == slot
                if slots.kind[victim] == DECODES:
                    budget += rules.tokens_per_decode
                _preempt(slots, jobs, groups, rules, times, totals, victim, ahead, False)
                preempted = True
            if not evicted:
                ints[FREE_BLOCKS] -= need
                ints[ALLOCATED] += need
                slots.held[slot] += need
        if evicted:
            break  # it was the last of the list
        _add_chunk(slots, ints, slot, tokens)
        budget -= tokens
        k += 1
    return budget, preempted


@compiled
def _hold_back(ints, reason):
    ints[REASON] = reason
    ints[BLOCKED] = 1
    return 0


@compiled
def _admit(slots, jobs, groups, rules, totals, budget):
    """Start the head of the queue if it may start now. Returns the tokens of its first chunk, 0 = not now."""
    ints, floats = totals.ints, totals.floats
    job = ints[QUEUE_HEAD]
    if ints[RUNNING] >= rules.slots:
        return _hold_back(ints, BY_SLOTS)
    size = rules.block_size
    known = jobs.prompt[job] + jobs.made[job]
    group, shared, pinned = jobs.group[job], 0, 0
    if rules.caching and group >= 0:
        shared = min(min(jobs.prefix[job], _cached_tokens(groups, ints, group)), known - 1) // size
        pinned = max(0, shared - groups.held[group])
    todo = known - shared * size
    tokens = todo
    if rules.chunked:
        tokens = min(min(todo, rules.threshold), budget)
    elif todo > budget and (ints[DECODING] or ints[CHUNKS]) and (ints[CHUNKS] or not rules.prefill_first):
        ints[REASON] = BY_BUDGET
        ints[BLOCKED] = 0 if ints[CHUNKS] else 1
        return 0
    own = rules.fixed_blocks - shared
    if rules.paged:
        whole = own + _blocks(rules, known)
        first = whole if rules.prefill_first else own + _blocks(rules, shared * size + tokens)
    else:
        whole = own + _blocks(rules, jobs.prompt[job] + jobs.limit[job] if rules.reserve_output else rules.max_len)
        first = whole
    if whole + pinned > ints[FREE_BLOCKS]:
        return _hold_back(ints, BY_KV)
    future = min(jobs.limit[job] - jobs.made[job], CLIP_OUTPUT_TOKENS)
    if rules.retract:
        room = ints[FREE_BLOCKS] * size - floats[RESERVED_TOKENS]
        if ints[RUNNING] and todo + pinned * size + future >= room:
            return _hold_back(ints, BY_KV)
        floats[RESERVED_TOKENS] += future
    _pop_head(jobs, ints)
    since = jobs.paused[job] if jobs.preemptions[job] else jobs.arrival[job]
    floats[WAITING_AREA] += floats[CLOCK] - since
    if np.isnan(jobs.admitted[job]):
        jobs.admitted[job] = floats[CLOCK]
    _take_slot(slots, groups, rules, ints, job, group, known, shared, pinned, first)
    _add_chunk(slots, ints, ints[RUN_LAST], tokens)
    return tokens


@compiled
def _take_slot(slots, groups, rules, ints, job, group, known, shared, pinned, first):
    ints[FREE_BLOCKS] -= first + pinned
    ints[ALLOCATED] += first
    if shared:
        groups.users[group] += 1
        groups.held[group] += pinned
        ints[SHARED_TWICE] += shared - pinned
        ints[HIT_TOKENS] += shared * rules.block_size
    ints[FREE_SLOTS] -= 1
    slot = slots.spare[ints[FREE_SLOTS]]
    slots.job[slot] = job
    slots.kind[slot] = PARTIAL
    slots.computed[slot] = shared * rules.block_size
    slots.known[slot] = known
    slots.held[slot] = first
    slots.shared[slot] = shared
    ints[PARTIAL_TOKENS] += shared * rules.block_size
    slots.partial[ints[PARTIALS]] = slot
    ints[PARTIALS] += 1
    slots.run_before[slot] = ints[RUN_LAST]
    slots.run_after[slot] = NO_SLOT
    if ints[RUN_LAST] == NO_SLOT:
        ints[RUN_FIRST] = slot
    else:
        slots.run_after[ints[RUN_LAST]] = slot
    ints[RUN_LAST] = slot
    ints[RUNNING] += 1


@compiled
def _admit_all(slots, jobs, groups, rules, totals, budget):
    ints = totals.ints
    ints[REASON] = BY_NOTHING
    while ints[WAITING]:
        if budget <= 0:
            ints[REASON] = BY_BUDGET
            break
        tokens = _admit(slots, jobs, groups, rules, totals, budget)
        if tokens == 0:
            break
        budget -= tokens


@compiled
def _prompts_may_start(rules, ints):
    """Whether a prefill-first engine looks at its queue now (TGI lets decoding go on for a while)."""
    if ints[WAITING] == 0 or ints[BLOCKED]:
        return False
    if ints[DECODING] == 0 or (rules.max_waiting_steps == 0 and rules.serve_ratio == 0.0):
        return True
    if rules.max_waiting_steps and ints[STEPS_SINCE_PREFILL] >= rules.max_waiting_steps:
        return True
    return rules.serve_ratio > 0.0 and ints[WAITING] >= rules.serve_ratio * ints[RUNNING]


@compiled
def _advance_tokens(slots, times, ints, gain):
    """Every decoding sequence makes `gain` tokens."""
    ints[KV_TOKENS] += gain * ints[DECODING]
    ints[DECODE_TOKENS] += gain * ints[DECODING]
    if times.window:
        mask = len(slots.crossing) - 1
        for _ in range(gain):
            ints[TOKEN_CLOCK] += 1
            ints[WINDOW_TOKENS] += ints[WINDOW_GROWING]
            ints[WINDOW_GROWING] -= slots.crossing[ints[TOKEN_CLOCK] & mask]
            slots.crossing[ints[TOKEN_CLOCK] & mask] = 0
    else:
        ints[TOKEN_CLOCK] += gain
    ints[DECODE_STEPS] += 1


@compiled
def _account(rules, totals, step_s, tokens):
    """Pass the time of a step: clock, integrals, samples."""
    ints, floats = totals.ints, totals.floats
    floats[CLOCK] += step_s
    floats[BUSY_S] += step_s
    floats[RUNNING_AREA] += step_s * ints[RUNNING]
    used = rules.blocks - ints[FREE_BLOCKS]
    written = ints[KV_TOKENS] + ints[PARTIAL_TOKENS] - rules.block_size * ints[SHARED_TWICE]
    floats[USED_AREA] += step_s * used
    floats[WRITTEN_AREA] += step_s * written
    if ints[WAITING]:
        floats[BLOCKED_BY_NOTHING_S + ints[REASON]] += step_s
    ints[DONE_BEFORE_STEP] = ints[DONE]
    ints[PEAK_RUNNING] = max(ints[PEAK_RUNNING], ints[RUNNING])
    ints[STEPS] += 1
    if ints[STEPS] >= ints[NEXT_SAMPLE]:
        _sample(totals, tokens, used, written)


@compiled
def _sample(totals, tokens, used, written):
    ints, samples = totals.ints, totals.samples
    row = samples[ints[SAMPLES]]
    row[0] = totals.floats[CLOCK]
    row[1] = ints[RUNNING]
    row[2] = ints[WAITING]
    row[3] = tokens
    row[4] = used
    row[5] = written
    row[6] = ints[PREEMPTIONS]
    ints[SAMPLES] += 1
    if ints[SAMPLES] == MAX_SAMPLES:  # thin out: every other sample, twice as far apart
        for k in range(MAX_SAMPLES // 2):
            samples[k] = samples[2 * k + 1]
        ints[SAMPLES] = MAX_SAMPLES // 2
        ints[SAMPLE_STRIDE] *= 2
    ints[NEXT_SAMPLE] = ints[STEPS] + ints[SAMPLE_STRIDE]


@compiled
def _complete_prompt(slots, jobs, groups, rules, times, totals, slot, free_before):
    """The last chunk of a prompt ran: its sequence emits a token."""
    ints, floats = totals.ints, totals.floats
    job = slots.job[slot]
    known = slots.known[slot]
    ints[PARTIAL_TOKENS] -= known
    made = jobs.made[job] + 1
    if made == 1:
        jobs.first_token[job] = floats[CLOCK]
    else:
        gap = floats[CLOCK] - jobs.last_token[job]
        jobs.max_gap[job] = max(jobs.max_gap[job], gap)
        totals.gap_count[_gap_bin(totals, gap)] += 1
    group = jobs.group[job]
    if rules.caching and group >= 0:
        whole = min(jobs.prefix[job], known - 1) // rules.block_size
        groups.cached[group] = max(_cached_tokens(groups, ints, group), whole * rules.block_size)
        if whole and slots.shared[slot] == 0 and groups.users[group] == 0:
            slots.shared[slot] = whole  # its own copy becomes the group's
            slots.held[slot] -= whole
            groups.users[group] = 1
            groups.held[group] = whole
        ints[BLOCKED] = 0
    if made == jobs.output[job]:
        _finish(slots, jobs, groups, rules, totals, slot, free_before)
    else:
        _start_decoding(slots, jobs, rules, times, totals, slot, made)


@compiled
def _step(slots, jobs, groups, rules, times, totals):
    """One general step: schedule, pass its time, hand out tokens. False if there was nothing to do."""
    ints, floats = totals.ints, totals.floats
    ints[CHUNKS] = 0
    gain = _gain(rules, ints[DECODE_STEPS])
    prompts_only = False
    if not ints[BLOCKED]:
        ints[REASON] = BY_NOTHING
    if rules.prefill_first:
        if ints[PARTIALS] or _prompts_may_start(rules, ints):
            if rules.retract:
                _reserve_running(slots, jobs, totals)
            budget, _ = _continue_partials(slots, jobs, groups, rules, times, totals, rules.budget, 0)
            if not ints[BLOCKED]:
                _admit_all(slots, jobs, groups, rules, totals, budget)
            prompts_only = ints[CHUNKS] > 0
        if not prompts_only and ints[DECODING] and _grow(slots, jobs, groups, rules, times, totals, gain):
            ints[REASON] = BY_KV
    else:
        preempted = ints[DECODING] > 0 and _grow(slots, jobs, groups, rules, times, totals, gain)
        budget = rules.budget - ints[DECODING] * rules.tokens_per_decode
        budget, also = _continue_partials(slots, jobs, groups, rules, times, totals, budget, gain)
        if preempted or also:
            ints[REASON] = BY_KV
        elif not ints[BLOCKED]:
            _admit_all(slots, jobs, groups, rules, totals, budget)
    decodes = 0 if prompts_only else ints[DECODING]
    chunks = ints[CHUNKS]
    if decodes + chunks == 0:
        return False
    tokens, prefill, rows = decodes * rules.tokens_per_decode, 0.0, decodes * rules.tokens_per_decode
    for k in range(chunks):
        slot, part = slots.chunk_slot[k], slots.chunk_tokens[k]
        prefill += _chunk_attention_s(times, part, slots.computed[slot])
        slots.computed[slot] += part
        ints[PARTIAL_TOKENS] += part
        tokens += part
        if slots.computed[slot] == slots.known[slot]:
            rows += 1
    if decodes:
        _advance_tokens(slots, times, ints, gain)
    kv, window_kv = (ints[KV_TOKENS], ints[WINDOW_TOKENS]) if decodes else (0, 0)
    step_s = _step_s(times, floats, tokens, chunks > 0, rows, decodes, kv, window_kv, prefill, decodes + chunks)
    _account(rules, totals, step_s, tokens)
    _hand_out(slots, jobs, groups, rules, times, totals, decodes, gain)
    return True


@compiled
def _hand_out(slots, jobs, groups, rules, times, totals, decodes, gain):
    """Tokens of a step that has passed: to decoding sequences, then to prompts that it completed."""
    ints, floats = totals.ints, totals.floats
    if decodes:
        _emit(slots, jobs, totals, rules)
        _finish_due(slots, jobs, groups, rules, times, totals, gain)
        _decode_step_done(rules, totals)
    if ints[CHUNKS]:
        ints[STEPS_SINCE_PREFILL] = 0
        free_before = ints[FREE_BLOCKS]
        for k in range(ints[CHUNKS]):
            slot = slots.chunk_slot[k]
            if slots.computed[slot] == slots.known[slot]:
                _complete_prompt(slots, jobs, groups, rules, times, totals, slot, free_before)
        kept = 0
        for k in range(ints[PARTIALS]):
            slot = slots.partial[k]
            if slots.kind[slot] == PARTIAL:
                slots.partial[kept] = slot
                kept += 1
        ints[PARTIALS] = kept
    if not rules.prefill_first and not rules.static:
        floats[LAST_EMISSION] = floats[CLOCK]


@compiled
def _decode_step_done(rules, totals):
    totals.ints[STEPS_SINCE_PREFILL] += 1
    if rules.retract:
        decay = (rules.start_ratio - rules.min_ratio) / RATIO_DECAY_STEPS
        totals.floats[RATIO] = max(rules.min_ratio, totals.floats[RATIO] - decay)


@compiled
def _decode_run(slots, jobs, groups, rules, times, totals, feed, until):
    """Steps that only decode, until a sequence ends, a block is missing or a request arrives.

    Returns False if not even one step could be made.
    """
    ints, floats = totals.ints, totals.floats
    arrival = min(_next_arrival_s(jobs, rules, totals, feed), until)
    batch = ints[BATCH] if rules.static else ints[DECODING]
    tokens = batch * rules.tokens_per_decode
    mask = len(slots.due) - 1
    moved = False
    if not rules.static and not ints[BLOCKED]:
        ints[REASON] = BY_NOTHING
    while True:
        gain = _gain(rules, ints[DECODE_STEPS])
        need = _growth(slots, rules, ints, gain)
        if need > ints[FREE_BLOCKS]:
            return moved
        ints[FREE_BLOCKS] -= need
        ints[ALLOCATED] += need
        _advance_tokens(slots, times, ints, gain)
        if rules.static:
            ints[BATCH_PAD] += gain
            ints[BATCH_KV] += gain * batch
            kv, window_kv = ints[BATCH_KV], batch * min(ints[BATCH_PAD], times.window)
        else:
            kv, window_kv = ints[KV_TOKENS], ints[WINDOW_TOKENS]
        step_s = _step_s(times, floats, tokens, False, 0, batch, kv, window_kv, 0.0, batch)
        _account(rules, totals, step_s, tokens)
        moved = True
        _emit(slots, jobs, totals, rules)
        _decode_step_done(rules, totals)
        due = False
        for key in range(ints[TOKEN_CLOCK] - gain + 1, ints[TOKEN_CLOCK] + 1):
            due = due or slots.due[key & mask] != NO_SLOT
        if due:
            _finish_due(slots, jobs, groups, rules, times, totals, gain)
            return True
        if floats[CLOCK] >= arrival:
            return True
        if rules.max_waiting_steps and ints[WAITING] and not ints[BLOCKED] and _prompts_may_start(rules, ints):
            return True
        if ints[STEPS] > MAX_STEPS:
            return True


# -- static batches -------------------------------------------------------------------------------


@compiled
def _start_batch(slots, jobs, groups, rules, times, totals, feed):
    """Release a static batch if it is full or has waited long enough. Returns the time to wait until, or -1."""
    ints, floats = totals.ints, totals.floats
    size, need, job = 0, 0, ints[QUEUE_HEAD]
    while job >= 0 and size < rules.slots:
        whole = jobs.prompt[job] + jobs.limit[job] if rules.reserve_output else rules.max_len
        more = _blocks(rules, whole) + rules.fixed_blocks
        if need + more > ints[FREE_BLOCKS]:
            break
        need += more
        size += 1
        job = jobs.after[job]
    full = size == rules.slots or job >= 0
    arrival = _next_arrival_s(jobs, rules, totals, feed)
    deadline = jobs.arrival[ints[QUEUE_HEAD]] + rules.timeout_s
    last = arrival == np.inf and ints[CLOSED] == 1
    if not full and not last and floats[CLOCK] < deadline:
        return min(arrival, deadline)
    ints[REASON] = BY_SLOTS if size == rules.slots else BY_KV
    ints[CHUNKS] = 0
    pad = 0
    for _ in range(size):
        head = _pop_head(jobs, ints)
        floats[WAITING_AREA] += floats[CLOCK] - jobs.arrival[head]
        jobs.admitted[head] = floats[CLOCK]
        whole = jobs.prompt[head] + jobs.limit[head] if rules.reserve_output else rules.max_len
        first = _blocks(rules, whole) + rules.fixed_blocks
        _take_slot(slots, groups, rules, ints, head, -1, jobs.prompt[head], 0, 0, first)
        pad = max(pad, jobs.prompt[head])
        _add_chunk(slots, ints, ints[RUN_LAST], jobs.prompt[head])
    ints[PREFILL_TOKENS] += size * pad
    prefill = 0.0
    for k in range(size):
        slot = slots.chunk_slot[k]
        prefill += _chunk_attention_s(times, pad, 0)
        ints[PREFILL_TOKENS] -= slots.known[slot]
        slots.computed[slot] = slots.known[slot]
        ints[PARTIAL_TOKENS] += slots.known[slot]
    ints[BATCH], ints[BATCH_PAD], ints[BATCH_KV] = size, pad, size * pad
    step_s = _step_s(times, floats, size * pad, True, size, 0, 0, 0, prefill, size)
    _account(rules, totals, step_s, size * pad)
    _hand_out(slots, jobs, groups, rules, times, totals, 0, 0)
    return -1.0


@compiled
def _serve_static(slots, jobs, groups, rules, times, totals, feed, until):
    """Static batches: one move. Returns False when nothing can happen before `until`."""
    ints, floats = totals.ints, totals.floats
    if ints[BATCH] == 0:
        wait = _start_batch(slots, jobs, groups, rules, times, totals, feed)
        if wait >= until:
            return False
        if wait >= 0:
            floats[CLOCK] = max(floats[CLOCK], wait)
            return True
    elif ints[DECODING]:
        _decode_run(slots, jobs, groups, rules, times, totals, feed, until)
    if ints[DECODING] == 0:
        ints[BATCH] = 0
        ints[FREE_BLOCKS] = rules.blocks
    return True


@compiled
def advance(jobs, slots, groups, rules, times, totals, feed, until):
    """Run one replica until its clock reaches `until` or it has nothing to do before then.

    A step that starts before `until` is finished. State stays in the arrays, so that a later call
    continues; `feed` lists the requests of this replica, of which `ints[FED]` are known so far.
    """
    ints, floats = totals.ints, totals.floats
    while ints[STOPPED] == 0:
        _take_arrivals(jobs, rules, totals, feed)
        if ints[RUNNING] == 0 and ints[WAITING] == 0:
            arrival = _next_arrival_s(jobs, rules, totals, feed)
            if arrival >= until:
                return
            floats[CLOCK] = arrival
            continue
        if floats[CLOCK] >= until:
            return
        if ints[STEPS] > MAX_STEPS:
            ints[STOPPED] = STOPPED_BY_LOAD
            return
        if rules.static:
            if not _serve_static(slots, jobs, groups, rules, times, totals, feed, until):
                return
            continue
        quiet = ints[WAITING] == 0 or ints[BLOCKED] == 1
        if rules.prefill_first and not quiet:
            quiet = not _prompts_may_start(rules, ints)
        if (
            quiet
            and ints[PARTIALS] == 0
            and ints[DECODING]
            and _decode_run(slots, jobs, groups, rules, times, totals, feed, until)
        ):
            continue
        if not _step(slots, jobs, groups, rules, times, totals):
            ints[STOPPED] = STOPPED_BY_FAULT
