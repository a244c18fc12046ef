"""Requests at a rate that changes, and the hours of a trace."""

import numpy as np
import pytest

from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario
from planner.workload.day import draw_spells, hours_of_trace
from planner.workload.drawing import draw_requests
from tests.simulation.cases import make


@pytest.mark.parametrize("arrivals", ["poisson", "bursty"])
def test_each_spell_has_its_rate(arrivals):
    scenario = Scenario(arrivals=arrivals, burst_cv=1.5)
    rates, spell = np.array([20.0, 0.0, 5.0, 40.0]), np.array([500.0, 300.0, 400.0, 100.0])
    requests = draw_spells(scenario, rates, spell)
    counts = np.histogram(requests.arrival_s, np.concatenate([[0.0], np.cumsum(spell)]))[0]
    expected = rates * spell
    assert counts[1] == 0
    assert (np.abs(counts - expected) <= 4 * 1.5 * np.sqrt(expected)).all()
    assert requests.rate_rps == pytest.approx(expected.sum() / spell.sum())


def test_lengths_are_those_of_the_scenario():
    scenario = Scenario(demand="rate", rate_rps=1.0)
    requests = draw_spells(scenario, np.array([2.0, 1.0]), np.array([100.0, 100.0]))
    plain = draw_requests(scenario.traffic, len(requests), scenario.seed, max_model_len=scenario.max_model_len)
    assert requests.prompt_tokens.tolist() == plain.prompt_tokens.tolist()


def test_a_day_without_requests_is_refused():
    with pytest.raises(InvalidInput, match="day_hours"):
        draw_spells(Scenario(), np.zeros(3), np.ones(3))


def test_hours_of_a_trace_by_hand():
    # Two days: in hour 0 three and one requests, in hour 5 four and four, in the last hour one and one.
    day = [0.0, 10.0, 20.0, *(5 * 3600 + k for k in range(4)), 23.5 * 3600]
    second = [86_400.0, *(86_400 + 5 * 3600 + k for k in range(4)), 86_400 + 23.5 * 3600]
    trace = make([*day, *second], [1] * 14, [1] * 14)
    hours = [int(part) for part in hours_of_trace(trace).split(".")]
    assert {hour: share for hour, share in enumerate(hours) if share} == {0: 50, 5: 100, 23: 25}


def test_a_trace_of_less_than_a_day_has_no_hours():
    with pytest.raises(InvalidInput, match="24 hours"):
        hours_of_trace(make([0.0, 7200.0], [1, 1], [1, 1]))
