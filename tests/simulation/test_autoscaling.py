"""Separate prefill and decode, replicas that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.simulation.autoscaling import Autoscaling, Failure, simulate_service
from planner.simulation.disaggregation import Pool, simulate_disaggregated
from planner.simulation.records import FINISHED
from planner.simulation.router import simulate_fleet
from tests.simulation.cases import UNIT, limits, make

VLLM = get_engine("vllm")


def test_disaggregated_by_hand():
    # A: prompt 0-1 (first token at 1), 10 tokens x 100 bytes / 1,000 B/s = 1 s on the way, decode 2-3 and 3-4.
    # B: prompt 1-2 behind A (budget 10), on the way until 3, its second token in 3-4.
    requests = make([0, 0], [10, 10], [3, 2])
    pool = Pool(engine=VLLM, limits=limits(budget=10), step_time=UNIT)
    run = simulate_disaggregated(
        requests, pool, pool, kv_bytes_per_token=100, link_bytes_per_s=1000, link_latency_s=0.0
    )
    assert run.service.first_token_s.tolist() == [1, 2]
    assert run.service.finish_s.tolist() == [4, 4]
    assert run.mean_transfer_s == 1.0
    assert run.service.max_itl_s.tolist() == [2, 2]


def test_disaggregation_keeps_decode_free_of_prompts():
    # Together, each arriving prompt delays whoever decodes; apart, only the transfer stands between the tokens.
    n = 40
    requests = make(np.arange(n) * 2.0, [10] * n, [20] * n)
    slow_prompts = UNIT.__class__(decode_s=np.ones(100), mixed_s=np.full(100, 10.0), head_s=np.zeros(100))
    pool = Pool(engine=VLLM, limits=limits(seqs=64), step_time=slow_prompts, num_replicas=2)
    apart = simulate_disaggregated(requests, pool, pool, kv_bytes_per_token=1, link_bytes_per_s=1e9)
    together = simulate_fleet(requests, VLLM, limits(seqs=64), slow_prompts, num_replicas=4)
    assert apart.decode is not None
    assert (apart.service.status == FINISHED).all()
    assert together.max_itl_s.max() >= 10


def test_without_events_a_service_is_a_fleet():
    requests = make(np.arange(50) * 0.7, [5] * 50, [8] * 50)
    fleet = simulate_fleet(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3, router="least_outstanding")
    run = simulate_service(requests, VLLM, limits(seqs=2), UNIT, num_replicas=3)
    np.testing.assert_array_equal(fleet.finish_s, run.result.finish_s)
    assert run.replica_seconds == pytest.approx(3 * run.result.duration_s)


def test_a_failed_replica_loses_its_work():
    # Two replicas, one request of 10 steps each. Replica 0 dies at 4.5, noticed at 6.5;
    # its request starts anew on replica 1 beside the other and ends 10 steps after the step that begins at 7.
    requests = make([0, 0], [1, 1], [10, 20])
    run = simulate_service(requests, VLLM, limits(), UNIT, num_replicas=2, failure=Failure(time_s=4.5, detection_s=2.0))
    assert run.num_retried == 1
    assert run.result.finish_s.tolist() == [17, 20]
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
