"""Separate pools: a queue with a closed form, nothing lost, and what remains when one pool has nothing to do."""

import dataclasses

import numpy as np
import pytest

from planner.scenario.scenario import Scenario
from planner.service.metrics import measure
from planner.service.pools import deploy_pools
from planner.service.replica import Replica
from planner.simulation import FINISHED, simulate_fleet
from planner.workload.drawing import with_rate
from planner.workload.offered import draw
from tests.service.cases import toy

PROMPT = 10
APART = Scenario(
    deployment="disaggregated", prefill_replicas=1, decode_replicas=1, demand="rate", rate_rps=0.5, peak_factor=1.0,
    lengths="constant", prompt_mean_tokens=PROMPT, output_mean_tokens=5, ttft_target_s=60.0, tpot_target_s=10.0,
    num_requests=20_000,
)  # fmt: skip


def replica(slots=200, budget=PROMPT):
    """One second a step; a step holds one whole prompt."""
    made = toy(slots)
    return Replica(
        engine=dataclasses.replace(made.engine, max_num_batched_tokens=budget),
        limits=dataclasses.replace(made.limits, max_num_batched_tokens=budget),
        step_time=made.step_time,
    )


def served(scenario=APART, *, kv_bytes=0.0, each=None):
    return deploy_pools(scenario, each or replica(), draw(scenario), kv_bytes)


def test_one_prefill_replica_is_a_queue_with_a_known_wait():
    # M/D/1 with a service of 1 s at load 0.5: the mean wait is 0.5 / (2 (1 - 0.5)) = 0.5 s (Pollaczek-Khinchine).
    metrics = served().fleet.metrics
    assert metrics.ttft_s.mean == pytest.approx(1.5, rel=0.03)


def test_decode_is_never_held_up_by_a_prompt():
    # With room for all, every token after the second takes exactly one step; the second waits for the transfer of 1 ms,
    # for the step that is under way and for the one that has been filled.
    result = served().fleet.result
    assert (result.status == FINISHED).all()
    gaps = (result.finish_s - result.first_token_s) / (result.output_tokens - 1)
    assert gaps.min() >= 1.0
    assert gaps.max() <= 1.0 + 2.001 / 4


def test_transfer_adds_its_time_to_the_second_token():
    # 10 tokens × 50e9 bytes at 50e9 B/s are 10 s.
    without, slow = served(), served(kv_bytes=50e9)
    assert slow.pools.mean_transfer_s == pytest.approx(10.001)
    difference = slow.fleet.metrics.e2e_s.mean - without.fleet.metrics.e2e_s.mean
    assert difference == pytest.approx(10.0, abs=0.1)
    np.testing.assert_array_equal(slow.fleet.result.first_token_s, without.fleet.result.first_token_s)


def test_every_request_and_token_is_served_once():
    fleet = served(APART.replace(num_requests=500)).fleet
    assert fleet.metrics.num_finished == len(fleet.result.arrival_s)
    # The decode pool computes the first token's KV with the second token, then decodes the other three.
    assert fleet.result.prefill_tokens_computed == (PROMPT + 1) * len(fleet.result.arrival_s)
    assert fleet.result.decode_tokens == 3 * len(fleet.result.arrival_s)


def test_answers_of_one_token_make_it_an_aggregated_fleet():
    scenario = APART.replace(output_mean_tokens=1.0, prefill_replicas=3, rate_rps=1.5, num_requests=2000)
    found, each = served(scenario), replica()
    requests = with_rate(draw(scenario.replace(num_requests=2000 * 4)), 1.5)
    alone = simulate_fleet(requests, each.engine, each.limits, each.step_time, num_replicas=3, stop_on_overload=False)
    np.testing.assert_array_equal(found.fleet.result.finish_s, alone.finish_s)
    assert found.fleet.metrics.ttft_s == measure(alone, scenario.service_level).ttft_s
    assert np.isinf(found.pools.decode_rps)


def test_full_throughput_by_hand():
    # A prefill replica finishes one prompt a second; a decode replica with 8 slots 8 requests every four or five steps.
    pools = served(each=replica(slots=8)).pools
    assert pools.prefill_rps == pytest.approx(1.0, rel=0.01)
    assert 8 / 5 <= pools.decode_rps <= 8 / 4 * 1.01
    assert pools.capacity_rps == pytest.approx(pools.prefill_rps)


def test_the_search_gives_each_kind_what_the_rate_needs():
    free = APART.replace(prefill_replicas=None, decode_replicas=None, num_requests=1500)
    few, many = served(free.replace(rate_rps=2.0)), served(free.replace(rate_rps=6.0))
    for found, rate in ((few, 2.0), (many, 6.0)):
        assert found.fleet.replicas_for_slo == found.pools.num_serving
        assert found.pools.num_prefill >= rate / 1.0
        assert found.fleet.holds(free.replace(rate_rps=rate))
    assert many.pools.num_prefill > few.pools.num_prefill
    assert many.pools.num_decode >= few.pools.num_decode


def test_a_fixed_kind_that_is_too_small_is_not_enlarged():
    found = served(APART.replace(rate_rps=4.0, decode_replicas=None, num_requests=1500))
    assert found.pools.num_prefill == 1
    assert found.fleet.replicas_for_slo is None


def test_the_curve_is_of_the_service_per_replica():
    found = served(APART.replace(num_requests=2000))
    curve = found.fleet.curve
    assert curve.capacity_rps * 2 == pytest.approx(found.pools.capacity_rps)
    assert 0.5 / 2 <= curve.slo_rate_rps <= curve.capacity_rps
    assert [point.rate_rps for point in curve.points] == sorted(point.rate_rps for point in curve.points)


def test_impossible_targets_need_no_number():
    found = served(APART.replace(tpot_target_s=0.5, num_requests=500))
    assert found.fleet.replicas_for_slo is None
    assert found.fleet.curve.slo_rate_rps == 0


def test_spares_are_of_both_kinds():
    found = served(APART.replace(spare_replicas=2, num_requests=500))
    assert found.fleet.num_replicas == 2 + 4
