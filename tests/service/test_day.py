"""A day of a toy service: what is paid for, what is met, what stands for what."""

import dataclasses

import numpy as np
import pytest

from planner.scenario.scenario import Scenario
from planner.service import day as day_module
from planner.service.day import AUTOSCALED, FIXED, SCHEDULED, Running, hourly_replicas, serve_day
from tests.service.cases import toy

#: a toy replica has 8 slots and takes one second a token: at most 0.8 req/s of ten tokens
HOURS = ".".join(["10"] * 8 + ["100"] * 8 + ["10"] * 8)
SCENARIO = Scenario(
    demand="rate", rate_rps=2.0, day_shape="drawn", day_hours=HOURS, ttft_target_s=5.0, tpot_target_s=2.0,
    lengths="constant", prompt_mean_tokens=10, output_mean_tokens=10, target_quantile=0.9,
)  # fmt: skip


def service(scenario=SCENARIO, **changes):
    fields = {
        "scenario": scenario,
        "replica": toy(),
        "num_replicas": 4,
        "num_serving": 4,
        "rate_each_rps": 0.5,
        "in_flight_each": 5.0,
        "startup_s": 60.0,
        "served_s": 10.0,
    }
    return Running(**{**fields, **changes})


@pytest.fixture(scope="module")
def day():
    return serve_day(service())


def test_a_fixed_fleet_is_paid_for_all_day(day):
    fixed = day.policies[0]
    assert fixed.name == FIXED
    assert fixed.replica_hours == pytest.approx(4 * 24, rel=1e-6)
    assert fixed.replicas == pytest.approx(np.full(24, 4.0))


def test_a_scheduled_fleet_has_what_each_hour_needs(day):
    # 0.2 req/s need one replica, 2 req/s four; three more start 60 s before hour 8.
    scheduled = day.policies[1]
    assert scheduled.name == SCHEDULED
    assert hourly_replicas(day.rates_rps, 0.5) == (1,) * 8 + (4,) * 8 + (1,) * 8
    assert scheduled.replicas[:7] == pytest.approx(np.ones(7))
    assert scheduled.replicas[7] > 1
    assert scheduled.replicas[9:16] == pytest.approx(np.full(7, 4.0))
    assert scheduled.most_replicas == 4
    assert scheduled.replica_hours < 0.55 * day.policies[0].replica_hours


def test_an_autoscaled_fleet_comes_late_and_follows(day):
    fixed, _, scaled = day.policies
    assert scaled.name == AUTOSCALED
    assert scaled.replicas[2] < 2 < scaled.replicas[12]
    assert scaled.met[8] < fixed.met[8]  # replicas start only once requests wait
    assert scaled.attainment < fixed.attainment


def test_all_policies_serve_the_same_requests(day):
    expected = sum(day.rates_rps) * day.simulated_s
    assert day.num_requests == pytest.approx(expected, rel=0.02)
    assert day.stands_for == 1.0
    assert day.simulated_s == 3600.0


def test_a_part_of_each_hour_stands_for_the_whole(monkeypatch, day):
    monkeypatch.setattr(day_module, "MOST_REQUESTS_OF_A_DAY", day.num_requests // 3)
    short = serve_day(service())
    assert short.simulated_s == pytest.approx(1200, rel=0.02)
    assert short.policies[0].replica_hours == pytest.approx(4 * 24, rel=1e-6)
    assert short.policies[1].replica_hours == pytest.approx(day.policies[1].replica_hours, rel=0.02)
    assert short.policies[0].attainment == pytest.approx(day.policies[0].attainment, abs=0.02)


def test_few_replicas_stand_for_many():
    many = serve_day(service(SCENARIO.replace(rate_rps=12.0), num_replicas=24, num_serving=24))
    assert many.stands_for == 2.0
    assert many.policies[0].replica_hours == pytest.approx(24 * 24, rel=1e-6)
    assert many.policies[1].replicas[12] == pytest.approx(24, rel=1e-6)


def test_services_of_one_scenario_are_the_same():
    assert service() == dataclasses.replace(service(), replica=toy(4))
    assert hash(service()) == hash(service())
    assert service() != service(SCENARIO.replace(rate_rps=3.0))
