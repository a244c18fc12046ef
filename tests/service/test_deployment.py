"""How many replicas a plan buys, and whether they hold."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from planner import Scenario, plan
from planner.service.deployment import (
    Fleet,
    _as_in_the_fleet,
    deploy,
    replicas_for_targets,
    share_of_replica,
    steady_requests,
)
from planner.service.load import LoadCurve
from planner.workload.offered import draw
from tests.service.cases import toy

CLOSED = Scenario(arrivals="closed", concurrent_users=10, num_requests=400)
#: 8 slots, steps of a second, answers of 10 tokens: 0.8 requests a second at most
STEADY = Scenario(
    demand="rate", rate_rps=1.6, peak_factor=1.0, lengths="constant", prompt_mean_tokens=10, output_mean_tokens=10,
    ttft_target_s=50.0, tpot_target_s=5.0, num_requests=1000,
)  # fmt: skip


def fleet(*, capacity=2.5, serving=4, needed=None, attainment=1.0):
    return Fleet(
        curve=LoadCurve(points=(), capacity_rps=capacity, slo_rate_rps=2.0, binding=""),
        replicas_for_slo=needed,
        num_replicas=serving,
        num_serving=serving,
        result=None,
        metrics=SimpleNamespace(slo_attainment=attainment),
    )


def test_loose_targets_do_not_buy_a_fleet_that_falls_behind():
    done = plan(Scenario(demand="rate", rate_rps=500.0, ttft_target_s=20.0, tpot_target_s=1.0, num_requests=400))
    assert done.slo_met
    assert done.num_replicas * done.curve.capacity_rps >= 500.0
    fewer = int(500.0 / done.curve.capacity_rps)
    short = plan(done.scenario.replace(num_replicas=fewer))
    assert not short.slo_met


# Two replicas were found to hold 10 req/s, and one not: each holds 5 or more, and less than 10.
@pytest.mark.parametrize(("alone", "each", "words"), [(4.0, 5.0, "at least 10 req/s"), (6.0, 6.0, "12 req/s")])
def test_a_rate_that_a_fleet_was_only_shown_to_hold_is_the_least_that_it_holds(alone, each, words):
    curve = LoadCurve(points=(), capacity_rps=12.0, slo_rate_rps=alone, binding="")
    found = _as_in_the_fleet(curve, 10.0, 2)
    assert (found.slo_rate_rps, found.slo_rate_in_words(2)) == (each, words)
    most = _as_in_the_fleet(dataclasses.replace(curve, slo_rate_rps=11.0), 10.0, 2)
    assert 9.9 < most.slo_rate_rps < 10.0
    assert not most.slo_rate_is_least


@pytest.mark.parametrize(("rate_rps", "overloaded"), [(9.9, False), (10.0, False), (10.1, True)])
def test_four_replicas_bear_four_times_the_capacity_of_one(rate_rps, overloaded):
    assert fleet().overloaded(rate_rps) is overloaded
    assert fleet().holds(STEADY.replace(rate_rps=rate_rps)) is not overloaded
    assert fleet().holds(CLOSED)  # users wait for their answers: no queue grows for ever
    assert not fleet(attainment=0.9).holds(STEADY.replace(rate_rps=1.0))  # 95 % are asked for


def test_one_replica_gets_its_share():
    drawn = draw(STEADY)
    assert drawn.rate_rps == 1.6
    open_loop = share_of_replica(STEADY, drawn, 4)
    assert open_loop.rate_rps == 0.4
    assert open_loop.arrival_s == pytest.approx(4 * drawn.arrival_s)
    assert share_of_replica(CLOSED, draw(CLOSED), 4).closed_loop_users == 3  # 10 users on 4 replicas
    burst = CLOSED.replace(arrivals="once")
    assert len(share_of_replica(burst, draw(burst), 3)) == 134  # of 400


@pytest.mark.parametrize(("needed", "serving", "told"), [(None, 4, 4), (3, 4, 3), (6, 4, 4)])
def test_a_fleet_that_holds_is_enough_whatever_the_curve_says(needed, serving, told):
    made = fleet(needed=needed, serving=serving)
    assert replicas_for_targets(STEADY, toy(), draw(STEADY), made, None, met=True) == told


def test_where_the_targets_are_missed_the_needed_number_stands():
    assert replicas_for_targets(STEADY, toy(), draw(STEADY), fleet(needed=7), None, met=False) == 7
    assert replicas_for_targets(STEADY, toy(), draw(STEADY), fleet(needed=None), None, met=False) is None


def test_one_replica_that_holds_its_users_is_the_fewest():
    one = CLOSED.replace(num_replicas=1)
    assert replicas_for_targets(one, toy(), draw(one), fleet(serving=1), None, met=True) == 1


def test_the_fleet_carries_its_rate_and_no_fewer_would():
    # 1.6 req/s need more than two replicas of 0.8, the steps being one second whatever the batch.
    done = deploy(STEADY, toy(), draw(STEADY))
    assert done.curve.capacity_rps == pytest.approx(0.8, rel=0.02)
    assert done.num_serving == done.num_replicas == done.replicas_for_slo == 3
    assert done.holds(STEADY)
    # what one replica holds lies between the rate's third and its half
    assert 1.6 / 3 <= done.curve.slo_rate_rps < 1.6 / 2


def test_spare_replicas_are_bought_and_serve_nothing():
    done = deploy(STEADY.replace(spare_replicas=2), toy(), draw(STEADY))
    assert (done.num_serving, done.num_replicas) == (3, 5)
    fixed = deploy(STEADY.replace(num_replicas=4, spare_replicas=2), toy(), draw(STEADY))
    assert (fixed.num_serving, fixed.num_replicas) == (4, 4)


def test_targets_that_no_number_meets():
    hasty = STEADY.replace(ttft_target_s=0.5)
    done = deploy(hasty, toy(), draw(hasty))
    assert done.replicas_for_slo is None
    assert not done.holds(hasty)
    assert np.isfinite(done.metrics.ttft_s.p50)


@pytest.mark.parametrize(
    ("asked", "tokens", "most", "shown"),
    [
        (2000, 256, 400_000, 8000),  # so many that long tails average out
        (2000, 256, 3000, 3000),  # a quick search
        (9000, 256, 400_000, 9000),
        (20_000, 4000, 400_000, 10_000),  # 40 million tokens
        (150_000, 256, 400_000, 100_000),  # a curve of more would look the same
        (2000, 100_000, 400_000, 1000),  # each is 100,000 tokens: they vary no less, but cost 400 times as much
    ],
)
def test_a_load_curve_is_of_as_many_requests_as_it_takes(asked, tokens, most, shown):
    scenario = STEADY.replace(num_requests=asked, output_mean_tokens=tokens, max_model_len=131_072)
    assert len(steady_requests(scenario, draw(scenario), None, most)) == shown
    trace = draw(scenario)
    assert steady_requests(scenario, trace, trace, most) is trace


def test_one_of_the_replicas_shows_a_hundred_thousand_requests_at_most():
    many = draw(STEADY.replace(num_requests=150_000))
    share = share_of_replica(STEADY, many, 2)
    assert (len(share), share.rate_rps) == (100_000, 0.8)
    np.testing.assert_array_equal(share.output_tokens, many.output_tokens[:100_000])
