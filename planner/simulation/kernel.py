"""The compiled step loop: one scheduler for every engine, driven by `rules`.

`advance` runs one replica until a time. A general step schedules (`_step`); runs of steps in which
nothing but the clock changes pass through `_decode_run`, whose cost per step does not depend on the
batch. Both add the same floating-point numbers in the same order, so a run equals its single steps
bit for bit.

The arguments have the same names everywhere (planner.simulation.state): `jobs`, `slots`, `groups`
and `calendar` are arrays of records, `tallies` and `tables` arrays of numbers, `rules`, `times` and
`st` (the state) single records. It is one long module because numba's cache on disk notices changes
only in the file of the function that it caches.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from planner.simulation.records import ABANDONED, FINISHED, REJECTED, UNFINISHED
from planner.simulation.state import (
    BINS_PER_OCTAVE,
    BY_BUDGET,
    BY_KV,
    BY_LORA,
    BY_NOTHING,
    BY_SLOTS,
    CLIP_OUTPUT_TOKENS,
    DECODE,
    DECODES,
    FIRST_OCTAVE,
    HEAD,
    MAX_SAMPLES,
    MIXED,
    NO_RUN,
    NO_SLOT,
    NUM_BINS,
    NUM_PARTS,
    NUM_REASONS,
    PARTIAL,
    RATIO_DECAY_STEPS,
    RETRACT_STEPS,
    SAMPLE_WIDTH,
    SAMPLES_FROM,
)

log = logging.getLogger(__name__)
MAX_STEPS = 500_000_000
ENOUGH_DONE = 200  # an overloaded run goes on until its capacity can be told
STOPPED_BY_LOAD, STOPPED_BY_FAULT = 1, 2


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a part of the loop, which only other parts call."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def compiled_entry(function: Callable[..., Any]) -> Any:
    """Compile the loop's entry; keep the machine code on disk where some cache folder can be written."""
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to write to: compile in memory, once per process
        return numba.njit(nogil=True, error_model="numpy")(function)


def is_compiled() -> bool:
    """Whether this process has the step loop ready to run."""
    return bool(getattr(advance, "signatures", True))


# -- time ---------------------------------------------------------------------------------------


@compiled
def _at(table, last, slope, index):
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
def _step_s(tables, times, st, tokens, mixed, rows, decodes, kv, window_kv, prefill, sequences):
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
        linear = _at(tables[MIXED], times.mixed_last, times.mixed_slope, tokens)
        head = _at(tables[HEAD], times.head_last, times.head_slope, rows)
    else:
        linear = _at(tables[DECODE], times.decode_last, times.decode_slope, tokens)
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
    st.linear_s += stages * linear
    st.head_s += stages * head
    st.decode_attention_s += stages * attention
    st.prefill_attention_s += stages * prefill
    st.host_s += stages * exposed
    return stages * (device + exposed)


@compiled
def _gain(rules, steps):
    """Tokens that every sequence makes in the next decode step; its mean is rules.gain."""
    return int(np.floor((steps + 1) * rules.gain)) - int(np.floor(steps * rules.gain))


# -- gaps between tokens --------------------------------------------------------------------------


@compiled
def _gap_bin(gap):
    """Bin of a gap: 64 per octave."""
    fraction, exponent = math.frexp(gap)
    index = ((exponent - 1 - FIRST_OCTAVE) * BINS_PER_OCTAVE) + int((fraction - 0.5) * 2 * BINS_PER_OCTAVE)
    return min(max(0, index), NUM_BINS - 1)


@compiled
def _push_gap(calendar, st, gap):
    """File the gap of this emission, dropping smaller ones before it: what remains are suffix maxima."""
    first, top = st.stack_from, st.stack_to
    while top > first and calendar[top - 1].stack_gap <= gap:
        top -= 1
    if top == len(calendar):
        # No sequence decodes longer than half of it: older entries are asked for no more.
        oldest = st.emissions - len(calendar) // 2
        kept = 0
        for k in range(first, top):
            if calendar[k].stack_index > oldest:
                calendar[kept].stack_index = calendar[k].stack_index
                calendar[kept].stack_gap = calendar[k].stack_gap
                kept += 1
        top = kept
        st.stack_from = 0
    calendar[top].stack_index = st.emissions
    calendar[top].stack_gap = gap
    st.stack_to = top + 1


@compiled
def _longest_gap(calendar, st, entry):
    """The longest gap of the emissions after `entry`."""
    low, high = st.stack_from, st.stack_to
    while low < high:
        middle = (low + high) // 2
        if calendar[middle].stack_index > entry:
            high = middle
        else:
            low = middle + 1
    return calendar[low].stack_gap if low < st.stack_to else 0.0


@compiled
def _emit(jobs, slots, calendar, tallies, st):
    """All decoding sequences got tokens at this clock: record the gap."""
    st.emissions += 1
    gap = st.clock - st.last_emission
    st.last_emission = st.clock
    newcomers = st.newcomers
    if st.decoding > newcomers:
        _push_gap(calendar, st, gap)
        tallies[st.gaps_from + _gap_bin(gap)] += st.decoding - newcomers
    for k in range(newcomers):
        slot = slots[k].newcomer
        own = st.clock - slots[slot].joined
        job = slots[slot].job
        jobs[job].max_gap = max(jobs[job].max_gap, own)
        tallies[st.gaps_from + _gap_bin(own)] += 1
        slots[slot].entry = st.emissions
        slots[slot].joined = st.clock
    st.newcomers = 0


# -- queue ----------------------------------------------------------------------------------------


@compiled
def _next_arrival_s(jobs, rules, st, feed):
    if st.next >= st.fed:
        return np.inf
    if rules.users:
        return jobs[st.ready_from].ready if st.ready else np.inf
    return jobs[feed[st.next]].arrival


@compiled
def _ask_again(jobs, rules, st):
    """Closed loop: the user thinks and will ask again."""
    if rules.users:
        jobs[(st.ready_from + st.ready) % rules.users].ready = st.clock + rules.think_s
        st.ready += 1


