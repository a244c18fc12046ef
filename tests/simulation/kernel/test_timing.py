"""Parts of a step's time by closed forms. The whole loop is held against an independent one (test_equality.py)."""

import dataclasses
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

from planner.simulation.kernel import timing
from planner.simulation.kernel.timing import bin_begin, chunk_attention_s, gap_bin, next_gain, value_at
from planner.simulation.state import BINS_PER_OCTAVE, FIRST_OCTAVE, MAX_SAMPLES, NUM_BINS, SAMPLE_WIDTH, SAMPLES_FROM
from planner.step_time.step_table import StepTimeTable
from tests.simulation.cases import limits, make

TABLE = StepTimeTable(
    decode_s=np.array([0.0, 3.0, 4.0, 5.0, 8.0]),
    mixed_s=np.array([0.0, 6.0, 7.0, 9.0, 12.0]),
    head_s=np.array([0.0, 0.5, 0.75, 1.5]),
    attention_base_s=0.25,
    attention_per_sequence_s=0.125,
    attention_per_kv_token_s=0.0625,
    attention_floor_s=1.0,
)


def test_a_table_goes_on_straight_beyond_its_end():
    table = [0.0, 2.0, 3.0]
    assert value_at.py_func(table, 2, 0.5, 1) == 2.0
    assert value_at.py_func(table, 2, 0.5, 6) == 3.0 + 4 * 0.5


@pytest.mark.parametrize(("tokens", "context"), [(1, 0), (7, 0), (7, 3), (5, 40)])
@pytest.mark.parametrize("window", [0, 4, 64])
def test_each_token_of_a_chunk_attends_to_itself_and_what_came_before(tokens, context, window):
    times = SimpleNamespace(pair=2.0, token=0.5, window=window, window_pair=3.0)
    seen = range(context + 1, context + tokens + 1)
    expected = 2.0 * sum(seen) + 0.5 * tokens
    # A window holds the token itself, too: the tokens before it fill it up, then one leaves for each that comes.
    expected += 3.0 * sum(min(one, window) for one in seen) if window else 0.0
    assert chunk_attention_s.py_func(times, tokens, context) == pytest.approx(expected)


@pytest.mark.parametrize("accepted", [1.0, 1.7, 2.25, 3.0])
def test_tokens_per_step_average_to_what_drafting_gains(accepted):
    made = [next_gain.py_func(SimpleNamespace(gain=accepted), step) for step in range(400)]
    assert sum(made) == 400 * accepted
    assert set(made) <= {math.floor(accepted), math.ceil(accepted)}


def test_gaps_are_filed_by_size():
    one_s = -FIRST_OCTAVE * BINS_PER_OCTAVE
    assert gap_bin.py_func(1.0) == one_s
    assert gap_bin.py_func(1.5) == one_s + BINS_PER_OCTAVE // 2
    assert gap_bin.py_func(2.0) == one_s + BINS_PER_OCTAVE
    assert gap_bin.py_func(0.0) == 0
    assert gap_bin.py_func(1e30) == NUM_BINS - 1


# -- the time of a step


def step_s(b, **work):
    what = {"tokens": 0, "mixed": False, "rows": 0, "decodes": 0, "kv": 0, "window_kv": 0, "prefill": 0.0}
    what |= {"sequences": work.get("decodes", 0)} | work
    return b.do(timing.time_step, **what)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        # 2 tokens take 4 s; attention 0.25 + 2 * 0.125 + 16 / 16 = 1.5
        ({"tokens": 2, "decodes": 2, "kv": 16}, 4 + 1.5),
        # the least that attention takes is 1 s: 0.25 + 0.125 + 4 / 16 = 0.625
        ({"tokens": 1, "decodes": 1, "kv": 4}, 3 + 1.0),
        # with prompts another table, and the head of the 2 rows that sample
        ({"tokens": 3, "mixed": True, "rows": 2, "prefill": 2.5, "sequences": 1}, 9 + 0.75 + 2.5),
        # beyond the table's end on the slope of its upper half, (8 - 4) / 2
        ({"tokens": 6, "decodes": 6, "kv": 0}, 8 + 2 * 2 + 1.0),
    ],
)
def test_the_time_of_a_step(bench, work, expected):
    b = bench(make([0], [1], [1]), limits(), table=TABLE)
    assert step_s(b, **work) == pytest.approx(expected)
    terms = [b.st.linear_s, b.st.head_s, b.st.decode_attention_s, b.st.prefill_attention_s, b.st.host_s]
    assert sum(terms) == pytest.approx(expected)


@pytest.mark.parametrize(("overlaps", "host"), [(True, 0.5), (False, 6.0)])
def test_the_cpu_works_beside_the_gpu_or_before_it(bench, overlaps, host):
    # 5 + 1 * 1 s on the CPU, 3 + 1 + 1.5 on the GPU of a step with windowed layers.
    table = dataclasses.replace(
        TABLE,
        host_s=5.0,
        host_per_sequence_s=1.0,
        host_overlaps=overlaps,
        window_tokens=8,
        window_base_s=0.5,
        window_per_sequence_s=0.25,
        window_per_kv_token_s=0.125,
    )
    b = bench(make([0], [1], [1]), limits(), table=table)
    device = 3 + 1.0 + (0.5 + 0.25 + 6 * 0.125)
    assert step_s(b, tokens=1, decodes=1, kv=4, window_kv=6) == pytest.approx(device + host)
    assert b.st.host_s == pytest.approx(host)


