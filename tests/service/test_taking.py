"""The most load that a fleet takes: by queueing closed forms, by its own simulation, and by what gives first."""

import math

import pytest

from planner.answer.planning import replica_of, size
from planner.scenario.scenario import Scenario
from planner.service.fleet import run_fleet
from planner.service.load import meets
from planner.service.taking import (
    LOST,
    PRECISION,
    THROUGHPUT,
    deploy_most,
    deploy_most_pools,
    longest_prompt_tokens,
    most_load,
    roomy,
)
from planner.workload.offered import draw
from tests.service.test_pools import APART as prefill_queue
from tests.service.test_pools import replica as one_second_a_step

SHORT = Scenario(
    question="take", num_requests=1000, gpu="L4", max_model_len=16_384, ttft_target_s=3.0, tpot_target_s=0.15
)


def most_of(scenario):
    replica = replica_of(size(scenario))
    return most_load(scenario, replica, draw(scenario), most_requests=20_000), replica


def holds(scenario, replica, load):
    there = scenario.at_load(load)
    metrics = run_fleet(there, replica, draw(there), scenario.fixed_replicas, most_requests=20_000).metrics
    return meets(metrics, there.service_level)


@pytest.mark.parametrize(
    "changes",
    [
        {"demand": "rate"},
        {"demand": "rate", "arrivals": "bursty", "num_replicas": 2},
        {"arrivals": "closed", "num_replicas": 2},
        {"arrivals": "once", "num_replicas": 2},
    ],
)
def test_the_fleets_own_simulation_holds_at_the_most_and_not_well_above(changes):
    scenario = SHORT.replace(**changes)
    most, replica = most_of(scenario)
    assert most.load > 0
    assert holds(scenario, replica, most.load)
    above = most.load * (1 + 3 * PRECISION)
    assert not holds(scenario, replica, max(above, most.load + 2) if not scenario.is_open_loop else above)
    assert most.gives_first in ("TTFT", "TPOT", THROUGHPUT)


def test_two_replicas_take_about_twice_what_one_takes():
    one, two = (most_of(SHORT.replace(arrivals="closed", num_replicas=n))[0].load for n in (1, 2))
    assert two / one == pytest.approx(2.0, rel=0.05)


def test_a_tighter_target_gives_first_and_takes_less():
    wide, _ = most_of(SHORT.replace(ttft_target_s=None, tpot_target_s=0.2))
    tight, _ = most_of(SHORT.replace(ttft_target_s=None, tpot_target_s=0.1))
    assert tight.load < wide.load
    assert tight.gives_first == "TPOT"


def test_without_targets_throughput_gives_first():
    most, _ = most_of(SHORT.replace(ttft_target_s=None, tpot_target_s=None))
    assert most.gives_first == THROUGHPUT
    assert most.load == pytest.approx(0.97 * most.curve.capacity_rps)
    burst, _ = most_of(SHORT.replace(ttft_target_s=None, tpot_target_s=None, arrivals="once"))
    assert math.isinf(burst.load)


def test_a_target_that_an_idle_replica_misses_leaves_no_load():
    most, _ = most_of(SHORT.replace(tpot_target_s=0.001))
    assert (most.load, most.gives_first) == (0.0, "TPOT")
    clipped, _ = most_of(SHORT.replace(lengths="constant", prompt_mean_tokens=17_000.0))  # longer than the context
    assert (clipped.load, clipped.gives_first) == (0.0, LOST)


def test_the_longest_prompt_meets_the_targets_and_a_longer_one_does_not():
    scenario = SHORT.replace(ttft_target_s=1.0, tpot_target_s=None)
    serve, requests = roomy(replica_of(size(scenario)), 32_768).run, draw(scenario)
    longest = longest_prompt_tokens(scenario, serve, requests, 32_768, 100.0)

    def first_token_s(tokens):
        alone = scenario.replace(
            arrivals="once", num_requests=1, lengths="constant", prompt_mean_tokens=float(tokens), max_model_len=32_768
        )
        return run_fleet(alone, replica_of(size(alone)), draw(alone), 1).metrics.ttft_s.max

    assert 0 < longest < 32_668
    assert first_token_s(longest) <= 1.0 < first_token_s(longest * 1.02)
    assert longest_prompt_tokens(scenario.replace(ttft_target_s=0.001), serve, requests, 32_768, 100.0) == 0
    free = scenario.replace(ttft_target_s=None)
    assert longest_prompt_tokens(free, serve, requests, 32_768, 100.0) == 32_668


# A prefill replica that takes a second for a prompt, at a load where nothing else is short.
APART = {"deployment": "disaggregated", "question": "take", "demand": "rate", "rate_rps": 0.01, "num_requests": 5000}


def took_apart(**changes):
    scenario = prefill_queue.replace(**(APART | changes))
    return deploy_most_pools(scenario, one_second_a_step(), draw(scenario), 0.0)


def test_a_prefill_replica_takes_the_load_at_which_enough_prompts_find_it_idle():
    # Poisson arrivals see time averages: a share of 1 - load of the prompts finds the replica idle and has its first
    # token after 1 s; the share asked for is 0.6, so the load is 0.4.
    took, pools = took_apart(ttft_target_s=1.001, target_quantile=0.6)
    assert took.most.load == pytest.approx(0.4, rel=0.05)
    assert took.most.gives_first == "TTFT"
    assert took.fleet.curve.slo_rate_rps * took.fleet.num_serving == pytest.approx(took.most.load)
    assert took.fleet.holds(took.scenario)
    assert (pools.num_prefill, pools.num_decode) == (1, 1)


def test_without_targets_prefill_and_decode_take_what_the_slower_kind_finishes():
    # One prompt a second, of which a plan loads 97 %; a third replica of the other kind takes no more.
    for given in ({}, {"decode_replicas": 2}):
        took, _ = took_apart(ttft_target_s=None, tpot_target_s=None, **given)
        assert took.most.load == pytest.approx(0.97, rel=0.01)
        assert took.most.gives_first == THROUGHPUT


def test_a_burst_without_targets_is_planned_as_entered():
    scenario = SHORT.replace(arrivals="once", ttft_target_s=None, tpot_target_s=None)
    took = deploy_most(scenario, replica_of(size(scenario)), draw(scenario), most_requests=20_000)
    assert math.isinf(took.most.load)
    assert took.scenario.num_requests == scenario.num_requests
