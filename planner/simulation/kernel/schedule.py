"""What the next step holds: running sequences, prompts under way, new ones."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numpy as np

from planner.simulation.kernel.blocks import blocks_for, find_cached, forget_own, hit_own, hit_text, publish
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.queue import adapter_fits, count_waiting, take_from_queue
from planner.simulation.kernel.sequences import choose_victim, grow_all, preempt, tokens_made
from planner.simulation.state import (
    BY_BUDGET,
    BY_KV,
    BY_LORA,
    BY_NOTHING,
    BY_SLOTS,
    CLIP_OUTPUT_TOKENS,
    DECODES,
    NO_RUN,
    NO_SLOT,
    PARTIAL,
)


@compiled
def reserve_running(jobs, slots, st):
    """SGLang: the part of the remaining outputs of all running sequences that admission sets aside."""
    remaining, slot = 0, st.run_first
    while slot != NO_SLOT:
        left = jobs[slots[slot].job].limit - tokens_made(jobs, slots, st, slot)
        remaining += min(left, CLIP_OUTPUT_TOKENS)
        slot = slots[slot].run_after
    st.reserved_tokens = remaining * st.ratio


@compiled
def add_chunk(slots, st, slot, tokens):
    """Add a part of a prompt to this step."""
    slots[st.chunks].chunk_slot = slot
    slots[st.chunks].chunk_tokens = tokens
    st.chunks += 1


@compiled
def continue_partials(jobs, slots, groups, runs, calendar, rules, times, st, budget):
    """Continue prompts that are under way. Returns the budget left and whether anyone was preempted."""
    preempted = False
    k = 0
    while k < st.partials and budget > 0:
        slot = slots[k].partial
        tokens = min(min(slots[slot].known - slots[slot].computed, rules.threshold), budget)
        evicted = False
        if rules.paged and not rules.prefill_first:
            covered = slots[slot].computed
            need = blocks_for(rules, covered + tokens) - blocks_for(rules, covered)
            while need > st.free_blocks and not evicted:
                victim = choose_victim(jobs, slots, rules, st, slot)
                evicted = victim == slot
                if slots[victim].kind == DECODES:
                    budget += rules.tokens_per_decode
                preempt(jobs, slots, groups, runs, calendar, rules, times, st, victim)
                preempted = True
            if not evicted:
                st.free_blocks -= need
                st.allocated += need
                slots[slot].held += need
        if evicted:
            continue  # the list has moved up
        add_chunk(slots, st, slot, tokens)
        if rules.grouped and rules.at_once:
            publish(jobs, slots, groups, runs, rules, st, slot, slots[slot].computed + tokens)
        budget -= tokens
        k += 1
    return budget, preempted


@compiled
def first_with_adapter(jobs, groups, rules, st):
    """The first request of the queue whose adapter runs or has a slot, and the one before it; -1 if there is none."""
    before, job = -1, st.queue_head
    if st.fitting == 0 and st.adapters >= rules.max_loras:
        job = -1
    elif st.passed_over >= 0:
        before, job = st.passed_over, jobs[st.passed_over].after
    while job >= 0 and not adapter_fits(jobs, groups, rules, st, job):
        before, job = job, jobs[job].after
        st.passed_over = before
    return before, job


@compiled
def take_cached(jobs, groups, runs, st, job, shared, kept):
    """Take the blocks that a request found in the cache: `shared` of its group's text, then `kept` of its own."""
    group = jobs[job].group
    if shared:
        hit_text(jobs, groups, runs, st, group, shared)
        top = groups[group].top
        groups[group].users += 1
        groups[group].at_top = 1 if shared > top else groups[group].at_top + (shared == top)
        groups[group].top = max(top, shared)
        st.shared_twice += min(top, shared)
    if kept:
        hit_own(jobs, groups, runs, st, job)
    elif jobs[job].own != NO_RUN:
        forget_own(jobs, groups, runs, st, job)


