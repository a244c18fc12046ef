"""Time of a step, tokens per step, and the gaps between tokens."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from planner.simulation.kernel.compiling import compiled
from planner.simulation.state import (
    BINS_PER_OCTAVE,
    DECODE,
    DECODES,
    FIRST_OCTAVE,
    HEAD,
    MAX_SAMPLES,
    MIXED,
    NO_SLOT,
    NUM_BINS,
    SAMPLE_WIDTH,
    SAMPLES_FROM,
)


@compiled
def value_at(table, last, slope, index):
    """A table's value, on a straight line beyond its end."""
    if index <= last:
        return table[index]
    return table[last] + slope * (index - last)


@compiled
def chunk_attention_s(times, tokens, context):
    """Attention time of a part of a prompt on `context` tokens before it. [s]"""
    pairs = tokens * (context + (tokens + 1) / 2)
    seconds = times.pair * pairs + times.token * tokens
    if times.window:
        growing = min(max(0, times.window - context), tokens)
        inside = growing * context + growing * (growing + 1) / 2 + (tokens - growing) * times.window
        seconds += times.window_pair * inside
    return seconds


@compiled
def decode_attention_s(times, decodes, kv, window_kv):
    """Attention time of sequences that decode, on `kv` tokens together, of which windows see `window_kv`. [s]"""
    seconds = max(times.floor, times.base + times.per_sequence * decodes + times.per_kv * kv)
    if times.window:
        seconds += max(
            times.window_floor,
            times.window_base + times.window_per_sequence * decodes + times.window_per_kv * window_kv,
        )
    return seconds


@compiled
def exposed_host_s(times, device_s, sequences):
    """What a step's work on the CPU adds to its time on the GPU. [s]"""
    host = times.host + times.host_per_sequence * sequences
    return max(0.0, host - device_s) if times.overlaps else host


@compiled
def time_step(tables, times, st, tokens, mixed, rows, decodes, kv, window_kv, prefill, sequences):
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
        linear = value_at(tables[MIXED], times.mixed_last, times.mixed_slope, tokens)
        head = value_at(tables[HEAD], times.head_last, times.head_slope, rows)
    else:
        linear = value_at(tables[DECODE], times.decode_last, times.decode_slope, tokens)
    attention = decode_attention_s(times, decodes, kv_part, window_part) if decodes else 0.0
    device = linear + head + attention + prefill
    exposed = exposed_host_s(times, device, sequences)
    stages = times.stages
    st.launching = times.launch if mixed else 0.0
    st.linear_s += stages * linear
    st.head_s += stages * head
    st.decode_attention_s += stages * attention
    st.prefill_attention_s += stages * prefill
    st.host_s += stages * exposed
    return stages * (device + exposed)


@compiled
def next_gain(rules, steps):
    """Tokens that every sequence makes in the next decode step; its mean is rules.gain."""
    return int(np.floor((steps + 1) * rules.gain)) - int(np.floor(steps * rules.gain))


@compiled
def gap_bin(gap):
    """Bin of a gap: 64 per octave."""
    if gap <= 0:  # of tokens that a busy server sends at no cost
        return 0
    fraction, exponent = math.frexp(gap)
    index = ((exponent - 1 - FIRST_OCTAVE) * BINS_PER_OCTAVE) + int((fraction - 0.5) * 2 * BINS_PER_OCTAVE)
    return min(max(0, index), NUM_BINS - 1)


@compiled
def bin_begin(index):
    """Where a bin of gaps begins. [s]"""
    octave = index // BINS_PER_OCTAVE
    return math.ldexp(1 + (index - octave * BINS_PER_OCTAVE) / BINS_PER_OCTAVE, octave + FIRST_OCTAVE)


@compiled
def push_gap(calendar, st, emission, gap):
    """File the gap of an emission, dropping smaller ones before it: what remains are suffix maxima."""
    first, top = st.stack_from, st.stack_to
    while top > first and calendar[top - 1].stack_gap <= gap:
        top -= 1
    if top == len(calendar):
        # No sequence decodes longer than half of it: older entries are asked for no more.
        oldest = emission - len(calendar) // 2
        kept = 0
        for k in range(first, top):
            if calendar[k].stack_index > oldest:
                calendar[kept].stack_index = calendar[k].stack_index
                calendar[kept].stack_gap = calendar[k].stack_gap
                kept += 1
        top = kept
        st.stack_from = 0
    calendar[top].stack_index = emission
    calendar[top].stack_gap = gap
    st.stack_to = top + 1


@compiled
def longest_gap(calendar, st, entry):
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
def record_gap(jobs, tallies, st, job, gap):
    """File a gap of one request alone."""
    jobs[job].max_gap = max(jobs[job].max_gap, gap)
    tallies[st.gaps_from + gap_bin(gap)] += 1


@compiled
def send_messages(jobs, slots, tallies, rules, st, gain):
    """Clients see tokens by messages, each sequence's at its own time: record the gaps of those that are sent now.

    A message goes out with the first token, once so many tokens have gathered, and with the last one (vLLM
    `v1/engine/output_processor.py`, `make_request_output`).
    """
    slot = st.run_first
    while slot != NO_SLOT:
        if slots[slot].kind == DECODES:
            slots[slot].untold += gain
            if slots[slot].untold >= rules.stream_interval or slots[slot].key <= st.token_clock:
                record_gap(jobs, tallies, st, slots[slot].job, st.server_free - slots[slot].told)
                slots[slot].told = st.server_free
                slots[slot].untold = 0
        slot = slots[slot].run_after
    st.newcomers = 0


@compiled
def emit_tokens(jobs, slots, calendar, tallies, rules, st, gain):
    """Tokens of all decoding sequences have been sent, `gain` of each: record the gap."""
    st.emissions += 1
    if rules.stream_interval > 1:
        st.last_emission = st.server_free
        send_messages(jobs, slots, tallies, rules, st, gain)
        return
    gap = st.server_free - st.last_emission
    st.last_emission = st.server_free
    newcomers = st.newcomers
    if st.decoding > newcomers:
        push_gap(calendar, st, st.emissions, gap)
        tallies[st.gaps_from + gap_bin(gap)] += st.decoding - newcomers
    for k in range(newcomers):
        slot = slots[k].newcomer
        own = st.server_free - slots[slot].joined
        record_gap(jobs, tallies, st, slots[slot].job, own)
        slots[slot].entry = st.emissions
        slots[slot].joined = st.server_free
    st.newcomers = 0


@compiled
def advance_tokens(calendar, times, st, gain):
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
def pass_time(tallies, rules, st, step_s, tokens):
    """Pass the time of a step: clock, integrals, samples."""
    st.filled = st.clock + min(step_s, st.launching)
    st.clock += step_s
    st.busy_s += step_s
    st.running_area += step_s * st.running
    used = rules.blocks - st.free_blocks
    written = st.kv_tokens + st.partial_tokens - rules.block_size * st.shared_twice
    st.used_area += step_s * used
    st.written_area += step_s * written
    if st.waiting:
        tallies[st.reason] += step_s
    st.peak_running = max(st.peak_running, st.running)
    st.steps += 1
    if st.steps >= st.next_sample:
        take_sample(tallies, st, tokens, used, written)


@compiled
def take_sample(tallies, st, tokens, used, written):
    """Keep a sample of the timeline, and every other one only once they are many."""
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
