"""The requests of a scenario and their means, by hand."""

import numpy as np

from planner.scenario.scenario import Scenario
from planner.workload.drawing import offered_rate_rps
from planner.workload.offered import as_open_loop, draw, mean_lengths, shared_tokens
from planner.workload.requests import Requests

SMALL = Scenario(num_requests=500)


def requests(arrival, prompts, outputs, group=None, prefix=None):
    count = len(prompts)
    return Requests(
        arrival_s=np.asarray(arrival, dtype=np.float64),
        prompt_tokens=np.asarray(prompts),
        output_tokens=np.asarray(outputs),
        output_limit_tokens=np.asarray(outputs),
        prefix_group=np.asarray(group if group is not None else [-1] * count),
        prefix_tokens=np.asarray(prefix if prefix is not None else [0] * count),
    )


def test_means_of_the_requests_that_the_context_admits():
    three = requests([0, 1, 2], [100, 300, 5000], [10, 30, 50])
    assert mean_lengths(three, 1000) == (200, 20)
    assert mean_lengths(three, 10_000) == (1800, 30)
    assert mean_lengths(three, 50) == (1800, 30)  # none is admitted: of all


def test_tokens_in_common_are_those_of_groups():
    three = requests([0, 1, 2], [100, 300, 5000], [1, 1, 1], group=[0, 0, -1], prefix=[80, 80, 80])
    assert shared_tokens(three, 1000) == 80
    assert shared_tokens(three, 10_000) == round(160 / 3)


def test_the_same_scenario_draws_the_same_requests():
    first, again, other = draw(SMALL), draw(SMALL), draw(SMALL.replace(seed=8))
    assert np.array_equal(first.prompt_tokens, again.prompt_tokens)
    assert not np.array_equal(first.prompt_tokens, other.prompt_tokens)
    assert len(first) == 500
    assert (first.prompt_tokens + first.output_tokens).max() <= max(SMALL.max_model_len, first.prompt_tokens.max() + 1)


def test_a_rate_can_be_imposed_on_clients_that_wait_and_on_bursts():
    for arrivals in ("closed", "once"):
        drawn = draw(SMALL.replace(arrivals=arrivals))
        made = as_open_loop(drawn)
        assert made.closed_loop_users == 0
        assert np.array_equal(made.output_tokens, drawn.output_tokens)
        assert np.isfinite(offered_rate_rps(made))
    steady = draw(SMALL)
    assert as_open_loop(steady) is steady


def test_a_single_request_has_no_rate_of_its_own():
    one = requests([0.0], [10], [5])
    assert len(as_open_loop(one)) == 1
