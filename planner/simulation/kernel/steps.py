"""Steps as they pass: scheduled ones, runs that only decode, static batches."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numpy as np

from planner.simulation.kernel.arrivals import patience_since, seen_until
from planner.simulation.kernel.blocks import blocks_to_grow, publish, reserved_blocks
from planner.simulation.kernel.compiling import MAX_STEPS, compiled
from planner.simulation.kernel.queue import take_from_queue
from planner.simulation.kernel.schedule import add_chunk, prompts_may_start, take_slot
from planner.simulation.kernel.sequences import finish_sequence, start_decoding
from planner.simulation.kernel.server import next_arrival_s, send_tokens
from planner.simulation.kernel.timing import (
    advance_tokens,
    bin_begin,
    chunk_attention_s,
    decode_attention_s,
    emit_tokens,
    exposed_host_s,
    gap_bin,
    next_gain,
    pass_time,
    push_gap,
    record_gap,
    time_step,
    value_at,
)
from planner.simulation.state import BY_KV, BY_NOTHING, BY_SLOTS, DECODE, NO_SLOT, PARTIAL, RATIO_DECAY_STEPS


@compiled
def complete_prompt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot):
    """The last chunk of a prompt ran: its sequence emits a token."""
    job = slots[slot].job
    known = slots[slot].known
    st.partial_tokens -= known
    made = jobs[job].made + 1
    slots[slot].untold = jobs[job].untold + 1
    if made == 1:
        jobs[job].first_token = st.server_free
    is_sent = made == 1 or slots[slot].untold >= rules.stream_interval or made == jobs[job].output
    if is_sent and made > 1:
        record_gap(jobs, tallies, st, job, st.server_free - jobs[job].last_token)
    slots[slot].told = st.server_free if is_sent else jobs[job].last_token
    slots[slot].untold = 0 if is_sent else slots[slot].untold
    if rules.grouped and not rules.at_once:
        publish(jobs, slots, groups, runs, rules, st, slot, known)
    if made == jobs[job].output:
        finish_sequence(jobs, slots, groups, runs, rules, st, slot)
    else:
        start_decoding(jobs, slots, calendar, rules, times, st, slot, made)


@compiled
def execute_step(slots, calendar, tallies, tables, rules, times, st, decodes, gain, pad):
    """Pass the time of a scheduled step: `decodes` sequences make `gain` tokens, chunks are computed.

    `pad` > 0 is the common length to which a static batch pads its prompts. Returns how many prompts are complete.
    """
    tokens, prefill, prompts = decodes * rules.tokens_per_decode, 0.0, 0
    alone, kv, window_kv = 0, 0, 0  # chunks of one token, which vLLM computes as it does decodes
    for k in range(st.chunks):
        slot, part = slots[k].chunk_slot, slots[k].chunk_tokens
        computed = max(part, pad)
        if rules.one_is_decode and part == 1:
            alone += 1
            kv += slots[slot].computed + 1
            window_kv += min(slots[slot].computed + 1, times.window)
        else:
            prefill += chunk_attention_s(times, computed, slots[slot].computed)
        slots[slot].computed += part
        st.partial_tokens += part
        st.prefill_tokens += computed
        tokens += computed
        if slots[slot].computed == slots[slot].known:
            prompts += 1
    rows = decodes * rules.tokens_per_decode + prompts
    if decodes:
        advance_tokens(calendar, times, st, gain)
        kv, window_kv = kv + st.kv_tokens, window_kv + st.window_tokens
    sequences, mixed = decodes + st.chunks, st.chunks > alone
    step_s = time_step(tables, times, st, tokens, mixed, rows, decodes + alone, kv, window_kv, prefill, sequences)
    pass_time(tallies, rules, st, step_s, tokens)
    return prompts


@compiled
def complete_chunks(jobs, slots, groups, runs, calendar, tallies, rules, times, st):
    """Tokens of the prompts that the step completed; the others stay in the list of partial prompts."""
    st.steps_since_prefill = 0
    for k in range(st.chunks):
        slot = slots[k].chunk_slot
        if slots[slot].kind == PARTIAL and slots[slot].computed == slots[slot].known:
            complete_prompt(jobs, slots, groups, runs, calendar, tallies, rules, times, st, slot)
    kept = 0
    for k in range(st.partials):
        slot = slots[k].partial
        if slots[slot].kind == PARTIAL:
            slots[kept].partial = slot
            kept += 1
    st.partials = kept
    st.chunks = 0


@compiled
def decode_step_done(jobs, slots, calendar, tallies, rules, st, gain):
    """Tokens of a decode step came out, `gain` of each sequence; SGLang's ratio decays."""
    emit_tokens(jobs, slots, calendar, tallies, rules, st, gain)
    st.steps_since_prefill += 1
    if rules.retract:
        decay = (rules.start_ratio - rules.min_ratio) / RATIO_DECAY_STEPS
        st.ratio = max(rules.min_ratio, st.ratio - decay)


