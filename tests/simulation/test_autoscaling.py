"""Replicas that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.errors import InvalidInput
from planner.simulation.autoscaling import Autoscaling, Failure, Timetable, simulate_service
from planner.simulation.records import FINISHED
from planner.simulation.router import simulate_fleet
from tests.simulation.cases import UNIT, limits, make

VLLM = get_engine("vllm")


def test_without_events_a_service_is_a_fleet():
    requests = make(np.arange(50) * 0.7, [5] * 50, [8] * 50)
    fleet = simulate_fleet(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3, router="least_outstanding")
    run = simulate_service(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3)
    np.testing.assert_array_equal(fleet.finish_s, run.result.finish_s)
    assert run.replica_seconds == pytest.approx(3 * run.result.duration_s)


def test_a_failed_replica_loses_its_work():
    # Two replicas, one request of 10 steps each. Replica 0 dies at 4.5, noticed at 6.5;
    # its request starts anew on replica 1 beside the other and ends 10 steps after the step that begins at 8, the
    # first that is filled after it came.
    requests = make([0, 0], [1, 1], [10, 20])
    run = simulate_service(requests, VLLM, limits(), UNIT, num_replicas=2, failure=Failure(time_s=4.5, detection_s=2.0))
    assert run.num_retried == 1
    assert run.result.finish_s.tolist() == [18, 20]
    assert run.result.replica.tolist() == [1, 1]
    assert run.replica_seconds == 4.5 + 20


def test_autoscaling_follows_the_load():
    # A burst of 60 requests within 30 s on one replica with 2 slots, then nothing for long, then one more.
    arrival = [*np.linspace(0, 30, 60), 400.0, 500.0]
    requests = make(arrival, [5] * 62, [20] * 62)
    rule = Autoscaling(max_replicas=4, target_per_replica=4, interval_s=5, startup_s=10, cooldown_s=60)
    scaled = simulate_service(requests, VLLM, limits(seqs=2), UNIT, autoscaling=rule)
    alone = simulate_service(requests, VLLM, limits(seqs=2), UNIT)
    assert scaled.replicas.max() == 4
    assert scaled.replicas[np.searchsorted(scaled.time_s, 490) - 1] == 1
    assert (scaled.result.status == FINISHED).all()
    assert scaled.result.finish_s[:60].max() < alone.result.finish_s[:60].max()
    assert alone.replica_seconds < scaled.replica_seconds < 4 * scaled.result.duration_s


def test_a_replica_that_starts_is_paid_for_before_it_serves():
    # Six requests of 10 steps on one slot. At 5 six are in flight: three replicas are wanted, two start and serve
    # from 15. Nobody comes after that, so the first replica serves all six, and three are paid for until 60.
    requests = make([0] * 6 + [5.5], [1] * 7, [10] * 6 + [1])
    rule = Autoscaling(max_replicas=3, target_per_replica=2, interval_s=5, startup_s=10, cooldown_s=1000)
    run = simulate_service(requests, VLLM, limits(seqs=1), UNIT, autoscaling=rule)
    assert (run.result.replica == 0).all()
    assert list(zip(run.time_s, run.replicas, strict=True)) == [(0, 1), (5, 3), (61, 0)]
    assert run.replica_seconds == 61 + 2 * (61 - 5)


def test_a_failed_replica_comes_back():
    # It dies at 2 and serves again from 12 as another one; what comes in between waits for it, since it is the only.
    requests = make([0, 4], [1, 1], [5, 1])
    failure = Failure(time_s=2.0, detection_s=1.0, recovery_s=10.0)
    run = simulate_service(requests, VLLM, limits(seqs=1), UNIT, failure=failure)
    assert run.result.finish_s.tolist() == [17, 18]
    assert run.result.arrival_s.tolist() == [0, 4]  # the lost time is theirs
    assert run.num_retried == 1


@pytest.mark.parametrize(
    "wrong",
    [{"min_replicas": 0}, {"min_replicas": 3, "max_replicas": 2}, {"target_per_replica": 0.0}, {"cooldown_s": -1.0}],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInput, match=list(wrong)[-1]):
        Autoscaling(**wrong)


def test_only_a_replica_that_is_there_can_fail():
    with pytest.raises(InvalidInput, match="0 to 1"):
        simulate_service(
            make([0], [1], [1]), VLLM, limits(), UNIT, num_replicas=2, failure=Failure(time_s=1, replica=2)
        )
    with pytest.raises(InvalidInput, match="open loop"):
        simulate_service(make([0], [1], [1], closed_loop_users=1), VLLM, limits(), UNIT)


def test_a_timetable_starts_replicas_ahead_of_time():
    # Two replicas from 100 s on, started at 90; from 200 s on one again, once the other has drained.
    requests = make(np.arange(300) * 1.0, [1] * 300, [2] * 300)
    table = Timetable(time_s=(0.0, 100.0, 200.0), replicas=(1, 2, 1), startup_s=10.0)
    run = simulate_service(requests, VLLM, limits(), UNIT, timetable=table)
    assert run.time_s[:2].tolist() == [0.0, 90.0]
    assert run.replicas.tolist() == [1, 2, 1, 0]
    assert 200.0 <= run.time_s[2] <= 215.0 + 1
    second = run.result.replica == 1
    assert requests.arrival_s[second].min() >= 100.0
    assert requests.arrival_s[second].max() < 200.0
    assert run.replica_seconds == pytest.approx(run.result.duration_s + run.time_s[2] - 90.0)


@pytest.mark.parametrize("router", ["round_robin", "random", "least_outstanding", "power_of_two"])
def test_a_service_that_stays_the_same_routes_like_a_fleet(router):
    requests = make(np.arange(80) * 0.6, [5] * 80, [8] * 80)
    fleet = simulate_fleet(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3, router=router, seed=5)
    run = simulate_service(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3, router=router, seed=5)
    np.testing.assert_array_equal(fleet.replica, run.result.replica)
    np.testing.assert_array_equal(fleet.finish_s, run.result.finish_s)


def test_fewer_replicas_stay_until_none_was_wanted_for_as_long():
    # A burst at 0 asks for four replicas at the first look, 5 s; it is over by 30 s. Kept for 60 s from then on.
    requests = make([*np.linspace(0, 1, 40), *np.arange(20.0, 300.0, 10.0)], [1] * 68, [20] * 68)
    rule = Autoscaling(max_replicas=4, target_per_replica=10, interval_s=5, startup_s=0, cooldown_s=60)
    run = simulate_service(requests, VLLM, limits(seqs=40), UNIT, autoscaling=rule)
    four = run.time_s[np.flatnonzero(run.replicas == 4)]
    fewer = run.time_s[np.flatnonzero(np.diff(run.replicas) < 0) + 1]
    assert four[0] == 5.0
    assert fewer[0] >= 5.0 + 60.0


def test_a_replica_that_has_drained_can_be_started_again():
    arrival = [*np.linspace(0, 10, 30), *np.linspace(400, 410, 30), 900.0]
    requests = make(arrival, [5] * 61, [20] * 61)
    rule = Autoscaling(max_replicas=2, target_per_replica=4, interval_s=5, startup_s=5, cooldown_s=30)
    run = simulate_service(requests, VLLM, limits(seqs=2), UNIT, autoscaling=rule)
    assert (run.result.status == FINISHED).all()
    assert (np.diff(run.replicas) > 0).sum() == 2  # scaled up for each of the two bursts
    assert run.result.replica.max() == 1


def test_a_rule_and_a_timetable_exclude_each_other():
    requests = make([0.0, 1.0], [1, 1], [1, 1])
    with pytest.raises(InvalidInput, match="timetable"):
        simulate_service(
            requests, VLLM, limits(), UNIT, autoscaling=Autoscaling(), timetable=Timetable(time_s=(0.0,), replicas=(1,))
        )
    with pytest.raises(InvalidInput, match="time_s"):
        Timetable(time_s=(5.0, 0.0), replicas=(1, 1))
