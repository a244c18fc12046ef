"""Charts over time against the figures that they draw."""

import dataclasses

import numpy as np
import pytest

from planner.charts.times import day_misses, day_replicas, months
from planner.cost.growth import growth
from planner.service.day import Day, DayPolicy
from tests.charts.cases import lines_at


def policy(name, replicas, met):
    hours = np.full(24, float(replicas))
    return DayPolicy(
        name=name, replicas=hours, met=np.full(24, met), ttft_s=np.ones(24), replica_hours=float(hours.sum()),
        attainment=met, most_replicas=replicas,
    )  # fmt: skip


DAY = Day(
    rates_rps=np.arange(24.0), policies=(policy("fixed", 4, 0.99), policy("scheduled", 3, 0.97),
    policy("autoscaled", 2, 0.9)), startup_s=60.0, stands_for=1.0, simulated_s=3600.0, num_requests=1000,
)  # fmt: skip


def test_replicas_and_load_are_drawn_by_the_hour():
    chart = day_replicas(DAY)
    load, *lanes = chart.figure["data"]
    assert load["y"][:24] == list(range(24))
    assert [lane["name"] for lane in lanes] == ["fixed", "scheduled", "autoscaled"]
    assert all(len(lane["x"]) == len(lane["y"]) == 25 for lane in lanes)
    assert "50 % fewer" in chart.title
    same = dataclasses.replace(DAY, policies=(policy("fixed", 4, 0.99), policy("scheduled", 4, 0.99)))
    assert "as many replica-hours" in day_replicas(same).title


def test_misses_name_the_policy_and_the_hours():
    chart = day_misses(DAY, 0.95)
    assert chart.title == "Too few requests meet the targets: autoscaled in 24 hours"
    assert lines_at(chart, "y") == [0.95]
    assert "Every policy" in day_misses(DAY, 0.85).title


def test_months_show_today_and_when_it_runs_out():
    found = growth(
        rate_rps=10.0, rate_each_rps=5.0, serving=3, spare=0, gpus_per_replica=2, usd_per_gpu_hour=1.0,
        hours_per_month=730.0, growth_per_month=0.1, lead_time_weeks=8.0, price_trend_per_year=0.0,
    )  # fmt: skip
    chart = months(found, 2, 0.1)
    have, orders = chart.figure["data"]
    assert have["y"][0] == 6
    # 15 req/s are passed in month 5: 10 × 1.1^5 = 16.1
    assert found.runs_out_month == 5
    assert lines_at(chart, "x") == [5]
    assert lines_at(chart, "y") == [6]
    assert orders["x"][0] == pytest.approx(5 - 1.84, abs=0.01)