@compiled
def admit_first(jobs, slots, groups, runs, rules, st, budget):
    """Start the head of the queue, or the first whose adapter has a slot. Returns its chunk's tokens, 0 = not now."""
    if st.running >= rules.slots:
        st.reason, st.blocked = BY_SLOTS, 1
        return 0
    before, job = -1, st.queue_head
    if rules.lora:
        before, job = first_with_adapter(jobs, groups, rules, st)
        if job < 0:
            st.reason, st.blocked = BY_LORA, 1
            return 0
    size = rules.block_size
    known = jobs[job].prompt + jobs[job].made
    group, shared, kept, pinned = jobs[job].group, 0, 0, 0
    if rules.caching and (group >= 0 or jobs[job].own != NO_RUN):
        shared, kept = find_cached(jobs, groups, runs, rules, st, job, known)
        pinned = kept + (max(0, shared - groups[group].top) if shared else 0)
    # KV that came with the request, from a prefill replica; gone once it has been preempted
    given = 0 if jobs[job].preemptions else jobs[job].given
    start = max((shared + kept) * size, given)
    todo = known - start
    tokens = min(todo, rules.threshold)
    if rules.chunked:
        tokens = min(tokens, budget)
    elif tokens > budget and (st.decoding or st.chunks) and (st.chunks or not rules.prefill_first):
        st.reason = BY_BUDGET
        st.blocked = 0 if st.chunks else 1
        return 0
    own = rules.fixed_blocks - shared
    if rules.paged:
        whole = own + blocks_for(rules, known)
        first = whole if rules.prefill_first else own + blocks_for(rules, start + tokens)
    else:
        whole = own + blocks_for(rules, jobs[job].prompt + jobs[job].limit if rules.reserve_output else rules.max_len)
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
    take_from_queue(jobs, slots, st, before, job)
    if rules.lora:
        count_waiting(jobs, groups, st, job, -1)
    since = jobs[job].waits_since if jobs[job].preemptions else jobs[job].arrival
    st.waiting_area += st.clock - since
    if np.isnan(jobs[job].admitted):
        jobs[job].admitted = st.clock
    take_cached(jobs, groups, runs, st, job, shared, kept)
    st.hit_tokens += (shared + kept) * size
    st.free_blocks -= first - kept + pinned
    st.allocated += first - kept
    take_slot(jobs, slots, groups, rules, st, job, known, start, shared, first)
    add_chunk(slots, st, st.run_last, tokens)
    if rules.grouped and rules.at_once:
        publish(jobs, slots, groups, runs, rules, st, st.run_last, start + tokens)
    return tokens


@compiled
def take_slot(jobs, slots, groups, rules, st, job, known, start, shared, first):
    """Give a request a slot, behind all running sequences; its prompt is under way."""
    adapter = jobs[job].adapter
    if rules.lora and adapter >= 0:
        if groups[adapter].adapter_users == 0:
            st.adapters += 1
            st.passed_over = -1
            st.fitting += groups[adapter].adapter_waiting
        groups[adapter].adapter_users += 1
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
def admit_all(jobs, slots, groups, runs, rules, st, budget):
    """Start requests of the queue while they may start and the budget lasts."""
    st.reason = BY_NOTHING
    while st.waiting:
        if budget <= 0 and st.running < rules.slots:
            st.reason = BY_BUDGET
            break
        tokens = admit_first(jobs, slots, groups, runs, rules, st, budget)
        if tokens == 0:
            break
        budget -= tokens


@compiled
def prompts_may_start(rules, st, more):
    """Whether a prefill-first engine looks at its queue after `more` decode steps (TGI lets some pass)."""
    if st.waiting == 0 or st.blocked:
        return False
    if st.decoding == 0 or (rules.max_waiting_steps == 0 and rules.serve_ratio == 0.0):
        return True
    if rules.max_waiting_steps and st.steps_since_prefill + more >= rules.max_waiting_steps:
        return True
    return rules.serve_ratio > 0.0 and st.waiting >= rules.serve_ratio * st.running


@compiled
def schedule_step(jobs, slots, groups, runs, calendar, rules, times, st, gain):
    """Decide what the next step holds. Returns how many sequences decode in it; -1: look again.

    Prompts go to the list of chunks. A prefill-first engine whose prompts may start runs a step of prompts alone; if
    none could start, the queue is marked as blocked and the next call schedules a decode step.
    """
    st.chunks = 0
    if not st.blocked:
        st.reason = BY_NOTHING
    prompts_only = rules.prefill_first and (st.partials > 0 or prompts_may_start(rules, st, 0))
    preempted = False
    budget = rules.budget
    if not prompts_only:
        preempted = st.decoding > 0 and grow_all(jobs, slots, groups, runs, calendar, rules, times, st, gain)
        budget -= st.decoding * rules.tokens_per_decode
    if prompts_only or not rules.prefill_first:
        if rules.retract:
            reserve_running(jobs, slots, st)
        st.ahead = 0 if prompts_only else gain
        budget, also = continue_partials(jobs, slots, groups, runs, calendar, rules, times, st, budget)
        st.ahead = 0
        preempted = preempted or also
        if not preempted and not st.blocked:
            admit_all(jobs, slots, groups, runs, rules, st, budget)
    if preempted:
        st.reason = BY_KV
    if prompts_only:
        return 0 if st.chunks else -1
    return st.decoding