@compiled
def decode_run(jobs, slots, calendar, tallies, tables, rules, times, st, feed, until):
    """Steps that only decode, until a sequence ends, a block is missing, or a request is sent or has been read.

    Returns the tokens that each sequence made in the last of them, which are not sent yet; 0 if a block is missing.
    """
    event = min(st.sending, until)
    read = jobs[feed[st.next]].waits_since if st.next < st.read else np.inf
    batch = st.batch if rules.static else st.decoding
    tokens = batch * rules.tokens_per_decode
    mask = len(calendar) // 2 - 1
    silent_since = patience_since(jobs, st, feed, True) if rules.patience_s < np.inf else np.inf
    open_since = patience_since(jobs, st, feed, False) if rules.timeout_s < np.inf else np.inf
    if not rules.static and not st.blocked:
        st.reason = BY_NOTHING
    while True:
        gain = next_gain(rules, st.decode_steps)
        need = blocks_to_grow(calendar, rules, st, gain)
        if need > st.free_blocks:
            return 0
        st.free_blocks -= need
        st.allocated += need
        advance_tokens(calendar, times, st, gain)
        kv, window_kv = st.kv_tokens, st.window_tokens
        if rules.static:
            st.batch_pad += gain
            st.batch_kv += gain * batch
            kv, window_kv = st.batch_kv, batch * min(st.batch_pad, times.window)
        step_s = time_step(tables, times, st, tokens, st.chunks > 0, st.chunks, batch, kv, window_kv, 0.0, batch)
        pass_time(tallies, rules, st, step_s, tokens)
        due = False
        for key in range(st.token_clock - gain + 1, st.token_clock + 1):
            due = due or calendar[key & mask].due != NO_SLOT
        if due or st.clock >= event or st.steps > MAX_STEPS:
            return gain
        if seen_until(rules, st) >= read and (st.steps_since_prefill + 1) % rules.receive_interval == 0:
            return gain
        if st.clock - silent_since > rules.patience_s or st.clock - open_since > rules.timeout_s:
            return gain
        if st.waiting and not st.blocked and prompts_may_start(rules, st, 1):
            return gain
        send_tokens(slots, calendar, rules, st, gain, 0)
        decode_step_done(jobs, slots, calendar, tallies, rules, st, gain)
        if may_stride(rules, times, st):
            stride(calendar, tallies, tables, rules, times, st, min(event, read))


@compiled
def may_stride(rules, times, st):
    """Whether decode-only steps change nothing but the clock until the next event, so that `stride` may pass them."""
    plain = rules.gain == 1.0 and times.stages == 1 and times.window == 0 and rules.static == 0
    plain = plain and rules.stream_interval == 1
    patient = rules.patience_s == np.inf and rules.timeout_s == np.inf
    return plain and patient and st.newcomers == 0 and st.chunks == 0 and (st.waiting == 0 or st.blocked)


