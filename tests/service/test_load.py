"""Capacity and load curves: closed forms where every step costs one second."""

import numpy as np
import pytest

from planner import Scenario, plan
from planner.answer.planning import replica_of, size
from planner.inputs.engine import EngineSettings
from planner.inputs.limits import Limits
from planner.inputs.traffic import ServiceLevel
from planner.service.capacity import capacity_rps, repeated
from planner.service.load import STEADY_SHARE, load_curve, replicas_needed
from planner.service.replica import Replica
from planner.step_time.step_table import StepTimeTable
from planner.workload.offered import draw
from planner.workload.requests import Requests

SLOTS = 8


def requests_of(outputs, prompt=1):
    count = len(outputs)
    return Requests(
        arrival_s=np.arange(count, dtype=np.float64),
        prompt_tokens=np.full(count, prompt),
        output_tokens=np.asarray(outputs),
        output_limit_tokens=np.asarray(outputs),
        prefix_group=np.full(count, -1),
        prefix_tokens=np.zeros(count, dtype=np.int64),
    )


def toy(slots=SLOTS):
    limits = Limits(
        max_num_seqs=slots, max_num_batched_tokens=4096, max_model_len=4096, num_kv_blocks=100_000, block_size=16
    )
    engine = EngineSettings(max_num_seqs=slots, max_num_batched_tokens=4096)
    return Replica(engine=engine, limits=limits, step_time=StepTimeTable.unit())


def test_capacity_is_slots_over_the_steps_of_a_request():
    # Each slot makes a token a second, prompts ride along: 8 slots / 10 tokens = 0.8 requests a second.
    outputs = np.random.default_rng(1).integers(5, 16, 300)
    expected = SLOTS / outputs.mean()
    assert capacity_rps(toy(), requests_of(outputs)) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("count", [SLOTS // 2, SLOTS, 40])
def test_few_requests_show_the_capacity_that_many_would(count):
    # Fewer requests than slots are one batch, whose prompts and drain hide the rate: they are repeated.
    outputs = np.resize([6, 10, 14], count)
    assert capacity_rps(toy(), requests_of(outputs)) == pytest.approx(SLOTS / outputs.mean(), rel=0.05)


def test_capacity_does_not_depend_on_how_many_requests_are_drawn():
    found = []
    for count in (600, 20_000):
        scenario = Scenario(num_requests=count, lengths="constant", prompt_mean_tokens=800, output_mean_tokens=200)
        found.append(capacity_rps(replica_of(size(scenario)), draw(scenario)))
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_repeated_requests_keep_lengths_and_gaps():
    once = requests_of([3, 5, 7])
    many = repeated(once, 7)
    assert many.output_tokens.tolist() == [3, 5, 7] * 3
    assert np.diff(many.arrival_s) == pytest.approx(np.ones(8))
    assert repeated(once, 3) is once


def test_no_rate_at_the_capacity_counts_as_held_however_loose_the_targets():
    outputs = np.random.default_rng(2).integers(5, 16, 400)
    level = ServiceLevel(ttft_s=1e5, tpot_s=1e5)
    curve = load_curve(toy(), requests_of(outputs), level)
    assert curve.slo_rate_rps == pytest.approx(STEADY_SHARE * curve.capacity_rps, rel=1e-3)


def test_loose_targets_do_not_buy_a_fleet_that_falls_behind():
    done = plan(Scenario(demand="rate", rate_rps=500.0, ttft_target_s=20.0, tpot_target_s=1.0, num_requests=400))
    assert done.slo_met
    assert done.num_replicas * done.curve.capacity_rps >= 500.0
    fewer = int(500.0 / done.curve.capacity_rps)
    short = plan(done.scenario.replace(num_replicas=fewer))
    assert not short.slo_met


def test_replicas_that_carry_a_rate():
    assert replicas_needed(10.0, 2.5) == 4
    assert replicas_needed(10.1, 2.5) == 5
    assert replicas_needed(1.0, 0.0) is None


CLOSED = Scenario(arrivals="closed", prompt_mean_tokens=100, output_mean_tokens=200)


@pytest.mark.parametrize("lengths", ["constant", "lognormal"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize(("users", "think_s", "replicas"), [(8, 0.0, 1), (128, 2.0, 1), (512, 0.0, 1), (512, 4.0, 3)])
def test_a_closed_loop_obeys_littles_law_and_its_ceilings(engine, lengths, users, think_s, replicas):
    # 512 users with short prompts on one H100: vLLM's API server is the slower station.
    scenario = CLOSED.replace(
        engine=engine,
        lengths=lengths,
        concurrent_users=users,
        think_time_s=think_s,
        num_replicas=replicas,
        num_requests=max(2000, 12 * users),
    )
    done = plan(scenario)
    rate, e2e = done.metrics.requests_per_s, done.metrics.e2e_s
    assert rate * (e2e.mean + think_s) == pytest.approx(users, rel=0.03)
    replica = replica_of(size(scenario))
    mean = float(draw(scenario).output_tokens.mean())
    per_request, per_token = replica.step_time.server_per_request_s, replica.step_time.server_per_token_s
    assert rate <= 1.03 * replicas / (per_request + per_token * mean)
    assert rate <= 1.03 * replicas * done.curve.capacity_rps


def test_a_server_as_slow_as_the_users_are_many_is_named():
    done = plan(CLOSED.replace(lengths="constant", concurrent_users=512, num_requests=6000))
    # 4 ms a request and 60 µs for each of 200 tokens: 62.5 a second.
    assert done.curve.capacity_rps == pytest.approx(62.5)
    assert done.metrics.requests_per_s == pytest.approx(62.5, rel=0.01)
    assert done.metrics.binding == "api server"
