"""Recorded steps: the same run float for float, and what the slots do by hand."""

import numpy as np
import pytest

from planner.inputs.engine import Batching, EngineSettings, KvReservation, OnMemoryShortage
from planner.simulation.machine import collect, make_machine, simulate
from planner.simulation.seed_article import SLOTS, seed_lengths, seed_steps, seed_table
from planner.simulation.step_trace import DECODE, HELD, PREFILL, RECOMPUTE, Span, next_step, record_steps
from tests.simulation.cases import UNIT, limits, make, random_case

CASES = [(seed, pressure) for pressure in (False, True) for seed in range(150)]
LINES = ("time_s", "running", "waiting", "kv_blocks_used", "kv_tokens_written")


def engine(batching=Batching.CONTINUOUS, reservation=KvReservation.PAGED):
    shortage = OnMemoryShortage.PREEMPT_LAST if reservation is KvReservation.PAGED else OnMemoryShortage.NEVER
    return EngineSettings(
        family="vllm",
        batching=batching,
        kv_reservation=reservation,
        on_memory_shortage=shortage,
        enable_prefix_caching=False,
    )


def test_a_run_that_is_stopped_after_every_step_is_the_same_run():
    for seed, pressure in CASES:
        requests, settings, capacity, table = random_case(seed, pressure=pressure)
        whole = simulate(requests, settings, capacity, table)
        machine = make_machine(requests, settings, capacity, table)
        while next_step(machine) is not None:
            pass
        stopped = collect(requests, [machine], table, np.zeros(len(requests), dtype=np.int64))
        for name in ("finish_s", "first_token_s", "status", "num_preemptions", "max_itl_s", "admitted_s"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(stopped, name), f"{name}, case {seed}")
        for name in ("num_steps", "busy_s", "duration_s", "mean_kv_used_fraction", "mean_kv_written_fraction"):
            assert getattr(whole, name) == getattr(stopped, name), (name, seed)


def test_recorded_steps_are_those_that_the_figures_are_made_of():
    preempted = 0
    for seed, pressure in CASES:
        requests, settings, capacity, table = random_case(seed, pressure=pressure)
        whole = simulate(requests, settings, capacity, table, timeline=True)
        trace = record_steps(requests, settings, capacity, table, num_steps=10**6)
        assert trace.is_end
        assert len(trace) == whole.num_steps
        assert len(trace.preemptions) == whole.num_preemptions.sum()
        preempted += len(trace.preemptions)
        assert (trace.end_s - trace.start_s).sum() == pytest.approx(whole.busy_s)
        assert (trace.start_s[1:] >= trace.end_s[:-1]).all()
        if whole.timeline is not None and whole.num_steps < 4096:  # every step is a sample
            for name in LINES:
                mine = trace.end_s if name == "time_s" else getattr(trace, name)
                np.testing.assert_array_equal(getattr(whole.timeline, name), mine, f"{name}, case {seed}")
        if settings.batching is not Batching.STATIC:  # which pads its prompts
            assert sum(span.tokens for span in trace.spans) == whole.prefill_tokens_computed
    assert preempted > 50


def test_a_window_is_a_part_of_the_whole():
    requests = make([1.5 * k for k in range(30)], [7] * 30, [k % 9 + 1 for k in range(30)])
    settings, capacity, table = engine(), limits(blocks=40), UNIT
    whole = record_steps(requests, settings, capacity, table, num_steps=10**6)
    middle = float(whole.start_s[len(whole) // 2])
    part = record_steps(requests, settings, capacity, table, from_s=middle, num_steps=5)
    assert part.start_s[0] >= middle
    first = part.before
    np.testing.assert_array_equal(part.end_s, whole.end_s[first : first + len(part)])
    np.testing.assert_array_equal(part.kv_blocks_used, whole.kv_blocks_used[first : first + len(part)])


# Two slots, answers of 3, 1 and 2 tokens: the second slot is free after the first step, and the third request takes it.
def test_slots_by_hand():
    trace = record_steps(make([0, 0, 0], [5, 5, 5], [3, 1, 2]), engine(), limits(seqs=2), UNIT)
    assert trace.is_end and len(trace) == 3
    assert sorted(trace.spans) == [
        Span(0, 0, PREFILL, 0, 1, 5),
        Span(0, 0, DECODE, 1, 3, 0),
        Span(1, 1, PREFILL, 0, 1, 5),
        Span(1, 2, PREFILL, 1, 2, 5),
        Span(1, 2, DECODE, 2, 3, 0),
    ]
    assert trace.waiting.tolist() == [1, 0, 0]
    assert trace.decodes.tolist() == [0, 1, 2]
    assert trace.prefill_tokens.tolist() == [10, 5, 0]
    assert trace.start_s.tolist() == [0, 1, 2] and trace.end_s.tolist() == [1, 2, 3]


# A static batch of two keeps both slots for the longer answer.
def test_a_static_batch_holds_the_slot_of_a_finished_answer():
    static = engine(Batching.STATIC, KvReservation.MODEL_LIMIT)
    trace = record_steps(make([0, 0, 0], [1, 1, 1], [3, 1, 2]), static, limits(seqs=2, max_len=10), UNIT)
    assert Span(1, 1, HELD, 1, 3, 0) in trace.spans
    assert trace.waiting.tolist() == [1, 1, 1, 0, 0]


# Blocks of one token. Prompts of 3 and 3 fill 6 of 8, and each step adds two: the step after the next has none left.
def test_a_preempted_request_is_marked_and_computed_again():
    trace = record_steps(make([0, 0], [3, 3], [4, 4]), engine(), limits(blocks=8), UNIT)
    (mark,) = trace.preemptions
    assert (mark.slot, mark.request, mark.step) == (1, 1, 2)
    again = [span for span in trace.spans if span.kind == RECOMPUTE]
    assert [(span.request, span.tokens) for span in again] == [(1, 5)]  # its prompt and the two tokens made so far
    assert trace.kv_blocks_used.max() <= 8


@pytest.mark.parametrize("row", range(3))
def test_the_articles_rows_step_by_step(row):
    told = seed_table().rows[row]
    trace = seed_steps(told.scheduling, 30_000)
    assert trace.is_end and len(trace) == told.decode_steps
    work = sum(span.end - span.first for span in trace.spans if span.kind != HELD)
    assert work == sum(seed_lengths())  # a step makes one token of each running request
    slots = 1 if trace.num_slots == 1 else SLOTS
    assert work / (slots * len(trace)) == pytest.approx(told.slots_busy_fraction)
    held = sum(span.end - span.first for span in trace.spans if span.kind == HELD)
    assert (held > 0) is ("static" in told.scheduling)


def test_nothing_to_serve_records_nothing():
    trace = record_steps(make([0], [50], [60]), engine(), limits(max_len=100), UNIT)
    assert len(trace) == 0 and trace.is_end
    over = record_steps(make([0], [5], [6]), engine(), limits(), UNIT, from_s=1e9)
    assert (len(over), over.before) == (0, 6)
