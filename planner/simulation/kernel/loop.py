"""The step loop of one replica."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

from planner.simulation.kernel.arrivals import let_go, let_go_unseen, take_arrivals
from planner.simulation.kernel.compiling import MAX_STEPS, STOPPED_BY_FAULT, STOPPED_BY_LOAD, compiled_entry
from planner.simulation.kernel.schedule import schedule_step
from planner.simulation.kernel.sequences import finish_due
from planner.simulation.kernel.server import next_arrival_s, next_sending_s, read_next, send_tokens
from planner.simulation.kernel.steps import (
    complete_chunks,
    decode_run,
    decode_step_done,
    decodes_only,
    execute_step,
    form_batch,
)
from planner.simulation.kernel.timing import next_gain


@compiled_entry
def advance(jobs, slots, groups, runs, calendar, tallies, tables, rule_records, time_records, counters, feed, until):
    """Run one replica until its clock reaches `until` or it has nothing to do before then.

    A step that starts before `until` is computed; if it ends later, its tokens stay with the engine until then, since
    the API server may yet have to read requests that come before it ends. State stays in the arrays, so that a later
    call continues; `feed` lists the requests of this replica, of which the state's `fed` are known so far.
    """
    rules, times, st = rule_records[0], time_records[0], counters[0]
    st.sending = next_sending_s(jobs, rules, st, feed)  # more may be known than at the last call
    while st.stopped == 0:
        made, prompts = st.made, st.prompts
        if st.step_open == 0:
            take_arrivals(jobs, slots, groups, runs, calendar, rules, times, st, feed)
            if st.running == 0 and st.waiting == 0:
                arrival = next_arrival_s(jobs, rules, st, feed)
                if arrival >= until:
                    return
                st.clock = arrival
                continue
            if st.clock >= until:
                return
            if st.steps > MAX_STEPS:
                st.stopped = STOPPED_BY_LOAD
                return
            made, prompts, pad = 0, 0, 0
            if rules.static and st.batch == 0:
                wait = form_batch(jobs, slots, groups, rules, st, feed)
                if wait >= until:
                    return
                if wait >= 0:
                    st.clock = max(st.clock, wait)
                    continue
                pad = st.batch_pad
            elif decodes_only(rules, st):
                made = decode_run(jobs, slots, calendar, tallies, tables, rules, times, st, feed, until)
            if made == 0:
                gain = next_gain(rules, st.decode_steps)
                decodes = 0
                if pad == 0:
                    decodes = schedule_step(jobs, slots, groups, runs, calendar, rules, times, st, gain)
                if decodes < 0 and st.blocked:
                    continue
                if decodes <= 0 and st.chunks == 0:
                    st.stopped = STOPPED_BY_FAULT
                    return
                prompts = execute_step(slots, calendar, tallies, tables, rules, times, st, decodes, gain, pad)
                made = gain if decodes else 0
        if st.clock > until:
            st.made, st.prompts, st.step_open = made, prompts, 1
            return
        st.step_open = 0
        while st.sending < st.clock:
            read_next(jobs, rules, st, feed)
        send_tokens(slots, calendar, rules, st, made, prompts)
        if made:
            decode_step_done(jobs, slots, calendar, tallies, rules, st, made)
        if rules.impatient:
            let_go(jobs, slots, groups, runs, calendar, rules, times, st, feed)
            let_go_unseen(jobs, slots, groups, runs, calendar, rules, times, st)
        if made:
            finish_due(jobs, slots, groups, runs, calendar, rules, times, st, made)
        if st.chunks:
            complete_chunks(jobs, slots, groups, runs, calendar, tallies, rules, times, st)
        if not rules.prefill_first and not rules.static:
            st.last_emission = st.server_free
        if rules.static and st.decoding == 0:
            st.batch = 0
            st.free_blocks = rules.blocks
