"""The most load that a fleet takes: by queueing closed forms, by its own simulation, and by what gives first."""

import math

import pytest

from planner.answer.planning import replica_of, size
from planner.scenario.scenario import Scenario
from planner.service.fleet import operate
from planner.service.load import meets
from planner.service.taking import (
    LOST,
    PRECISION,
    THROUGHPUT,
    longest_prompt_tokens,
    most_load,
)
from planner.workload.offered import draw

SHORT = Scenario(
    question="take", num_requests=1000, gpu="L4", max_model_len=16_384, ttft_target_s=3.0, tpot_target_s=0.15
)


def most_of(scenario):
    replica = replica_of(size(scenario))
    return most_load(scenario, replica, draw(scenario), most_requests=20_000), replica


def holds(scenario, replica, load):
    there = scenario.at_load(load)
    metrics = operate(there, replica, draw(there), scenario.fixed_replicas, most_requests=20_000)[1]
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
    replica, requests = replica_of(size(scenario)), draw(scenario)
    longest = longest_prompt_tokens(scenario, replica, requests, 32_768, 100.0)

    def first_token_s(tokens):
        alone = scenario.replace(
            arrivals="once", num_requests=1, lengths="constant", prompt_mean_tokens=float(tokens), max_model_len=32_768
        )
        return operate(alone, replica_of(size(alone)), draw(alone), 1)[1].ttft_s.max

    assert 0 < longest < 32_668
    assert first_token_s(longest) <= 1.0 < first_token_s(longest * 1.02)
    assert longest_prompt_tokens(scenario.replace(ttft_target_s=0.001), replica, requests, 32_768, 100.0) == 0
    free = scenario.replace(ttft_target_s=None)
    assert longest_prompt_tokens(free, replica, requests, 32_768, 100.0) == 32_668
