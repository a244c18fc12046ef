"""Parts of a step's time by closed forms. The whole loop is held against an independent one (test_equality.py)."""

import math
from types import SimpleNamespace

import pytest

from planner.simulation.kernel.timing import chunk_attention_s, gap_bin, next_gain, value_at
from planner.simulation.state import BINS_PER_OCTAVE, FIRST_OCTAVE, NUM_BINS


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
