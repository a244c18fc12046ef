"""Replicas behind a router that looks at their load."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

from planner.simulation.kernel.compiling import compiled, compiled_entry
from planner.simulation.kernel.loop import advance


@compiled
def would_stand_still(st, until):
    """Whether `advance` up to a time would change nothing: a step goes on until later, or there is nothing to do."""
    if st.step_open:
        return st.clock > until
    return st.running == 0 and st.waiting == 0 and st.next == st.fed


@compiled
def outstanding(jobs, st, now):
    """Requests whose clients wait: not rejected, not abandoned, and the API server has not sent the last token."""
    while st.unsent and jobs[st.unsent_first].finish <= now:
        st.unsent_first = jobs[st.unsent_first].after
        st.unsent -= 1
    return st.fed - st.done + st.unsent


@compiled_entry
def count_outstanding(jobs, counters, now):
    """`outstanding` of a replica that has been advanced to a time."""
    return outstanding(jobs, counters[0], now)


@compiled_entry
def dispatch(
    jobs, slots, groups, runs, calendar, tallies, tables, rules, times, states, feeds, options, routes, begin, end
):
    """Give requests `begin` to `end` to the replica with the fewest outstanding ones when they arrive.

    Arguments are those of `advance`; of arrays that belong to one replica, a row for each. `options` holds the
    replicas that a request may go to, in the order in which they are looked at, the first of which wins ties: one row
    for all, or a row each.
    """
    for job in range(begin, end):
        arrival = jobs[job].arrival
        row = job - begin if len(options) > 1 else 0
        best, fewest = 0, 0
        for place in range(options.shape[1]):
            k = options[row, place]
            if not would_stand_still(states[k, 0], arrival):
                advance(
                    *(jobs, slots[k], groups[k], runs[k], calendar[k], tallies[k]),
                    *(tables, rules, times, states[k], feeds[k], arrival),
                )
            count = outstanding(jobs, states[k, 0], arrival)
            if place == 0 or count < fewest:
                best, fewest = k, count
        routes[job] = best
        feeds[best, states[best, 0].fed] = job
        states[best, 0].fed += 1
