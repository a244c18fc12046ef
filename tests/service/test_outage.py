"""One replica fails: who loses what, and how long it is felt."""

import math

import numpy as np
import pytest

from planner.service.day import Running
from planner.service.outage import DETECTION_S, _felt_s, serve_outage
from tests.service.cases import toy
from tests.service.test_day import SCENARIO


def service(rate, replicas, startup_s=120.0):
    return Running(
        scenario=SCENARIO.replace(rate_rps=rate),
        replica=toy(),
        num_replicas=replicas,
        num_serving=replicas,
        rate_each_rps=0.5,
        in_flight_each=5.0,
        startup_s=startup_s,
        served_s=10.0,
    )


def test_the_only_replica_leaves_nobody_served():
    without, spare = serve_outage(service(0.4, 1))
    assert without.recovery_s == DETECTION_S + 120.0
    assert without.during_met < 0.1  # those who came in the last 5 s before it is back do not wait long
    assert without.during_ttft_s > 60
    assert without.requests_during == pytest.approx(0.4 * 125)
    assert spare.during_met > 0.9


def test_what_is_left_of_the_fleet_is_overloaded():
    # Two replicas finish 1.6 req/s at most; one of them alone half of the 1.4 that come.
    without, spare = serve_outage(service(1.4, 2))
    assert without.before_met > without.during_met
    assert without.during_ttft_s > 4 * without.before_ttft_s
    assert spare.during_met > without.during_met
    # Little: 1.4 req/s for 10 s or more each, half of them on the one that fails
    assert 3 <= without.lost_requests <= 16


def test_large_fleets_spread_the_loss():
    without, spare = serve_outage(service(20.0, 40))
    assert without.num_replicas == 40
    assert without.lost_requests == pytest.approx(20.0 * 10 / 40)
    assert spare.num_replicas == 41
    assert abs(without.during_met - without.before_met) < 0.1


def test_how_long_it_is_felt_by_hand():
    # Failure at 100; requests every second until 300, 20 spans of 10 s: those of 100 to 130 miss.
    arrival = np.arange(0.0, 301.0)
    met = ~((arrival >= 100) & (arrival < 130))
    assert _felt_s(met, arrival, 100.0, 1.0, 0.95) == pytest.approx(30.0)
    assert _felt_s(np.ones(301, dtype=bool), arrival, 100.0, 1.0, 0.95) == 0.0
    assert math.isnan(_felt_s(met, arrival, 100.0, 0.5, 0.95))
    assert math.isinf(_felt_s(arrival < 100, arrival, 100.0, 1.0, 0.95))