@compiled
def _never_fits(jobs, rules, job):
    prompt, output = jobs[job].prompt, jobs[job].output
    if prompt + output > rules.max_len:
        return True
    size = rules.block_size
    if rules.paged:
        tokens = prompt + output - 1 + rules.tokens_per_decode - 1
    elif rules.reserve_output:
        tokens = prompt + jobs[job].limit
    else:
        tokens = rules.max_len
    return (tokens + size - 1) // size + rules.fixed_blocks > rules.blocks


@compiled
def _oldest(jobs, st, feed, silent):
    """The earliest request that is still here (`silent`: and has seen no token), -1 if there is none."""
    k = st.silent_from if silent else st.open_from
    found = -1
    while found < 0 and k < st.next:
        job = feed[k]
        if jobs[job].status == UNFINISHED and not (silent and jobs[job].first_token >= 0):
            found = job
        else:
            k += 1
    if silent:
        st.silent_from = k
    else:
        st.open_from = k
    return found


@compiled
def _since(jobs, st, feed, silent):
    """Arrival of the client that loses patience next; never late when nobody is here."""
    job = _oldest(jobs, st, feed, silent)
    return jobs[job].arrival if job >= 0 else np.inf


@compiled
def _leave(jobs, slots, groups, runs, calendar, tallies, rules, times, st, feed):
    """Let go whose first token or whole answer takes too long. Patience is one for all: who came first goes first."""
    for silent in (True, False):
        limit = rules.patience_s if silent else rules.timeout_s
        while limit < np.inf:
            job = _oldest(jobs, st, feed, silent)
            if job < 0 or not st.clock - jobs[job].arrival > limit:
                break
            jobs[job].status = ABANDONED
            if jobs[job].place == 0:
                _leave_queue(jobs, groups, runs, slots, st, job)
                st.waiting_area += st.clock - jobs[job].paused if jobs[job].preemptions else limit
            elif not rules.static:  # a static batch computes the answer all the same
                _take_out(jobs, slots, groups, runs, calendar, tallies, rules, times, st, jobs[job].place - 1, False)
            st.done += 1
            st.blocked = 0
            _ask_again(jobs, rules, st)


@compiled
def _leave_queue(jobs, groups, runs, slots, st, job):
    before, at = -1, st.queue_head
    while at != job:
        before, at = at, jobs[at].after
    _take_from_queue(jobs, slots, st, before, job)
    if jobs[job].own:
        _settle(jobs, groups, runs, st)
        _forget_own(jobs, groups, runs, st, job)


