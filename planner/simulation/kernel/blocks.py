"""KV blocks: who holds them, which free ones can be found again, and which are overwritten first.

vLLM keeps free blocks in a queue: it takes new blocks from the front and puts freed ones at the back, the last
block of a sequence first; a prefix hit takes blocks out of the middle. Only blocks that can be found again need
a place here, so the queue is a list of runs of such blocks, each with the number of dead blocks before it; dead
blocks behind the last run are not listed. Blocks taken since the last look are struck off the front by `settle`.
A run loses its last block first, because a sequence frees its last block first: what the cache still holds of a
text is always its beginning.

Simplifications: a prefix group has one text, which its requests continue one after the other. A block computed
while the cache already holds its copy is not published again, nor are the blocks after it: vLLM keeps both copies
and hits up to 0.3 % more tokens, 3 % in a pool that is far too small (20 prefixes of 512 tokens, Llama-3.1-8B on
an H100). What a sequence generates can be found once it has ended. SGLang and TensorRT-LLM cache in trees that
evict leaves first, which this queue stands for; llama.cpp's slots keep their prompts to themselves, but share them
here.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

from planner.simulation.kernel.compiling import compiled
from planner.simulation.state import DECODES, NO_RUN, NO_SLOT


@compiled
def blocks_for(rules, tokens):
    """Blocks that so many tokens fill or begin."""
    return (tokens + rules.block_size - 1) // rules.block_size


@compiled
def blocks_to_grow(calendar, rules, st, gain):
    """Blocks that all decoding sequences together need for `gain` more tokens each."""
    if not rules.paged:
        return 0
    need = 0
    for step in range(gain):
        need += calendar[(st.token_clock + step) % rules.block_size].growth
    return need


@compiled
def release_blocks(jobs, slots, groups, runs, rules, st, slot, keep):
    """Free what a sequence holds, including the blocks taken for the `st.ahead` tokens of this step.

    `keep`: it was preempted, so that it may find its own blocks again.
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
        publish(jobs, slots, groups, runs, rules, st, slot, written)
    shared = slots[slot].shared
    own = slots[slot].held
    if rules.paged and decodes:
        own = blocks_for(rules, length + st.ahead) - shared + rules.fixed_blocks
    kept = 0
    if keep and rules.caching and rules.paged:
        jobs[job].prefix = max(jobs[job].prefix, shared * rules.block_size)
        # SGLang leaves only the prompt in its cache
        kept = max(0, (min(written, jobs[job].prompt) if rules.retract else written) // rules.block_size - shared)
    st.free_blocks += own - kept
    if kept:
        jobs[job].own = add_run(jobs, groups, runs, st, -1, job, shared, shared + kept)
    if shared:
        release_text(jobs, slots, groups, runs, st, slot, shared)


@compiled
def release_text(jobs, slots, groups, runs, st, slot, shared):
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
            add_run(jobs, groups, runs, st, group, -1, top, shared)
    st.shared_twice -= shared - freed


@compiled
def settle(jobs, groups, runs, st):
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
            drop_run(jobs, groups, runs, st, run)


@compiled
def add_run(jobs, groups, runs, st, group, job, low, high):
    """Free blocks that can be found, at the back of the queue. Returns the number of their run."""
    settle(jobs, groups, runs, st)
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
def drop_run(jobs, groups, runs, st, run):
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
def hit_text(jobs, groups, runs, st, group, shared):
    """Take the first `shared` blocks of a text out of the queue, as far as they are free."""
    run = groups[group].lowest
    while run != NO_RUN and runs[run].low < shared:
        upper = runs[run].upper
        end = min(shared, runs[run].high)
        st.queued -= end - runs[run].low
        runs[run].low = end
        if end == runs[run].high:
            drop_run(jobs, groups, runs, st, run)
        run = upper


@compiled
def hit_own(jobs, groups, runs, st, job):
    """Take the blocks that a preempted request finds again out of the queue."""
    run = jobs[job].own
    st.queued -= runs[run].high - runs[run].low
    runs[run].low = runs[run].high
    drop_run(jobs, groups, runs, st, run)


@compiled
def forget_own(jobs, groups, runs, st, job):
    """Count the blocks that a preempted request left as dead; they keep their place in the queue."""
    run = jobs[job].own
    runs[run].dead += runs[run].high - runs[run].low
    runs[run].low = runs[run].high
    drop_run(jobs, groups, runs, st, run)


@compiled
def find_cached(jobs, groups, runs, rules, st, job, known):
    """Blocks that a waiting request finds in the cache: of its group's text, then its own from before preemption."""
    settle(jobs, groups, runs, st)
    group, own, text = jobs[job].group, jobs[job].own, 0
    if group >= 0:
        text = min(groups[group].cached, min(jobs[job].prefix, known - 1) // rules.block_size)
    if own != NO_RUN and runs[own].low <= text < runs[own].high:
        return runs[own].low, runs[own].high - runs[own].low
    return text, 0


@compiled
def publish(jobs, slots, groups, runs, rules, st, slot, tokens):
    """Let others find the blocks that a sequence has filled, if they continue the cached text of its group."""
    group = jobs[slots[slot].job].group
    if group < 0:
        return
    shared = slots[slot].shared
    full = min(tokens // rules.block_size, groups[group].limit)
    if full <= shared:
        return
    settle(jobs, groups, runs, st)
    if groups[group].cached != shared:
        return
    if shared == 0:
        groups[group].users += 1
    slots[slot].shared = full
    slots[slot].held -= full - shared
    groups[group].cached = full
    groups[group].top, groups[group].at_top = full, 1  # it held all of the text, so nobody holds more
    st.blocked = 0


@compiled
def reserved_blocks(jobs, rules, job):
    """Blocks that a request holds from admission where an engine reserves all of them."""
    whole = jobs[job].prompt + jobs[job].limit if rules.reserve_output else rules.max_len
    return blocks_for(rules, whole) + rules.fixed_blocks
