"""The hours of a day from the peak and its shape."""

import math

import pytest

from planner.errors import InvalidInput
from planner.scenario.fields import unsimulated_names
from planner.scenario.link import from_query, to_query
from planner.scenario.scenario import Scenario
from planner.scenario.times import DAY_SHAPES, HOURS

RATE = Scenario(demand="rate", rate_rps=10.0)


@pytest.mark.parametrize("shape", ["office", "two_peaks", "night_batch"])
@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
def test_a_shape_has_the_peak_and_the_mean_of_the_plan(shape, factor):
    scenario = RATE.replace(day_shape=shape, peak_factor=factor)
    rates = scenario.hourly_rates_rps
    assert max(rates) == pytest.approx(10.0)
    assert math.fsum(rates) / 24 == pytest.approx(scenario.mean_rate_rps, rel=1e-6)


def test_every_shape_has_its_hours():
    for shape in set(DAY_SHAPES) - {"drawn"}:
        assert len(RATE.replace(day_shape=shape).hourly_rates_rps) == HOURS == 24


def test_a_flat_day_stays_at_the_peak():
    assert set(RATE.replace(day_shape="flat").hourly_rates_rps) == {10.0}


def test_a_drawn_day_is_as_drawn():
    hours = ".".join(["10"] * 12 + ["100"] * 12)
    assert RATE.replace(day_shape="drawn", day_hours=hours).hourly_rates_rps == (1.0,) * 12 + (10.0,) * 12


@pytest.mark.parametrize("hours", ["", "1.2.3", ".".join(["0"] * 24), ".".join(["101"] * 24), ".".join(["-1"] * 24)])
def test_a_drawn_day_needs_24_percentages(hours):
    with pytest.raises(InvalidInput) as caught:
        RATE.replace(day_shape="drawn", day_hours=hours)
    assert caught.value.field == "day_hours"
    assert RATE.replace(day_shape="office", day_hours=hours).day_hours == hours  # not used, not judged


def test_a_link_carries_the_day():
    asked = RATE.replace(
        day_shape="drawn", day_hours=".".join(str(4 * hour) for hour in range(24)), growth_per_month=0.1
    )
    assert from_query(to_query(asked)).scenario == asked


def test_the_plan_does_not_depend_on_the_day():
    assert {"day_shape", "day_hours", "startup_s", "growth_per_month", "lead_time_weeks"} <= unsimulated_names()