@compiled
def _take_arrivals(jobs, slots, groups, runs, calendar, tallies, rules, times, st, feed):
    """Move who has arrived into the queue, or turn them away; let go who has lost patience."""
    now = st.clock
    while True:
        if rules.impatient:
            _leave(jobs, slots, groups, runs, calendar, tallies, rules, times, st, feed)
        arrival = _next_arrival_s(jobs, rules, st, feed)
        if not arrival <= now:
            break
        job = feed[st.next]
        st.next += 1
        st.gaps_from = max(st.gaps_from, NUM_REASONS + job * NUM_PARTS // len(jobs) * NUM_BINS)
        if rules.users:
            jobs[job].arrival = arrival
            st.ready_from = (st.ready_from + 1) % rules.users
            st.ready -= 1
        waiting, running = st.waiting, st.running
        full = waiting - max(0, rules.slots - running) >= rules.max_queued or waiting + running >= rules.max_concurrent
        if full or _never_fits(jobs, rules, job) or (jobs[job].adapter >= 0 and rules.max_loras == 0):
            jobs[job].status = REJECTED
            st.done += 1
            _ask_again(jobs, rules, st)
            continue
        _push_tail(jobs, slots, st, job)
        if rules.lora:
            st.blocked = 0  # those before it may be held up by their adapters
    if st.waiting > rules.stop_waiting and 10 * st.waiting > 3 * st.next and st.done >= ENOUGH_DONE:
        st.stopped = STOPPED_BY_LOAD


@compiled
def _last_of(slots, st, highest):
    """The last in the queue of a class up to `highest` (0 goes first), -1 if there is none."""
    for k in range(highest, -1, -1):
        if slots[k].class_tail >= 0:
            return slots[k].class_tail
    return -1


@compiled
def _insert_after(jobs, st, before, job):
    if before < 0:
        jobs[job].after = st.queue_head
        st.queue_head = job
        st.blocked = 0
    else:
        jobs[job].after = jobs[before].after
        jobs[before].after = job
    st.waiting += 1


@compiled
def _push_tail(jobs, slots, st, job):
    """Queue behind everyone of its class."""
    own = jobs[job].priority
    _insert_after(jobs, st, _last_of(slots, st, own), job)
    slots[own].class_tail = job


@compiled
def _push_head(jobs, slots, st, job):
    """Queue before everyone of its class."""
    own = jobs[job].priority
    _insert_after(jobs, st, _last_of(slots, st, own - 1), job)
    if slots[own].class_tail < 0:
        slots[own].class_tail = job


@compiled
def _take_from_queue(jobs, slots, st, before, job):
    """Unlink a request that stands behind `before` (-1: first)."""
    own = jobs[job].priority
    if slots[own].class_tail == job:
        same = before >= 0 and jobs[before].priority == own
        slots[own].class_tail = before if same else -1
    if before < 0:
        st.queue_head = jobs[job].after
    else:
        jobs[before].after = jobs[job].after
    st.waiting -= 1
    st.blocked = 0


# -- memory ---------------------------------------------------------------------------------------


@compiled
def _blocks(rules, tokens):
    return (tokens + rules.block_size - 1) // rules.block_size


@compiled
def _growth(calendar, rules, st, gain):
    """Blocks that all decoding sequences together need for `gain` more tokens each."""
    if not rules.paged:
        return 0
    need = 0
    for step in range(gain):
        need += calendar[(st.token_clock + step) % rules.block_size].growth
    return need


@compiled
def _release(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, keep):
    """Give back what a sequence holds, the `st.ahead` tokens included that were allocated but not yet made.

    `keep`: it was preempted and may find its own blocks again.
    """
    job = slots[slot].job
    if rules.static:
        return  # a static batch gives its memory back as a whole
    length, written = slots[slot].computed, slots[slot].computed
    decodes = slots[slot].kind == DECODES
    if decodes:
        length = slots[slot].offset + st.token_clock
        written = min(length, jobs[job].prompt + jobs[job].output - 1)
    if rules.grouped:
        _publish(jobs, slots, groups, runs, rules, st, slot, written)
    shared = slots[slot].shared
    own = slots[slot].held
    if rules.paged and decodes:
        own = _blocks(rules, length + st.ahead) - shared + rules.fixed_blocks
    kept = 0
    if keep and rules.caching and rules.paged:
        jobs[job].prefix = max(jobs[job].prefix, shared * rules.block_size)
        # SGLang leaves only the prompt in its cache
        kept = max(0, (min(written, jobs[job].prompt) if rules.retract else written) // rules.block_size - shared)
    st.free_blocks += own - kept
    if kept:
        jobs[job].own = _add_run(jobs, groups, runs, st, -1, job, shared, shared + kept)
    if shared:
        _release_text(jobs, slots, groups, runs, st, slot, shared)


@compiled
def _release_text(jobs, slots, groups, runs, st, slot, shared):
    """Drop a sequence's hold on the text of its group; what nobody else holds becomes free, but can be found."""
    group = jobs[slots[slot].job].group
    groups[group].users -= 1
    freed = 0
    if shared == groups[group].top:
        groups[group].at_top -= 1
        if groups[group].at_top == 0:
            top, count, other = 0, 0, st.run_first
            if groups[group].users == 0:
                other = NO_SLOT
            while other != NO_SLOT:
                if other != slot and slots[other].shared >= max(1, top) and jobs[slots[other].job].group == group:
                    count = count + 1 if slots[other].shared == top else 1
                    top = slots[other].shared
                other = slots[other].run_after
            groups[group].top, groups[group].at_top = top, count
            freed = shared - top
            _add_run(jobs, groups, runs, st, group, -1, top, shared)
    st.shared_twice -= shared - freed


# -- free blocks, least recently used first -------------------------------------------------------
#
# vLLM keeps free blocks in a queue: new blocks are taken from its front, freed ones go to its back (the
# last of a sequence first), a hit takes them out of its middle. Only blocks that can be found again need
# a place, so the queue is a list of runs of such blocks, and of counts of others before each; what stands
# behind the last run is counted nowhere. The blocks taken since are struck off the front when somebody
# looks. A run is struck off from its end, since that stood before its beginning: what is left of a text
# in the cache is always its leading blocks.


@compiled
def _settle(jobs, groups, runs, st):
    """Strike off the front of the queue what has been taken since the last look."""
    taken = st.allocated - st.settled
    st.settled = st.allocated
    while taken > 0 and st.oldest_run != NO_RUN:
        run = st.oldest_run
        dead = min(taken, runs[run].dead)
        lost = min(taken - dead, runs[run].high - runs[run].low)
        runs[run].dead -= dead
        runs[run].high -= lost
        taken -= dead + lost
        st.queued -= dead + lost
        if runs[run].job < 0:
            groups[runs[run].group].cached -= lost
        if runs[run].high == runs[run].low:
            _drop_run(jobs, groups, runs, st, run)


@compiled
def _add_run(jobs, groups, runs, st, group, job, low, high):
    """Free blocks that can be found, at the back of the queue. Returns the number of their run."""
    _settle(jobs, groups, runs, st)
    run = st.spare_run
    if run != NO_RUN:
        st.spare_run = runs[run].after
    else:
        st.last_run += 1
        run = st.last_run
    dead = st.free_blocks - st.queued
    runs[run].low, runs[run].high, runs[run].dead = low, high, dead
    runs[run].group, runs[run].job = group, job
    runs[run].before, runs[run].after = st.newest_run, NO_RUN
    if st.newest_run != NO_RUN:
        runs[st.newest_run].after = run
    else:
        st.oldest_run = run
    st.newest_run = run
    runs[run].lower, runs[run].upper = NO_RUN, NO_RUN
    if job < 0:  # those of a group are linked by their place in its text
        upper = groups[group].lowest
        runs[run].upper = upper
        if upper != NO_RUN:
            runs[upper].lower = run
        else:
            groups[group].highest = run
        groups[group].lowest = run
    st.queued += dead + high - low
    st.free_blocks += high - low
    return run


@compiled
def _drop_run(jobs, groups, runs, st, run):
    """Take an empty run out of the queue; the dead blocks before it stay."""
    before, after = runs[run].before, runs[run].after
    if after != NO_RUN:
        runs[after].dead += runs[run].dead
        runs[after].before = before
    else:
        st.queued -= runs[run].dead
        st.newest_run = before
    if before != NO_RUN:
        runs[before].after = after
    else:
        st.oldest_run = after
    if runs[run].job >= 0:
        jobs[runs[run].job].own = NO_RUN
    else:
        group, lower, upper = runs[run].group, runs[run].lower, runs[run].upper
        if lower != NO_RUN:
            runs[lower].upper = upper
        else:
            groups[group].lowest = upper
        if upper != NO_RUN:
            runs[upper].lower = lower
        else:
            groups[group].highest = lower
    runs[run].after = st.spare_run
    st.spare_run = run


@compiled
def _hit_text(jobs, groups, runs, st, group, shared):
    """Take the first `shared` blocks of a text out of the queue, as far as they are free."""
    run = groups[group].lowest
    while run != NO_RUN and runs[run].low < shared:
        upper = runs[run].upper
        end = min(shared, runs[run].high)
        st.queued -= end - runs[run].low
        runs[run].low = end
        if end == runs[run].high:
            _drop_run(jobs, groups, runs, st, run)
        run = upper


@compiled
def _hit_own(jobs, groups, runs, st, job):
    """Take the blocks that a preempted request finds again out of the queue."""
    run = jobs[job].own
    st.queued -= runs[run].high - runs[run].low
    runs[run].low = runs[run].high
    _drop_run(jobs, groups, runs, st, run)


@compiled
def _forget_own(jobs, groups, runs, st, job):
    """Nobody will look for the blocks that a preempted request left: they keep their place in the queue."""
    run = jobs[job].own
    runs[run].dead += runs[run].high - runs[run].low
    runs[run].low = runs[run].high
    _drop_run(jobs, groups, runs, st, run)


@compiled
def _find(jobs, groups, runs, rules, st, job, known):
    """Blocks that a waiting request finds in the cache: of its group's text, then its own of before."""
    _settle(jobs, groups, runs, st)
    group, own, text = jobs[job].group, jobs[job].own, 0
    if group >= 0:
        text = min(groups[group].cached, min(jobs[job].prefix, known - 1) // rules.block_size)
    if own != NO_RUN and runs[own].low <= text < runs[own].high:
        return runs[own].low, runs[own].high - runs[own].low
    return text, 0


@compiled
def _publish(jobs, slots, groups, runs, rules, st, slot, tokens):
    """Let others find the blocks that a sequence has filled, if they go on where its group's text ends."""
    group = jobs[slots[slot].job].group
    if group < 0:
        return
    shared = slots[slot].shared
    full = min(tokens // rules.block_size, groups[group].limit)
    if full <= shared:
        return
    _settle(jobs, groups, runs, st)
    if groups[group].cached != shared:
        return
    if shared == 0:
        groups[group].users += 1
    slots[slot].shared = full
    slots[slot].held -= full - shared
    groups[group].cached = full
    groups[group].top, groups[group].at_top = full, 1  # it held all of the text, so nobody holds more
    st.blocked = 0


# -- sequences ------------------------------------------------------------------------------------


@compiled
def _unlink_running(jobs, slots, groups, rules, st, slot):
    job = slots[slot].job
    jobs[job].place = 0
    if rules.lora and jobs[job].adapter >= 0:
        groups[jobs[job].adapter].adapter_users -= 1
        st.adapters -= groups[jobs[job].adapter].adapter_users == 0
    before, after = slots[slot].run_before, slots[slot].run_after
    if before == NO_SLOT:
        st.run_first = after
    else:
        slots[before].run_after = after
    if after == NO_SLOT:
        st.run_last = before
    else:
        slots[after].run_before = before
    slots[slot].kind = 0
    slots[st.free_slots].spare = slot
    st.free_slots += 1
    st.running -= 1
    st.blocked = 0


@compiled
def _stop_decoding(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot):
    """Take a sequence out of the decoding set; its place in the calendar of last tokens aside."""
    job = slots[slot].job
    length = slots[slot].offset + st.token_clock
    jobs[job].max_gap = max(jobs[job].max_gap, _longest_gap(calendar, st, slots[slot].entry))
    st.decoding -= 1
    st.kv_tokens -= length
    if rules.paged:
        calendar[(-slots[slot].offset) % rules.block_size].growth -= 1
    if times.window:
        if length < times.window:
            st.window_tokens -= length
            st.window_growing -= 1
            calendar[(times.window - slots[slot].offset) & (len(calendar) // 2 - 1)].crossing -= 1
        else:
            st.window_tokens -= times.window


@compiled
def _start_decoding(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, made):
    job = slots[slot].job
    length = slots[slot].known
    offset = length - st.token_clock
    key = st.token_clock + jobs[job].output - made
    slots[slot].kind = DECODES
    slots[slot].offset = offset
    slots[slot].key = key
    slots[slot].entry = st.emissions
    slots[slot].joined = st.clock
    place = key & (len(calendar) // 2 - 1)
    first = calendar[place].due
    slots[slot].due_before = NO_SLOT
    slots[slot].due_after = first
    if first != NO_SLOT:
        slots[first].due_before = slot
    calendar[place].due = slot
    st.decoding += 1
    st.kv_tokens += length
    if rules.paged:
        calendar[(-offset) % rules.block_size].growth += 1
    if times.window:
        if length < times.window:
            st.window_tokens += length
            st.window_growing += 1
            calendar[(times.window - offset) & (len(calendar) // 2 - 1)].crossing += 1
        else:
            st.window_tokens += times.window
    if rules.prefill_first or rules.static:
        slots[st.newcomers].newcomer = slot
        st.newcomers += 1


@compiled
def _finish(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot):
    job = slots[slot].job
    _release(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, False)
    _unlink_running(jobs, slots, groups, rules, st, slot)
    if jobs[job].status == UNFINISHED:
        jobs[job].finish = st.clock
        jobs[job].status = FINISHED
        st.done += 1
        _ask_again(jobs, rules, st)


@compiled
def _finish_due(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain):
    """End the sequences whose last token fell into the `gain` tokens just made, in the order of admission."""
    mask = len(calendar) // 2 - 1
    count = 0
    for key in range(st.token_clock - gain + 1, st.token_clock + 1):
        slot = calendar[key & mask].due
        calendar[key & mask].due = NO_SLOT
        while slot != NO_SLOT:
            at = count
            if rules.grouped:  # the order in which blocks are freed matters
                while at > 0 and slots[slots[at - 1].ending].turn > slots[slot].turn:
                    slots[at].ending = slots[at - 1].ending
                    at -= 1
            slots[at].ending = slot
            count += 1
            slot = slots[slot].due_after
    for k in range(count):
        slot = slots[k].ending
        _stop_decoding(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
        _finish(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)


@compiled
def _take_out(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, keep):
    """Stop a sequence before its end and free its blocks."""
    job = slots[slot].job
    _release(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, keep)
    if slots[slot].kind == DECODES:
        length = slots[slot].offset + st.token_clock
        jobs[job].made = length - jobs[job].prompt + 1
        fresh = st.emissions == slots[slot].entry
        jobs[job].last_token = slots[slot].joined if fresh else st.last_emission
        _stop_decoding(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
        before, after = slots[slot].due_before, slots[slot].due_after
        if before == NO_SLOT:
            calendar[slots[slot].key & (len(calendar) // 2 - 1)].due = after
        else:
            slots[before].due_after = after
        if after != NO_SLOT:
            slots[after].due_before = before
        kept = 0
        for k in range(st.newcomers):
            if slots[k].newcomer != slot:
                slots[kept].newcomer = slots[k].newcomer
                kept += 1
        st.newcomers = kept
    else:
        st.partial_tokens -= slots[slot].computed
        kept = 0
        for k in range(st.partials):
            if slots[k].partial != slot:
                slots[kept].partial = slots[k].partial
                kept += 1
        st.partials = kept
    _unlink_running(jobs, slots, groups, rules, st, slot)


@compiled
def _preempt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot):
    """Free all blocks of a sequence and queue it again; what it does not find again is computed anew."""
    job = slots[slot].job
    _take_out(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, True)
    jobs[job].paused = st.clock
    jobs[job].preemptions += 1
    st.preemptions += 1
    if st.retracting:
        _push_tail(jobs, slots, st, job)
    else:
        _push_head(jobs, slots, st, job)


@compiled
def _victim(jobs, slots, rules, st, asking):
    """Who goes when blocks are short: the last admitted; with classes, the last arrived of the lowest.

    A prompt other than the one that asks stays, since its chunk may be part of the step already.
    """
    if rules.classes == 1:
        return st.run_last
    worst, slot = NO_SLOT, st.run_first
    while slot != NO_SLOT:
        if slots[slot].kind == DECODES or slot == asking or asking == NO_SLOT:
            if worst == NO_SLOT:
                worst = slot
            else:
                one, other = jobs[slots[slot].job], jobs[slots[worst].job]
                if one.priority > other.priority or (one.priority == other.priority and one.arrival >= other.arrival):
                    worst = slot
        slot = slots[slot].run_after
    return worst


@compiled
def _grow(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain):
    """Take the blocks for the next tokens; preempt while they do not fit. True if anyone was."""
    need = _growth(calendar, rules, st, gain)
    none = st.chunks - 1  # NO_SLOT: no prompt asks
    preempted = need > st.free_blocks
    if preempted and rules.retract:
        _retract(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain)
        need = _growth(calendar, rules, st, gain)
    while need > st.free_blocks:
        slot = _victim(jobs, slots, rules, st, none)
        _preempt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
        need = _growth(calendar, rules, st, gain)
    st.free_blocks -= need
    st.allocated += need
    return preempted


@compiled
def _made(jobs, slots, st, slot):
    job = slots[slot].job
    if slots[slot].kind == DECODES:
        return slots[slot].offset + st.token_clock - jobs[job].prompt + 1
    return jobs[job].made


@compiled
def _retract(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain):
    """SGLang: evict the fewest output tokens first (ties: longest prompt, then last admitted)."""
    first = True
    st.retracting = 1
    while st.decoding > 1 and (first or st.free_blocks < _growth(calendar, rules, st, gain * RETRACT_STEPS)):
        first = False
        worst, slot = NO_SLOT, st.run_first
        while slot != NO_SLOT:
            if slots[slot].kind == DECODES:
                if worst == NO_SLOT:
                    worst = slot
                else:
                    a, b = _made(jobs, slots, st, slot), _made(jobs, slots, st, worst)
                    p, q = jobs[slots[slot].job].prompt, jobs[slots[worst].job].prompt
                    if a < b or (a == b and p >= q):
                        worst = slot
            slot = slots[slot].run_after
        _preempt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, worst)
    st.retracting = 0
    made, limit, slot = 0, 0, st.run_first
    while slot != NO_SLOT:
        made += _made(jobs, slots, st, slot) + RETRACT_STEPS
        limit += jobs[slots[slot].job].limit
        slot = slots[slot].run_after
    st.ratio = min(1.0, made / max(1, limit))


# -- scheduling -----------------------------------------------------------------------------------


@compiled
def _reserve_running(jobs, slots, st):
    """SGLang: the part of the remaining outputs of all running sequences that admission sets aside."""
    remaining, slot = 0, st.run_first
    while slot != NO_SLOT:
        left = jobs[slots[slot].job].limit - _made(jobs, slots, st, slot)
        remaining += min(left, CLIP_OUTPUT_TOKENS)
        slot = slots[slot].run_after
    st.reserved_tokens = remaining * st.ratio


@compiled
def _add_chunk(slots, st, slot, tokens):
    slots[st.chunks].chunk_slot = slot
    slots[st.chunks].chunk_tokens = tokens
    st.chunks += 1


@compiled
def _continue_partials(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget):
    """Go on with prompts that are under way. Returns the budget left and whether anyone was preempted."""
    preempted = False
    k = 0
    while k < st.partials and budget > 0:
        slot = slots[k].partial
        tokens = min(min(slots[slot].known - slots[slot].computed, rules.threshold), budget)
        evicted = False
        if rules.paged and not rules.prefill_first:
            covered = slots[slot].computed
            need = _blocks(rules, covered + tokens) - _blocks(rules, covered)
            while need > st.free_blocks and not evicted:
                victim = _victim(jobs, slots, rules, st, slot)
                evicted = victim == slot
                if slots[victim].kind == DECODES:
                    budget += rules.tokens_per_decode
                _preempt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, victim)
                preempted = True
            if not evicted:
                st.free_blocks -= need
                st.allocated += need
                slots[slot].held += need
        if evicted:
            continue  # the list has moved up
        _add_chunk(slots, st, slot, tokens)
        if rules.grouped and rules.at_once:
            _publish(jobs, slots, groups, runs, rules, st, slot, slots[slot].computed + tokens)
        budget -= tokens
        k += 1
    return budget, preempted


@compiled
def _adapter_fits(jobs, groups, rules, st, job):
    adapter = jobs[job].adapter
    return adapter < 0 or groups[adapter].adapter_users > 0 or st.adapters < rules.max_loras


@compiled
def _admit(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget):
    """Start the head of the queue if it may start now. Returns the tokens of its first chunk, 0 = not now.

    Requests whose adapter has no slot are passed over.
    """
    if st.running >= rules.slots:
        st.reason, st.blocked = BY_SLOTS, 1
        return 0
    before, job = -1, st.queue_head
    if rules.lora:
        while job >= 0 and not _adapter_fits(jobs, groups, rules, st, job):
            before, job = job, jobs[job].after
        if job < 0:
            st.reason, st.blocked = BY_LORA, 1
            return 0
    size = rules.block_size
    known = jobs[job].prompt + jobs[job].made
    group, shared, kept, pinned = jobs[job].group, 0, 0, 0
    if rules.caching and (group >= 0 or jobs[job].own != NO_RUN):
        shared, kept = _find(jobs, groups, runs, rules, st, job, known)
        pinned = kept + (max(0, shared - groups[group].top) if shared else 0)
    # KV that came with the request, from a prefill replica; gone once it has been preempted
    given = 0 if jobs[job].preemptions else jobs[job].given
    start = max((shared + kept) * size, given)
    todo = known - start
    tokens = todo
    if rules.chunked:
        tokens = min(min(todo, rules.threshold), budget)
    elif todo > budget and (st.decoding or st.chunks) and (st.chunks or not rules.prefill_first):
        st.reason = BY_BUDGET
        st.blocked = 0 if st.chunks else 1
        return 0
    own = rules.fixed_blocks - shared
    if rules.paged:
        whole = own + _blocks(rules, known)
        first = whole if rules.prefill_first else own + _blocks(rules, start + tokens)
    else:
        whole = own + _blocks(rules, jobs[job].prompt + jobs[job].limit if rules.reserve_output else rules.max_len)
        first = whole
    if whole - kept + pinned > st.free_blocks:
        st.reason, st.blocked = BY_KV, 1
        return 0
    future = min(jobs[job].limit - jobs[job].made, CLIP_OUTPUT_TOKENS)
    if rules.retract:
        room = st.free_blocks * size - st.reserved_tokens
        if st.running and todo + pinned * size + future >= room:
            st.reason, st.blocked = BY_KV, 1
            return 0
        st.reserved_tokens += future
    _take_from_queue(jobs, slots, st, before, job)
    since = jobs[job].paused if jobs[job].preemptions else jobs[job].arrival
    st.waiting_area += st.clock - since
    if np.isnan(jobs[job].admitted):
        jobs[job].admitted = st.clock
    if shared:
        _hit_text(jobs, groups, runs, st, group, shared)
        top = groups[group].top
        groups[group].users += 1
        groups[group].at_top = 1 if shared > top else groups[group].at_top + (shared == top)
        groups[group].top = max(top, shared)
        st.shared_twice += min(top, shared)
    if kept:
        _hit_own(jobs, groups, runs, st, job)
    elif jobs[job].own != NO_RUN:
        _forget_own(jobs, groups, runs, st, job)
    st.hit_tokens += (shared + kept) * size
    st.free_blocks -= first - kept + pinned
    st.allocated += first - kept
    _take_slot(jobs, slots, groups, rules, st, job, known, start, shared, first)
    _add_chunk(slots, st, st.run_last, tokens)
    if rules.grouped and rules.at_once:
        _publish(jobs, slots, groups, runs, rules, st, st.run_last, start + tokens)
    return tokens


@compiled
def _take_slot(jobs, slots, groups, rules, st, job, known, start, shared, first):
    if rules.lora and jobs[job].adapter >= 0:
        st.adapters += groups[jobs[job].adapter].adapter_users == 0
        groups[jobs[job].adapter].adapter_users += 1
    st.free_slots -= 1
    slot = slots[st.free_slots].spare
    slots[slot].job = job
    slots[slot].kind = PARTIAL
    slots[slot].computed = start
    slots[slot].known = known
    slots[slot].held = first
    slots[slot].shared = shared
    slots[slot].turn = st.turns
    st.turns += 1
    jobs[job].place = slot + 1
    st.partial_tokens += start
    slots[st.partials].partial = slot
    st.partials += 1
    slots[slot].run_before = st.run_last
    slots[slot].run_after = NO_SLOT
    if st.run_last == NO_SLOT:
        st.run_first = slot
    else:
        slots[st.run_last].run_after = slot
    st.run_last = slot
    st.running += 1


@compiled
def _admit_all(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget):
    st.reason = BY_NOTHING
    while st.waiting:
        if budget <= 0 and st.running < rules.slots:
            st.reason = BY_BUDGET
            break
        tokens = _admit(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget)
        if tokens == 0:
            break
        budget -= tokens


@compiled
def _prompts_may_start(rules, st):
    """Whether a prefill-first engine looks at its queue now (TGI lets decoding go on for a while)."""
    if st.waiting == 0 or st.blocked:
        return False
    if st.decoding == 0 or (rules.max_waiting_steps == 0 and rules.serve_ratio == 0.0):
        return True
    if rules.max_waiting_steps and st.steps_since_prefill >= rules.max_waiting_steps:
        return True
    return rules.serve_ratio > 0.0 and st.waiting >= rules.serve_ratio * st.running


@compiled
def _advance_tokens(calendar, times, st, gain):
    """Every decoding sequence makes `gain` tokens."""
    st.kv_tokens += gain * st.decoding
    st.decode_tokens += gain * st.decoding
    if times.window:
        mask = len(calendar) // 2 - 1
        for _ in range(gain):
            st.token_clock += 1
            st.window_tokens += st.window_growing
            st.window_growing -= calendar[st.token_clock & mask].crossing
            calendar[st.token_clock & mask].crossing = 0
    else:
        st.token_clock += gain
    st.decode_steps += 1


@compiled
def _account(tallies, rules, st, step_s, tokens):
    """Pass the time of a step: clock, integrals, samples."""
    st.clock += step_s
    st.busy_s += step_s
    st.running_area += step_s * st.running
    used = rules.blocks - st.free_blocks
    written = st.kv_tokens + st.partial_tokens - rules.block_size * st.shared_twice
    st.used_area += step_s * used
    st.written_area += step_s * written
    if st.waiting:
        tallies[st.reason] += step_s
    st.done_before_step = st.done
    st.peak_running = max(st.peak_running, st.running)
    st.steps += 1
    if st.steps >= st.next_sample:
        _sample(tallies, st, tokens, used, written)


@compiled
def _sample(tallies, st, tokens, used, written):
    place = SAMPLES_FROM + SAMPLE_WIDTH * st.samples
    tallies[place] = st.clock
    tallies[place + 1] = st.running
    tallies[place + 2] = st.waiting
    tallies[place + 3] = tokens
    tallies[place + 4] = used
    tallies[place + 5] = written
    tallies[place + 6] = st.preemptions
    st.samples += 1
    if st.samples == MAX_SAMPLES:  # thin out: every other sample, twice as far apart
        for k in range(MAX_SAMPLES // 2):
            for column in range(SAMPLE_WIDTH):
                source = SAMPLES_FROM + SAMPLE_WIDTH * (2 * k + 1) + column
                tallies[SAMPLES_FROM + SAMPLE_WIDTH * k + column] = tallies[source]
        st.samples = MAX_SAMPLES // 2
        st.sample_stride *= 2
    st.next_sample = st.steps + st.sample_stride


@compiled
def _complete_prompt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot):
    """The last chunk of a prompt ran: its sequence emits a token."""
    job = slots[slot].job
    known = slots[slot].known
    st.partial_tokens -= known
    made = jobs[job].made + 1
    if made == 1:
        jobs[job].first_token = st.clock
    else:
        gap = st.clock - jobs[job].last_token
        jobs[job].max_gap = max(jobs[job].max_gap, gap)
        tallies[st.gaps_from + _gap_bin(gap)] += 1
    if rules.grouped and not rules.at_once:
        _publish(jobs, slots, groups, runs, rules, st, slot, known)
    if made == jobs[job].output:
        _finish(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
    else:
        _start_decoding(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot, made)


@compiled
def _schedule(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain):
    """Decide what the next step holds. Returns how many sequences decode in it; -1: look again.

    Prompts go to the list of chunks. A prefill-first engine that may start prompts does only that; if
    none could start, its queue is blocked now and the next look finds a decode step.
    """
    st.chunks = 0
    if not st.blocked:
        st.reason = BY_NOTHING
    prompts_only = rules.prefill_first and (st.partials > 0 or _prompts_may_start(rules, st))
    preempted = False
    budget = rules.budget
    if not prompts_only:
        preempted = st.decoding > 0 and _grow(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain)
        budget -= st.decoding * rules.tokens_per_decode
    if prompts_only or not rules.prefill_first:
        if rules.retract:
            _reserve_running(jobs, slots, st)
        st.ahead = 0 if prompts_only else gain
        budget, also = _continue_partials(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget)
        st.ahead = 0
        preempted = preempted or also
        if not preempted and not st.blocked:
            _admit_all(jobs, slots, groups, runs, calendar, tallies, rules, times, st, budget)
    if preempted:
        st.reason = BY_KV
    if prompts_only:
        return 0 if st.chunks else -1
    return st.decoding


@compiled
def _execute(slots, calendar, tallies, tables, rules, times, st, decodes, gain, pad):
    """Pass the time of a scheduled step: `decodes` sequences make `gain` tokens, chunks are computed.

    `pad` > 0 is the common length to which a static batch pads its prompts.
    """
    tokens, prefill, rows = decodes * rules.tokens_per_decode, 0.0, decodes * rules.tokens_per_decode
    for k in range(st.chunks):
        slot, part = slots[k].chunk_slot, slots[k].chunk_tokens
        computed = max(part, pad)
        prefill += _chunk_attention_s(times, computed, slots[slot].computed)
        slots[slot].computed += part
        st.partial_tokens += part
        st.prefill_tokens += computed
        tokens += computed
        if slots[slot].computed == slots[slot].known:
            rows += 1
    kv, window_kv = 0, 0
    if decodes:
        _advance_tokens(calendar, times, st, gain)
        kv, window_kv = st.kv_tokens, st.window_tokens
    step_s = _step_s(
        tables, times, st, tokens, st.chunks > 0, rows, decodes, kv, window_kv, prefill, decodes + st.chunks
    )
    _account(tallies, rules, st, step_s, tokens)


@compiled
def _complete_chunks(jobs, slots, groups, runs, calendar, tallies, rules, times, st):
    """Tokens of the prompts that the step completed; the others stay in the list of partial prompts."""
    st.steps_since_prefill = 0
    for k in range(st.chunks):
        slot = slots[k].chunk_slot
        if slots[slot].kind == PARTIAL and slots[slot].computed == slots[slot].known:
            _complete_prompt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
    kept = 0
    for k in range(st.partials):
        slot = slots[k].partial
        if slots[slot].kind == PARTIAL:
            slots[kept].partial = slot
            kept += 1
    st.partials = kept
    st.chunks = 0


@compiled
def _decode_step_done(jobs, slots, calendar, tallies, rules, st):
    _emit(jobs, slots, calendar, tallies, st)
    st.steps_since_prefill += 1
    if rules.retract:
        decay = (rules.start_ratio - rules.min_ratio) / RATIO_DECAY_STEPS
        st.ratio = max(rules.min_ratio, st.ratio - decay)


@compiled
def _decode_run(jobs, slots, calendar, tallies, tables, rules, times, st, feed, until):
    """Steps that only decode, until a sequence ends, a block is missing or a request arrives.

    Returns the tokens that each sequence made in the last of them, 0 if not even one could be made.
    """
    arrival = min(_next_arrival_s(jobs, rules, st, feed), until)
    batch = st.batch if rules.static else st.decoding
    tokens = batch * rules.tokens_per_decode
    mask = len(calendar) // 2 - 1
    made = 0
    silent_since = _since(jobs, st, feed, True) if rules.patience_s < np.inf else np.inf
    open_since = _since(jobs, st, feed, False) if rules.timeout_s < np.inf else np.inf
    if not rules.static and not st.blocked:
        st.reason = BY_NOTHING
    while True:
        gain = _gain(rules, st.decode_steps)
        need = _growth(calendar, rules, st, gain)
        if need > st.free_blocks:
            return made
        st.free_blocks -= need
        st.allocated += need
        _advance_tokens(calendar, times, st, gain)
        kv, window_kv = st.kv_tokens, st.window_tokens
        if rules.static:
            st.batch_pad += gain
            st.batch_kv += gain * batch
            kv, window_kv = st.batch_kv, batch * min(st.batch_pad, times.window)
        step_s = _step_s(tables, times, st, tokens, st.chunks > 0, st.chunks, batch, kv, window_kv, 0.0, batch)
        _account(tallies, rules, st, step_s, tokens)
        _decode_step_done(jobs, slots, calendar, tallies, rules, st)
        made = gain
        due = False
        for key in range(st.token_clock - gain + 1, st.token_clock + 1):
            due = due or calendar[key & mask].due != NO_SLOT
        if due or st.clock >= arrival or st.steps > MAX_STEPS:
            return made
        if st.clock - silent_since > rules.patience_s or st.clock - open_since > rules.timeout_s:
            return made
        if st.waiting and not st.blocked and _prompts_may_start(rules, st):
            return made


# -- static batches -------------------------------------------------------------------------------


@compiled
def _form_batch(jobs, slots, groups, rules, st, feed):
    """Take a static batch if it is full or has waited long enough. Returns the time to wait until, or -1."""
    size, need, job = 0, 0, st.queue_head
    while job >= 0 and size < rules.slots:
        more = _reserved_blocks(jobs, rules, job)
        if need + more > st.free_blocks:
            break
        need += more
        size += 1
        job = jobs[job].after
    full = size == rules.slots or job >= 0
    arrival = _next_arrival_s(jobs, rules, st, feed)
    deadline = jobs[st.queue_head].arrival + rules.batch_timeout_s
    last = arrival == np.inf and st.closed == 1
    if not full and not last and st.clock < deadline:
        return min(arrival, deadline)
    st.reason = BY_SLOTS if size == rules.slots else BY_KV
    st.chunks = 0
    st.batch_pad = 0
    for _ in range(size):
        head = st.queue_head
        _take_from_queue(jobs, slots, st, -1, head)
        st.waiting_area += st.clock - jobs[head].arrival
        jobs[head].admitted = st.clock
        first = _reserved_blocks(jobs, rules, head)
        none = st.batch  # 0 here: no prefix is shared in a static batch
        st.free_blocks -= first
        _take_slot(jobs, slots, groups, rules, st, head, jobs[head].prompt, none, none, first)
        st.batch_pad = max(st.batch_pad, jobs[head].prompt)
        _add_chunk(slots, st, st.run_last, jobs[head].prompt)
    st.batch, st.batch_kv = size, size * st.batch_pad
    return -1.0


@compiled
def _reserved_blocks(jobs, rules, job):
    whole = jobs[job].prompt + jobs[job].limit if rules.reserve_output else rules.max_len
    return _blocks(rules, whole) + rules.fixed_blocks


@compiled
def _decodes_only(rules, st):
    """Whether the next step holds no prompt for sure."""
    if st.partials or st.decoding == 0:
        return False
    if rules.static or st.waiting == 0 or st.blocked:
        return True
    return rules.prefill_first and not _prompts_may_start(rules, st)


@compiled_entry
def advance(jobs, slots, groups, runs, calendar, tallies, tables, rule_records, time_records, counters, feed, until):
    """Run one replica until its clock reaches `until` or it has nothing to do before then.

    A step that starts before `until` is finished. State stays in the arrays, so that a later call
    continues; `feed` lists the requests of this replica, of which the state's `fed` are known so far.
    """
    rules, times, st = rule_records[0], time_records[0], counters[0]
    while st.stopped == 0:
        _take_arrivals(jobs, slots, groups, runs, calendar, tallies, rules, times, st, feed)
        if st.running == 0 and st.waiting == 0:
            arrival = _next_arrival_s(jobs, rules, st, feed)
            if arrival >= until:
                return
            st.clock = arrival
            continue
        if st.clock >= until:
            return
        if st.steps > MAX_STEPS:
            st.stopped = STOPPED_BY_LOAD
            return
        made, pad = 0, 0
        if rules.static and st.batch == 0:
            wait = _form_batch(jobs, slots, groups, rules, st, feed)
            if wait >= until:
                return
            if wait >= 0:
                st.clock = max(st.clock, wait)
                continue
            pad = st.batch_pad
        elif _decodes_only(rules, st):
            made = _decode_run(jobs, slots, calendar, tallies, tables, rules, times, st, feed, until)
        if made == 0:
            gain = _gain(rules, st.decode_steps)
            decodes = 0
            if pad == 0:
                decodes = _schedule(jobs, slots, groups, runs, calendar, tallies, rules, times, st, gain)
            if decodes < 0 and st.blocked:
                continue
            if decodes <= 0 and st.chunks == 0:
                st.stopped = STOPPED_BY_FAULT
                return
            _execute(slots, calendar, tallies, tables, rules, times, st, decodes, gain, pad)
            if decodes:
                _decode_step_done(jobs, slots, calendar, tallies, rules, st)
                made = gain
        if rules.impatient:
            _leave(jobs, slots, groups, runs, calendar, tallies, rules, times, st, feed)
        if made:
            _finish_due(jobs, slots, groups, runs, calendar, tallies, rules, times, st, made)
        if st.chunks:
            _complete_chunks(jobs, slots, groups, runs, calendar, tallies, rules, times, st)
        if not rules.prefill_first and not rules.static:
            st.last_emission = st.clock
        if rules.static and st.decoding == 0:
            st.batch = 0
            st.free_blocks = rules.blocks
