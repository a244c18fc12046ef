"""Recorded traffic: lengths, gaps, the shape of a day and a week."""

import numpy as np
import pytest

from planner.charts.recording import (
    LEAST_GAP,
    burstiness,
    recorded_day,
    recorded_gaps,
    recorded_lengths,
    recorded_week,
)
from planner.workload import Requests, summary_of

DAY_S = 86_400.0


def told_of(arrival, prompt=10, output=5):
    ones = np.ones(len(arrival), dtype=np.int64)
    return summary_of(
        Requests(
            arrival_s=np.asarray(arrival, dtype=float),
            prompt_tokens=ones * prompt,
            output_tokens=ones * output,
            output_limit_tokens=ones * output,
            prefix_group=-ones,
            prefix_tokens=0 * ones,
        )
    )


def test_lengths_are_named_by_their_medians():
    chart = recorded_lengths(told_of(np.arange(101.0), prompt=np.arange(101) + 100, output=7))
    assert chart.title == "Half of the prompts have at most 150 tokens, half of the answers 7"
    prompt, answer = chart.figure["data"]
    assert (prompt["x"][0], prompt["x"][-1]) == (100, 200)
    assert set(answer["x"]) == {7}


def test_gaps_of_a_poisson_process_lie_on_those_of_independent_users():
    arrival = np.cumsum(np.random.default_rng(1).exponential(0.5, 20_000))
    chart = recorded_gaps(told_of(arrival))
    recorded, chance = chart.figure["data"]
    middle = slice(4, 13)  # from 20 to 95 %
    np.testing.assert_allclose(recorded["x"][middle], chance["x"][middle], rtol=0.05)
    assert chart.title == "Requests arrive as irregularly as those of independent users"
    assert recorded_gaps(told_of([0.0, 1.0])) is None


def test_requests_that_arrive_together_stand_at_the_left_edge():
    chart = recorded_gaps(told_of(np.repeat(np.arange(100.0), 3)))
    assert chart.figure["data"][0]["x"][1] == LEAST_GAP
    assert chart.title.startswith("Bursty")


@pytest.mark.parametrize(("gap_cv", "word"), [(3.0, "Bursty"), (0.0, "Steady"), (1.05, "irregularly")])
def test_the_spread_of_the_gaps_in_words(gap_cv, word):
    assert word in burstiness(gap_cv)


def test_the_busiest_hour_and_day_are_named():
    # a request an hour for fourteen days, and 24 more at noon of the third day of each week
    hours = np.arange(14 * 24) * 3600.0
    noon = [(week * 7 + 2) * DAY_S + 12 * 3600 + minute for week in (0, 1) for minute in range(24)]
    told = told_of(np.sort(np.concatenate([hours, noon, [14 * DAY_S - 1]])))
    week = recorded_week(told)
    assert week.alt.endswith("day 3.")
    assert week.figure["data"][0]["y"][2] == pytest.approx(48 / DAY_S)
    assert recorded_day(told).alt.endswith("12 h.")
    assert recorded_week(told_of(hours[:48])) is None
    assert recorded_day(told_of([0.0, 10.0])) is None


def test_gaps_that_differ_by_rounding_alone_are_the_same():
    assert burstiness(1.7e-14) == "Steady: the gaps between requests are all the same"
