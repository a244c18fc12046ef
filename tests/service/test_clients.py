"""Closed loops and bursts on several replicas: figures of the whole service, by closed forms."""

import pytest

from planner import Scenario, plan
from planner.answer.planning import replica_of, size
from planner.service.clients import fewest_that_hold, representatives, share_evenly, share_of_one, smallest_that_holds
from planner.workload.offered import draw

EQUAL = {"lengths": "constant", "prompt_mean_tokens": 500.0, "output_mean_tokens": 100.0, "num_requests": 600}
CLOSED = Scenario(arrivals="closed", **EQUAL)
BURST = Scenario(arrivals="once", **EQUAL)


def test_users_are_dealt_as_evenly_as_whole_numbers_allow():
    assert share_evenly(3, 2) == (2, 1)
    assert share_evenly(10, 4) == (3, 3, 2, 2)
    assert share_evenly(1, 3) == (1, 0, 0)


@pytest.mark.parametrize(("users", "replicas"), [(100, 33), (5000, 700), (17, 16), (40, 100), (1, 8)])
def test_stand_ins_stand_for_every_replica_that_has_a_user(users, replicas):
    shown = representatives(share_evenly(users, replicas), 16)
    assert len(shown) <= 16
    assert sum(weight for _, weight in shown) == pytest.approx(min(users, replicas))
    assert sum(size * weight for size, weight in shown) == pytest.approx(users)


def test_replicas_without_a_user_cost_and_serve_nothing():
    alone, eight = plan(CLOSED.replace(concurrent_users=1)), plan(CLOSED.replace(concurrent_users=1, num_replicas=8))
    assert eight.metrics.requests_per_s == pytest.approx(alone.metrics.requests_per_s, rel=1e-6)
    assert eight.cost.usd_per_million_tokens == pytest.approx(8 * alone.cost.usd_per_million_tokens, rel=1e-6)
    assert eight.metrics.busy_utilization == pytest.approx(alone.metrics.busy_utilization / 8, rel=1e-6)


def test_a_token_costs_the_same_on_four_replicas_with_four_times_the_users():
    one, four = plan(CLOSED), plan(CLOSED.replace(concurrent_users=4 * 32, num_replicas=4))
    assert four.cost.usd_per_million_tokens == pytest.approx(one.cost.usd_per_million_tokens, rel=1e-6)
    # Prompts of one length wait for one step or for two: the mean moves less than a percentile between the two.
    assert four.metrics.ttft_s.mean == pytest.approx(one.metrics.ttft_s.mean, rel=0.02)
    assert four.metrics.e2e_s.mean == pytest.approx(one.metrics.e2e_s.mean, rel=0.02)
    # The batching lab shows one of them.
    assert four.policies[-1].capacity_rps == one.policies[-1].capacity_rps
    assert four.policies[-1].metrics.e2e_s.mean == one.policies[-1].metrics.e2e_s.mean


@pytest.mark.parametrize("replicas", [2, 3, 20])
def test_a_burst_is_dealt_to_the_replicas(replicas):
    many = BURST.replace(num_requests=610)
    done = plan(many.replace(num_replicas=replicas)).metrics
    assert done.num_requests == done.num_finished == 610
    # Equal requests go round: the service is done when the replica with ⌈610 ÷ n⌉ of them is.
    share = share_of_one(draw(many), replicas)
    assert len(share) == -(-610 // replicas)
    alone = replica_of(size(many)).run(share)
    assert done.duration_s == pytest.approx(alone.duration_s, rel=1e-9)
    assert done.requests_per_s == pytest.approx(610 / alone.finish_s.max(), rel=1e-3)  # API servers share their load


@pytest.mark.parametrize("threshold", [1, 2, 3, 7, 8, 64, 65, 100])
def test_the_fewest_are_found_by_few_questions(threshold):
    asked = []
    assert fewest_that_hold(lambda n: asked.append(n) or n >= threshold, 100) == threshold
    assert len(asked) <= 14
    assert fewest_that_hold(lambda n: False, 100) is None


@pytest.mark.parametrize("threshold", [999, 1000, 20_000])
def test_thousands_are_found_within_a_thousandth(threshold):
    found = smallest_that_holds(lambda n: n >= threshold, 0, 32_768)
    assert threshold <= found <= threshold * 1.001


def test_a_share_of_users_is_the_fullest():
    users = draw(CLOSED.replace(concurrent_users=10))
    assert share_of_one(users, 4).closed_loop_users == 3
