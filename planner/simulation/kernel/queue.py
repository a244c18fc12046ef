"""The queue of waiting requests, by class, and who may not join it."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

from planner.simulation.kernel.compiling import compiled


@compiled
def never_fits(jobs, rules, job):
    """Whether a request exceeds the context or the whole pool."""
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
def last_of(slots, highest):
    """The last in the queue of a class up to `highest` (0 goes first), -1 if there is none."""
    for k in range(highest, -1, -1):
        if slots[k].class_tail >= 0:
            return slots[k].class_tail
    return -1


@compiled
def insert_after(jobs, st, before, job):
    """Link a request behind `before` (-1: first)."""
    if before < 0:
        jobs[job].after = st.queue_head
        st.queue_head = job
        st.blocked = 0
    else:
        jobs[job].after = jobs[before].after
        jobs[before].after = job
    if jobs[job].after >= 0:
        st.passed_over = -1
    st.waiting += 1


@compiled
def push_tail(jobs, slots, st, job):
    """Queue behind all requests of its class."""
    own = jobs[job].priority
    insert_after(jobs, st, last_of(slots, own), job)
    slots[own].class_tail = job


@compiled
def push_head(jobs, slots, st, job):
    """Queue before all requests of its class."""
    own = jobs[job].priority
    insert_after(jobs, st, last_of(slots, own - 1), job)
    if slots[own].class_tail < 0:
        slots[own].class_tail = job


@compiled
def adapter_fits(jobs, groups, rules, st, job):
    """Whether a request's adapter runs already or may be added."""
    adapter = jobs[job].adapter
    return adapter < 0 or groups[adapter].adapter_users > 0 or st.adapters < rules.max_loras


@compiled
def count_waiting(jobs, groups, st, job, change):
    """Count a request that joins (1) or leaves (-1) the queue, by adapter; `st.fitting` of them need no new one."""
    adapter = jobs[job].adapter
    if adapter >= 0:
        groups[adapter].adapter_waiting += change
    if adapter < 0 or groups[adapter].adapter_users > 0:
        st.fitting += change


@compiled
def take_from_queue(jobs, slots, st, before, job):
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