def test_pipeline_stages_share_a_batch_out(bench):
    # Two stages: micro-batches of 2 tokens and 8 cached tokens each, a round of both.
    b = bench(make([0], [1], [1]), limits(), table=dataclasses.replace(TABLE, pipeline_stages=2))
    assert step_s(b, tokens=4, decodes=4, kv=16) == pytest.approx(2 * (4 + 1.0))
    # a single sequence passes them one after the other
    assert step_s(b, tokens=1, decodes=1, kv=4) == pytest.approx(2 * (3 + 1.0))


# -- gaps between tokens


@pytest.mark.parametrize("seed", range(4))
def test_the_longest_gap_since_a_sequence_joined(bench, seed):
    draw = random.Random(seed)
    b = bench(make([0], [1], [40]), limits())
    gaps = []
    for _ in range(1500):  # several times the length of the calendar, which keeps the stack
        gaps.append(round(draw.uniform(0.1, 9), 1))
        b.st.emissions += 1
        b.do(timing.push_gap, emission=b.st.emissions, gap=gaps[-1])
        entry = len(gaps) - draw.randrange(1, 40)
        if entry >= 0:
            assert b.do(timing.longest_gap, entry=entry) == max(gaps[entry:])
    assert b.do(timing.longest_gap, entry=len(gaps)) == 0.0


def test_a_newcomer_measures_from_its_own_first_token(bench):
    # A and B decode, C's prompt has just ended: A and B saw their last token at 1.0, C at 2.5; the step's is sent at 3.
    b = bench(make([0] * 3, [1] * 3, [9] * 3), limits(), name="sglang")
    slots = b.prefill(0, 1, 2)
    b.st.last_emission, b.st.server_free, b.st.newcomers = 1.0, 3.0, 1
    b.slots[0].newcomer = slots[2]
    b.slots[slots[2]].joined = 2.5
    b.tallies[:] = 0
    b.do(timing.emit_tokens, gain=1)
    assert b.tallies[b.st.gaps_from + gap_bin.py_func(2.0)] == 2
    assert b.tallies[b.st.gaps_from + gap_bin.py_func(0.5)] == 1
    assert b.jobs[2].max_gap == 0.5
    assert (b.st.last_emission, b.st.newcomers, b.slots[slots[2]].joined) == (3.0, 0, 3.0)


# -- the clock and what it sums


def test_windows_fill_up_and_stay_full(bench):
    # Lengths 2, 6 and 9 with a window of 8: after each token the sum of min(length, 8).
    b = bench(make([0] * 3, [2, 6, 9], [20] * 3), limits(), table=dataclasses.replace(TABLE, window_tokens=8))
    b.prefill(0, 1, 2)
    for made in range(10):
        lengths = [2 + made, 6 + made, 9 + made]
        assert b.st.window_tokens == sum(min(length, 8) for length in lengths)
        assert b.st.kv_tokens == sum(lengths)
        b.do(timing.advance_tokens, gain=1)
    assert (b.st.token_clock, b.st.decode_tokens, b.st.decode_steps) == (10, 30, 10)


def test_time_is_weighed_with_what_was_held(bench):
    b = bench(make([0], [1], [1]), limits(blocks=10, size=4), block_size=4)
    b.st.running, b.st.waiting, b.st.reason = 3, 2, 2
    b.st.free_blocks, b.st.kv_tokens, b.st.partial_tokens, b.st.shared_twice = 4, 20, 6, 1
    b.do(timing.pass_time, step_s=0.5, tokens=7)
    assert (b.st.clock, b.st.busy_s, b.st.steps, b.st.peak_running) == (0.5, 0.5, 1, 3)
    assert b.st.running_area == 0.5 * 3
    assert b.st.used_area == 0.5 * 6
    assert b.st.written_area == 0.5 * (20 + 6 - 4)  # a block that two sequences share is written once
    assert b.tallies[:5].tolist() == [0, 0, 0.5, 0, 0]
    b.st.waiting = 0
    b.do(timing.pass_time, step_s=1.0, tokens=7)
    assert b.tallies[2] == 0.5  # nobody waits, nobody is held up
    assert b.tallies[SAMPLES_FROM : SAMPLES_FROM + SAMPLE_WIDTH].tolist() == [0.5, 3, 2, 7, 6, 22, 0]


def test_samples_are_thinned_out_evenly(bench):
    b = bench(make([0], [1], [1]), limits())
    for step in range(1, 3 * MAX_SAMPLES):
        b.do(timing.pass_time, step_s=1.0, tokens=0)
        assert b.st.steps == step
    times = b.tallies[SAMPLES_FROM::SAMPLE_WIDTH][: b.st.samples]
    assert b.st.sample_stride == 4
    assert MAX_SAMPLES // 2 <= len(times) <= MAX_SAMPLES
    assert set(np.diff(times)) == {4.0}


@pytest.mark.parametrize("index", [0, 1, 63, 64, 1000, NUM_BINS - 2])
def test_a_bin_begins_where_the_one_before_ends(index):
    begin, end = bin_begin.py_func(index), bin_begin.py_func(index + 1)
    assert gap_bin.py_func(begin) == index == gap_bin.py_func(math.nextafter(end, 0.0))
    assert gap_bin.py_func(end) == index + 1
