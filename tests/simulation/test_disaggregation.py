"""Prefill and decode on separate replicas."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.errors import InvalidInput
from planner.simulation.disaggregation import Pool, simulate_disaggregated
from planner.simulation.records import ABANDONED, FINISHED
from planner.simulation.router import simulate_fleet
from tests.simulation.cases import UNIT, limits, make

VLLM = get_engine("vllm")


def test_disaggregated_by_hand():
    # A: prompt 0-1 (first token at 1), 10 tokens x 100 bytes / 1,000 B/s = 1 s on the way, decode 2-3 and 3-4.
    # B: prompt 1-2 behind A (budget 10), on the way until 3; the step 3-4 was filled at 2, its second token is in 4-5.
    requests = make([0, 0], [10, 10], [3, 2])
    pool = Pool(engine=VLLM, limits=limits(budget=10), step_time=UNIT)
    run = simulate_disaggregated(
        requests, pool, pool, kv_bytes_per_token=100, link_bytes_per_s=1000, link_latency_s=0.0
    )
    assert run.service.first_token_s.tolist() == [1, 2]
    assert run.service.finish_s.tolist() == [4, 5]
    assert run.mean_transfer_s == 1.0
    assert run.service.max_itl_s.tolist() == [2, 3]


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


def test_disaggregated_clients_leave_too():
    # Prefill 0-1, transfer 1 s, 3 decode steps: first token at 1, last at 5. B waits for A's prompt: 2 to 6.
    requests = make([0, 0.5], [4, 4], [4, 4])
    for limit, status in ((4.5, [ABANDONED, ABANDONED]), (5.2, [FINISHED, ABANDONED]), (6.5, [FINISHED, FINISHED])):
        engine = dataclasses.replace(get_engine("vllm"), timeout_s=limit, patience_s=1.5)
        pool = Pool(engine=engine, limits=limits(), step_time=UNIT)
        run = simulate_disaggregated(requests, pool, pool, kv_bytes_per_token=0, link_bytes_per_s=1, link_latency_s=1.0)
        assert run.service.status.tolist() == status
        assert run.service.first_token_s.tolist() == [1, 2]


def test_answers_of_one_token_need_no_decode_pool():
    pool = Pool(engine=VLLM, limits=limits(), step_time=UNIT)
    run = simulate_disaggregated(make([0, 3], [5, 5], [1, 1]), pool, pool, kv_bytes_per_token=1, link_bytes_per_s=1)
    assert run.decode is None
    assert run.service.finish_s.tolist() == run.prefill.finish_s.tolist() == [1, 4]
    assert run.mean_transfer_s == 0.0


def test_the_service_is_both_pools_together():
    # A: prompt 0-1, nothing to wait for on the link, 4 tokens 1-5. B comes at 2: prompt 2-3; the step
    # 3-4 was filled at 2, its one token is in 4-5.
    requests = make([0, 2], [5, 5], [5, 2])
    pool = Pool(engine=VLLM, limits=limits(seqs=4), step_time=UNIT, num_replicas=1)
    run = simulate_disaggregated(requests, pool, pool, kv_bytes_per_token=0, link_bytes_per_s=1, link_latency_s=0.0)
    assert run.service.finish_s.tolist() == [5, 5]
    assert (run.prefill.num_steps, run.decode.num_steps, run.service.num_steps) == (2, 4, 6)
    assert run.service.busy_s == 6.0
    assert run.service.duration_s == 5.0
    assert run.service.num_slots == 2 + 2
    assert run.service.prefill_tokens_computed == 10 + 2  # the last token of each prompt once more, at the decode pool
    assert run.service.output_tokens.tolist() == [5, 2]


@pytest.mark.parametrize(
    ("field", "value"), [("kv_bytes_per_token", -1), ("link_bytes_per_s", 0), ("link_latency_s", -1)]
)
def test_a_link_that_cannot_be(field, value):
    pool = Pool(engine=VLLM, limits=limits(), step_time=UNIT)
    with pytest.raises(InvalidInput, match=field):
        simulate_disaggregated(
            make([0], [1], [2]), pool, pool, **{"kv_bytes_per_token": 1, "link_bytes_per_s": 1, field: value}
        )


def test_a_closed_loop_is_refused():
    pool = Pool(engine=VLLM, limits=limits(), step_time=UNIT)
    with pytest.raises(InvalidInput, match="open loop"):
        simulate_disaggregated(
            make([0], [1], [2], closed_loop_users=1), pool, pool, kv_bytes_per_token=1, link_bytes_per_s=1
        )