@compiled
def stride(calendar, tallies, tables, rules, times, st, until):
    """Pass steps that only decode, up to the last one before a sequence ends, a block is missing or `until` comes.

    The same sums in the same order as step by step (`decode_run`), held in registers: a third of its time.
    """
    batch, mask = st.decoding, len(calendar) // 2 - 1
    linear = value_at(tables[DECODE], times.decode_last, times.decode_slope, batch * rules.tokens_per_decode)
    written = st.partial_tokens - rules.block_size * st.shared_twice
    work_s, steps_left = batch * rules.server_token_s, min(st.next_sample, MAX_STEPS) - st.steps - 1
    clock, busy, server, sent = st.clock, st.busy_s, st.server_free, st.last_emission
    filled = st.filled
    running_area, used_area, written_area = st.running_area, st.used_area, st.written_area
    linear_s, attention_s, host_s, held_s = st.linear_s, st.decode_attention_s, st.host_s, tallies[st.reason]
    kv, free, phase, steps = st.kv_tokens, st.free_blocks, st.token_clock % rules.block_size, 0
    index, low, high, binned = 0, 0.0, 0.0, 0
    longest, longest_at = -1.0, 0
    while steps < steps_left:
        need = calendar[phase].growth if rules.paged else 0
        if need > free or calendar[(st.token_clock + steps + 1) & mask].due != NO_SLOT:
            break
        attention = decode_attention_s(times, batch, kv + batch, 0.0)
        device = linear + attention
        exposed = exposed_host_s(times, device, batch)
        step_s = device + exposed
        if clock + step_s >= until:
            break
        steps += 1
        filled = clock
        kv += batch
        free -= need
        phase = phase + 1 if phase + 1 < rules.block_size else 0
        linear_s += linear
        attention_s += attention
        host_s += exposed
        clock += step_s
        busy += step_s
        held_s += step_s
        running_area += step_s * st.running
        used_area += step_s * (rules.blocks - free)
        written_area += step_s * (kv + written)
        server = max(server, clock) + work_s
        gap = server - sent
        sent = server
        if gap < longest:
            push_gap(calendar, st, st.emissions + longest_at, longest)
        longest, longest_at = gap, steps
        if gap < low or gap >= high:
            tallies[st.gaps_from + index] += binned
            index, binned = gap_bin(gap), 0
            low, high = bin_begin(index), bin_begin(index + 1)
        binned += batch
    if steps == 0:
        return
    push_gap(calendar, st, st.emissions + longest_at, longest)
    tallies[st.gaps_from + index] += binned
    if st.waiting:
        tallies[st.reason] = held_s
    st.clock, st.busy_s, st.server_free, st.last_emission = clock, busy, server, sent
    st.filled = filled
    st.running_area, st.used_area, st.written_area = running_area, used_area, written_area
    st.linear_s, st.decode_attention_s, st.host_s = linear_s, attention_s, host_s
    st.allocated += st.free_blocks - free
    st.kv_tokens, st.free_blocks = kv, free
    st.decode_tokens += steps * batch
    st.token_clock += steps
    st.decode_steps += steps
    st.steps += steps
    st.emissions += steps
    st.steps_since_prefill += steps
    if rules.retract:
        decay = (rules.start_ratio - rules.min_ratio) / RATIO_DECAY_STEPS
        for _ in range(steps):
            st.ratio = max(rules.min_ratio, st.ratio - decay)


@compiled
def form_batch(jobs, slots, groups, rules, st, feed):
    """Take a static batch if it is full or has waited long enough. Returns the time to wait until, or -1."""
    size, need, job = 0, 0, st.queue_head
    while job >= 0 and size < rules.slots:
        more = reserved_blocks(jobs, rules, job)
        if need + more > st.free_blocks:
            break
        need += more
        size += 1
        job = jobs[job].after
    full = size == rules.slots or job >= 0
    arrival = next_arrival_s(jobs, rules, st, feed)
    deadline = jobs[st.queue_head].arrival + rules.batch_timeout_s
    last = arrival == np.inf and st.closed == 1
    if not full and not last and st.clock < deadline:
        return min(arrival, deadline)
    st.reason = BY_SLOTS if size == rules.slots else BY_KV
    st.chunks = 0
    st.batch_pad = 0
    for _ in range(size):
        head = st.queue_head
        take_from_queue(jobs, slots, st, -1, head)
        st.waiting_area += st.clock - jobs[head].arrival
        jobs[head].admitted = st.clock
        first = reserved_blocks(jobs, rules, head)
        none = st.batch  # 0 here: no prefix is shared in a static batch
        st.free_blocks -= first
        take_slot(jobs, slots, groups, rules, st, head, jobs[head].prompt, none, none, first)
        st.batch_pad = max(st.batch_pad, jobs[head].prompt)
        add_chunk(slots, st, st.run_last, jobs[head].prompt)
    st.batch, st.batch_kv = size, size * st.batch_pad
    return -1.0


@compiled
def decodes_only(rules, st):
    """Whether the next step holds no prompt for sure."""
    if st.partials or st.decoding == 0:
        return False
    if rules.static or st.waiting == 0 or st.blocked:
        return True
    return rules.prefill_first and not prompts_may_start(rules, st, 0)
