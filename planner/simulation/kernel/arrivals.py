"""Arrived requests join the queue; a request whose client gave up leaves, wherever it is."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numpy as np

from planner.simulation.kernel.blocks import forget_own, settle
from planner.simulation.kernel.compiling import ENOUGH_DONE, STOPPED_BY_LOAD, compiled
from planner.simulation.kernel.queue import (
    adapter_fits,
    count_waiting,
    never_fits,
    push_tail,
    take_from_queue,
)
from planner.simulation.kernel.sequences import take_out
from planner.simulation.kernel.server import ask_again, read_next
from planner.simulation.records import ABANDONED, REJECTED, UNFINISHED
from planner.simulation.state import NUM_BINS, NUM_PARTS, NUM_REASONS, PARTIAL


@compiled
def oldest_here(jobs, st, feed, silent):
    """The earliest unfinished request (`silent`: of those without a token so far), -1 if there is none."""
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
def patience_since(jobs, st, feed, silent):
    """When the client that loses patience next arrived; infinity when no client waits."""
    job = oldest_here(jobs, st, feed, silent)
    return jobs[job].arrival if job >= 0 else np.inf


@compiled
def let_go(jobs, slots, groups, runs, calendar, rules, times, st, feed):
    """Drop requests whose first token or answer takes too long. Clients wait equally long: the earliest leave first."""
    for silent in (True, False):
        limit = rules.patience_s if silent else rules.timeout_s
        while limit < np.inf:
            job = oldest_here(jobs, st, feed, silent)
            if job < 0 or not st.clock - jobs[job].arrival > limit:
                break
            jobs[job].status = ABANDONED
            if jobs[job].place == 0:
                leave_queue(jobs, groups, runs, slots, st, job)
                if rules.lora:
                    count_waiting(jobs, groups, st, job, -1)
                st.waiting_area += st.clock - jobs[job].waits_since if jobs[job].preemptions else limit
            elif not rules.static:  # a static batch computes the answer all the same
                take_out(jobs, slots, groups, runs, calendar, rules, times, st, jobs[job].place - 1, False)
            st.done += 1
            st.blocked = 0
            ask_again(jobs, rules, st)


@compiled
def let_go_unseen(jobs, slots, groups, runs, calendar, rules, times, st):
    """Drop requests whose client leaves after the first token is computed and before the API server sends it."""
    for k in range(st.chunks):
        slot = slots[k].chunk_slot
        job = slots[slot].job
        if slots[slot].kind != PARTIAL or slots[slot].computed < slots[slot].known or jobs[job].status != UNFINISHED:
            continue
        if not jobs[job].made and st.server_free - jobs[job].arrival > rules.patience_s:
            jobs[job].status = ABANDONED
            if not rules.static:
                take_out(jobs, slots, groups, runs, calendar, rules, times, st, slot, False)
            st.done += 1
            ask_again(jobs, rules, st)


@compiled
def leave_queue(jobs, groups, runs, slots, st, job):
    """Take a request out of the queue, wherever it stands there."""
    before, at = -1, st.queue_head
    while at != job:
        before, at = at, jobs[at].after
    take_from_queue(jobs, slots, st, before, job)
    st.passed_over = -1
    if jobs[job].own:
        settle(jobs, groups, runs, st)
        forget_own(jobs, groups, runs, st, job)


@compiled
def seen_until(rules, st):
    """Up to when a request must have arrived to be in the next step.

    With async scheduling the engine fills that step once it has launched the one that has just ended, unless it had
    nothing to fill it with (vLLM `step_with_batch_queue`, SGLang `event_loop_overlap`, TensorRT-LLM
    `_executor_loop_overlap`).
    """
    return st.filled if rules.ahead_of_time and st.running + st.waiting > 0 else st.clock


@compiled
def take_arrivals(jobs, slots, groups, runs, calendar, rules, times, st, feed):
    """Queue or reject the requests that have arrived, and drop those whose clients gave up.

    The scheduler looks at its inbox every `receive_interval` decode steps, and at once after prompts or when idle.
    """
    now, seen = st.clock, seen_until(rules, st)
    looks = rules.receive_interval == 1 or st.running == 0 or st.steps_since_prefill % rules.receive_interval == 0
    while True:
        if rules.impatient:
            let_go(jobs, slots, groups, runs, calendar, rules, times, st, feed)
        while st.sending <= now:
            read_next(jobs, rules, st, feed)
        if not looks or st.next == st.read or jobs[feed[st.next]].waits_since > seen:
            break
        job = feed[st.next]
        st.next += 1
        st.gaps_from = max(st.gaps_from, NUM_REASONS + job * NUM_PARTS // len(jobs) * NUM_BINS)
        waiting, running = st.waiting, st.running
        full = waiting - max(0, rules.slots - running) >= rules.max_queued or waiting + running >= rules.max_concurrent
        if full or never_fits(jobs, rules, job) or (jobs[job].adapter >= 0 and rules.max_loras == 0):
            jobs[job].status = REJECTED
            st.done += 1
            ask_again(jobs, rules, st)
            continue
        push_tail(jobs, slots, st, job)
        if rules.lora:
            count_waiting(jobs, groups, st, job, 1)
            if adapter_fits(jobs, groups, rules, st, job):
                st.blocked = 0  # those ahead of it may only be waiting for their adapters
    waiting = st.waiting + st.read - st.next
    if waiting > rules.stop_waiting and 10 * waiting > 3 * st.read and st.done >= ENOUGH_DONE:
        st.stopped = STOPPED_BY_LOAD
