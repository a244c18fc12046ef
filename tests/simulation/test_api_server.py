import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.inputs.limits import Limits
from planner.service.capacity import capacity_rps
from planner.service.replica import Replica
from planner.simulation.api_server import behind_server, server_s, stretch
from planner.simulation.machine import simulate
from planner.step_time.step_table import StepTimeTable
from planner.workload.requests import Requests

LIMITS = Limits(max_num_seqs=64, max_num_batched_tokens=4096, max_model_len=4096, num_kv_blocks=4096, block_size=16)


def table(per_request_s=0.0, per_token_s=0.0):
    ones = np.full(4097, 0.01)
    return StepTimeTable(
        decode_s=ones,
        mixed_s=ones,
        head_s=np.zeros(4097),
        server_per_request_s=per_request_s,
        server_per_token_s=per_token_s,
    )


def requests(n=400, gap_s=0.1, output=20):
    return Requests(
        arrival_s=np.arange(n) * gap_s,
        prompt_tokens=np.full(n, 10),
        output_tokens=np.full(n, output),
        output_limit_tokens=np.full(n, output),
        prefix_group=np.full(n, -1),
        prefix_tokens=np.zeros(n, dtype=np.int64),
    )


def test_an_idle_server_changes_nothing_and_a_full_one_sets_the_pace():
    assert stretch(0.0) == 1.0
    assert stretch(0.2) == pytest.approx(1.0, abs=1e-3)
    assert stretch(10.0) == pytest.approx(10.0, rel=1e-3)


def test_work_per_request_by_hand():
    # 6 ms per request and 60 µs per token of 200: 18 ms.
    assert server_s(table(0.006, 60e-6), 200) == pytest.approx(0.018)


def test_the_server_bounds_the_capacity():
    # Engine alone: 64 sequences of 20 steps of 10 ms = 320 req/s. A server of 50 ms per request: 20 req/s.
    replica = Replica(engine=get_engine("vllm"), limits=LIMITS, step_time=table(0.05))
    assert capacity_rps(replica, requests(2000)) == pytest.approx(20.0, rel=0.01)


def test_answers_are_stretched_from_their_first_token():
    free = simulate(requests(), get_engine("vllm"), LIMITS, table())
    busy = behind_server(free, table(0.1))
    span = free.finish_s.max() - free.arrival_s.min()
    longer = stretch(0.1 * 400 / span)
    assert busy.first_token_s == pytest.approx(free.first_token_s)
    assert busy.finish_s - busy.first_token_s == pytest.approx((free.finish_s - free.first_token_s) * longer)
    assert behind_server(free, table()) is free
