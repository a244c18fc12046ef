import math

import numpy as np
import pytest

from planner.answer.planning import plan, replica_of, size
from planner.answer.search.bounds import (
    DOES_NOT_START,
    MISSES_WHEN_IDLE,
    Bound,
    arithmetic_rps,
    by_capacity,
    by_memory,
    holds_with,
    least_work,
    table_rps,
    within,
)
from planner.answer.search.recommend import most_requests_of_a_plan
from planner.scenario import fingerprint
from planner.scenario.scenario import Scenario
from planner.service import CURVE_REQUESTS, capacity, more_of
from planner.workload import draw
from tests.answer.search.spaces import candidates

from .spaces import FEW, few_requests, random_scenario

BASE = Scenario(num_requests=FEW, demand="rate", rate_rps=40.0)


def bounded(scenario, changes):
    (first,) = by_memory(scenario, [changes], most_requests_of_a_plan)
    if first.out:
        return first
    return by_capacity(scenario, [(first, math.inf)], most_requests_of_a_plan)[0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gpu", ["H100 SXM", "L40S", "RTX PRO 6000 Blackwell Server", "MI300X"])
def test_no_replica_finishes_more_than_either_bound_says(seed, gpu):
    scenario = random_scenario(seed).replace(gpu=gpu, shared_prefix_tokens=100 * (seed % 2))
    for own in (scenario, scenario.replace(pipeline_parallel_size=2), scenario.replace(engine="sglang")):
        sized = size(own, draw(own), explain=False)
        if not sized.fits:
            continue
        replica, requests = replica_of(sized), draw(own.replace(num_requests=CURVE_REQUESTS))
        work = least_work(own, requests, sized.memory.kv_tokens)
        reached = capacity(replica, requests, more_of(own)).rps
        assert reached <= table_rps(replica, work) * (1 + 1e-9)
        assert reached <= arithmetic_rps(own, work) * (1 + 1e-9)


@pytest.mark.parametrize("arrivals", ["poisson", "closed", "once"])
def test_the_least_replicas_are_never_more_than_the_plan_buys(arrivals):
    base = BASE.replace(arrivals=arrivals, concurrent_users=200)
    split = ("gpu", "weight_dtype", "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size")
    for scenario in candidates(base, gpus=("H100 SXM", "L40S"))[::23]:
        found = bounded(base, {name: getattr(scenario, name) for name in split})
        if not found.out:
            done = plan(scenario, most_requests=few_requests(scenario), with_policies=False)
            assert found.replicas <= done.num_replicas


def test_a_share_that_a_replica_plainly_misses_is_too_much_for_every_fleet_of_such_shares():
    base = BASE.replace(arrivals="closed", concurrent_users=400, tpot_target_s=0.02)
    done = plan(base, most_requests=3000, with_policies=False)
    free = bounded(base, {})
    assert 1 < free.replicas <= done.num_replicas
    (first,) = by_memory(base, [{}], few_requests)
    (out,) = by_capacity(base, [(first, free.replicas - 1)], few_requests)  # with a best plan to undercut
    assert out.replicas == free.replicas
    (kept,) = by_capacity(base, [(first, done.num_replicas)], few_requests)
    assert kept.replicas == 1


def test_work_counts_neither_what_all_prompts_share_nor_what_is_rejected():
    scenario = BASE.replace(lengths="constant", prompt_mean_tokens=1000.0, output_mean_tokens=100.0)
    requests = draw(scenario)
    work = least_work(scenario, requests, 10**9)
    # 100 output tokens that attend to 1,000 prompt tokens and half the answer
    assert (work.prompt, work.output, work.context) == (1000.0, 100.0, 100 * 1050.0)
    shared = scenario.replace(shared_prefix_tokens=600)
    assert least_work(shared, draw(shared), 10**9).prompt == 400.0
    assert least_work(shared.replace(enable_prefix_caching=False), draw(shared), 10**9).prompt == 1000.0
    assert least_work(scenario, requests, 900) == type(work)(prompt=0.0, output=0.0, context=0.0)


def test_the_arithmetic_is_two_operations_per_active_parameter_and_token():
    # Llama-3.1-8B: 8.03 B parameters less 2 × 128,256 × 4,096 of embedding and head = 6.98 B. H100: 989 TFLOP/s in
    # bf16. 1,099 tokens: 989e12 × 1.4 ÷ (2 × 6.98e9 × 1,099) = 90.3 req/s
    scenario = BASE.replace(lengths="constant", prompt_mean_tokens=1000.0, output_mean_tokens=100.0)
    work = least_work(scenario, draw(scenario), 10**9)
    assert arithmetic_rps(scenario, work) == pytest.approx(90.3, rel=0.01)
    assert arithmetic_rps(scenario.replace(tensor_parallel_size=2), work) == pytest.approx(180.6, rel=0.01)
    assert arithmetic_rps(scenario.replace(weight_dtype="fp8"), work) == pytest.approx(180.6, rel=0.01)
    # measured to take half the predicted time: twice the rate, or the bound would drop what its own plan serves
    fast = scenario.replace(calibration_prefill=0.5, calibration_runs=3, calibration_of=fingerprint(scenario))
    assert arithmetic_rps(fast, work) == pytest.approx(180.6, rel=0.01)


def test_what_does_not_start_and_what_misses_when_idle_is_out():
    assert bounded(BASE, {"model": "meta-llama/Llama-3.1-70B-Instruct"}).out == DOES_NOT_START
    slow = bounded(BASE.replace(tpot_target_s=0.001), {})
    assert slow.out == MISSES_WHEN_IDLE
    assert slow.idle_attainment == 0.0
    assert slow.idle_tpot_s > 0.001
    assert not plan(BASE.replace(tpot_target_s=0.001)).slo_met


def test_hybrids_that_refuse_the_default_sequences_are_tried_with_fewer():
    # vLLM refuses Nemotron-H-56B on one H200 at 1,024 sequences: "exceeds available Mamba cache blocks".
    hybrid = BASE.replace(model="nvidia/Nemotron-H-56B-Base-8K", gpu="H200 SXM", max_model_len=8192)
    assert not plan(hybrid).fits
    (found,) = by_memory(hybrid, [{}], most_requests_of_a_plan)
    assert found.out == ""
    assert found.changes["max_num_seqs"] < 1024


def test_a_fleet_that_plainly_misses_is_out_at_that_cost():
    needed = plan(BASE.replace(rate_rps=100.0)).num_replicas
    assert needed > 2
    scenario = BASE.replace(rate_rps=100.0)
    start = Bound(changes={}, level=2)
    assert holds_with(scenario, start, 1, most_requests_of_a_plan).replicas == 2
    assert holds_with(scenario, start, needed, most_requests_of_a_plan).replicas == 1


def test_a_budget_cuts_the_requests():
    assert within(BASE, lambda scenario: 100)[0].num_requests == 100
    assert within(BASE, most_requests_of_a_plan)[0] is BASE


def test_drafted_tokens_have_no_bound_from_the_table():
    scenario = BASE.replace(num_speculative_tokens=2)
    requests = draw(scenario)
    sized = size(scenario, requests, explain=False)
    assert math.isinf(table_rps(replica_of(sized), least_work(scenario, requests, 10**9)))
    assert np.isfinite(arithmetic_rps(scenario, least_work(scenario, requests, 10**9)))


@pytest.mark.parametrize("changes", [{}, {"gpu": "L40S"}, {"output_mean_tokens": 20.0, "lengths": "lognormal"}])
def test_prefill_and_decode_apart_take_no_fewer_replicas_than_carry_the_rate(changes):
    base = BASE.replace(**changes)
    found = bounded(base, {"deployment": "disaggregated"})
    done = plan(base.replace(deployment="disaggregated"), most_requests=few_requests(base), with_policies=False)
    pools = done.pools
    # by hand: each kind loaded to at most 97 % of its own capacity
    prefill = max(1, math.ceil(40.0 / (0.97 * pools.prefill_rps)))
    decode = max(1, math.ceil(40.0 / (0.97 * pools.decode_rps)))
    assert (found.out, found.level) == ("", 3)
    assert found.replicas == max(2, prefill + decode) <= done.num_replicas
