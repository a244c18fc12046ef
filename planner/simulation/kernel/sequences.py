"""Running sequences: they start to decode, end, are preempted or retracted."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

from planner.simulation.kernel.blocks import blocks_to_grow, release_blocks
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.queue import count_waiting, push_head, push_tail
from planner.simulation.kernel.server import ask_again
from planner.simulation.kernel.timing import longest_gap
from planner.simulation.records import ABANDONED, FINISHED, UNFINISHED
from planner.simulation.state import DECODES, NO_SLOT, RETRACT_STEPS


@compiled
def unlink_running(jobs, slots, groups, rules, st, slot):
    """Take a sequence out of the list of running ones and free its slot and its adapter."""
    job = slots[slot].job
    jobs[job].place = 0
    adapter = jobs[job].adapter
    if rules.lora and adapter >= 0:
        groups[adapter].adapter_users -= 1
        if groups[adapter].adapter_users == 0:
            st.adapters -= 1
            st.passed_over = -1
            st.fitting -= groups[adapter].adapter_waiting
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
def stop_decoding(jobs, slots, calendar, rules, times, st, slot):
    """Take a sequence out of the decoding set, but leave its entry in the calendar of last tokens."""
    job = slots[slot].job
    length = slots[slot].offset + st.token_clock
    jobs[job].max_gap = max(jobs[job].max_gap, longest_gap(calendar, st, slots[slot].entry))
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
def start_decoding(jobs, slots, calendar, rules, times, st, slot, made):
    """Put a sequence whose prompt is done into the decoding set and file when it will end."""
    job = slots[slot].job
    length = slots[slot].known
    offset = length - st.token_clock
    key = st.token_clock + jobs[job].output - made
    slots[slot].kind = DECODES
    slots[slot].offset = offset
    slots[slot].key = key
    slots[slot].entry = st.emissions
    slots[slot].joined = st.server_free
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
def file_answer(jobs, st, job):
    """Append a finished request to the answers that are being sent, in the order in which they are sent."""
    jobs[job].after = -1
    if st.unsent == 0:
        st.unsent_first = job
    else:
        jobs[st.unsent_last].after = job
    st.unsent_last = job
    st.unsent += 1


@compiled
def finish_sequence(jobs, slots, groups, runs, rules, st, slot):
    """End a sequence: its blocks are freed, and its client has the answer unless it left before the end was sent."""
    job = slots[slot].job
    release_blocks(jobs, slots, groups, runs, rules, st, slot, False)
    unlink_running(jobs, slots, groups, rules, st, slot)
    if jobs[job].status == UNFINISHED:
        if st.server_free - jobs[job].arrival > rules.timeout_s:
            jobs[job].status = ABANDONED
        else:
            jobs[job].finish = st.server_free
            jobs[job].status = FINISHED
            file_answer(jobs, st, job)
        st.done += 1
        ask_again(jobs, rules, st)


@compiled
def finish_due(jobs, slots, groups, runs, calendar, rules, times, st, gain):
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
        stop_decoding(jobs, slots, calendar, rules, times, st, slot)
        finish_sequence(jobs, slots, groups, runs, rules, st, slot)


@compiled
def take_out(jobs, slots, groups, runs, calendar, rules, times, st, slot, keep):
    """Stop a sequence before its end and free its blocks."""
    job = slots[slot].job
    release_blocks(jobs, slots, groups, runs, rules, st, slot, keep)
    if slots[slot].kind == DECODES:
        length = slots[slot].offset + st.token_clock
        jobs[job].made = length - jobs[job].prompt + 1
        fresh = st.emissions == slots[slot].entry
        jobs[job].last_token = slots[slot].joined if fresh else st.last_emission
        if rules.stream_interval > 1:
            jobs[job].last_token, jobs[job].untold = slots[slot].told, slots[slot].untold
        stop_decoding(jobs, slots, calendar, rules, times, st, slot)
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
    unlink_running(jobs, slots, groups, rules, st, slot)


@compiled
def preempt(jobs, slots, groups, runs, calendar, rules, times, st, slot):
    """Free all blocks of a sequence and queue it again; it recomputes what the cache has lost by then."""
    job = slots[slot].job
    take_out(jobs, slots, groups, runs, calendar, rules, times, st, slot, True)
    jobs[job].waits_since = st.clock
    jobs[job].preemptions += 1
    st.preemptions += 1
    if st.retracting:
        push_tail(jobs, slots, st, job)
    else:
        push_head(jobs, slots, st, job)
    if rules.lora:
        count_waiting(jobs, groups, st, job, 1)


@compiled
def choose_victim(jobs, slots, rules, st, asking):
    """Sequence to preempt when blocks are short: the last admitted; with classes, the last to arrive of the lowest.

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
def grow_all(jobs, slots, groups, runs, calendar, rules, times, st, gain):
    """Take the blocks for the next tokens; preempt while they do not fit. True if anyone was."""
    need = blocks_to_grow(calendar, rules, st, gain)
    none = st.chunks - 1  # NO_SLOT: no prompt asks
    preempted = need > st.free_blocks
    if preempted and rules.retract:
        retract(jobs, slots, groups, runs, calendar, rules, times, st, gain)
        need = blocks_to_grow(calendar, rules, st, gain)
    while need > st.free_blocks:
        slot = choose_victim(jobs, slots, rules, st, none)
        preempt(jobs, slots, groups, runs, calendar, rules, times, st, slot)
        need = blocks_to_grow(calendar, rules, st, gain)
    st.free_blocks -= need
    st.allocated += need
    return preempted


@compiled
def tokens_made(jobs, slots, st, slot):
    """Tokens that a running sequence has generated so far."""
    job = slots[slot].job
    if slots[slot].kind == DECODES:
        return slots[slot].offset + st.token_clock - jobs[job].prompt + 1
    return jobs[job].made


@compiled
def retract(jobs, slots, groups, runs, calendar, rules, times, st, gain):
    """SGLang: evict the fewest output tokens first (ties: longest prompt, then last admitted)."""
    first = True
    st.retracting = 1
    while st.decoding > 1 and (first or st.free_blocks < blocks_to_grow(calendar, rules, st, gain * RETRACT_STEPS)):
        first = False
        worst, slot = NO_SLOT, st.run_first
        while slot != NO_SLOT:
            if slots[slot].kind == DECODES:
                if worst == NO_SLOT:
                    worst = slot
                else:
                    a, b = tokens_made(jobs, slots, st, slot), tokens_made(jobs, slots, st, worst)
                    p, q = jobs[slots[slot].job].prompt, jobs[slots[worst].job].prompt
                    if a < b or (a == b and p >= q):
                        worst = slot
            slot = slots[slot].run_after
        preempt(jobs, slots, groups, runs, calendar, rules, times, st, worst)
    st.retracting = 0
    made, limit, slot = 0, 0, st.run_first
    while slot != NO_SLOT:
        made += tokens_made(jobs, slots, st, slot) + RETRACT_STEPS
        limit += jobs[slots[slot].job].limit
        slot = slots[slot].run_after
    st.ratio = min(1.0, made / max(1, limit))
