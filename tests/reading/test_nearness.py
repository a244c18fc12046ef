"""How far errors of runs are alike: against the closed form of two measurements of one number."""

import math

import numpy as np
import pytest

from planner.reading.nearness import REACH, foreseen, load_of, rest_sd, shared
from planner.scenario import Scenario


def test_a_load_is_requests_at_once_prompt_and_answer_in_doublings():
    loop = Scenario(arrivals="closed", concurrent_users=64, prompt_mean_tokens=1024.0, output_mean_tokens=256.0)
    assert load_of(loop, {}).tolist() == [6, 10, 8]
    assert load_of(loop.replace(question="will", num_replicas=2), {})[0] == 5
    # Little: 4 requests a second that take 8 s each are 32 at once
    assert load_of(Scenario(), {"req_s": 4.0, "e2e_s_mean": 8.0})[0] == 5


def test_errors_of_one_figure_are_shared_the_less_the_further_the_loads_are_apart():
    here, there = np.zeros((1, 3)), np.array([[REACH[0], 0, 0]])
    assert shared(here, ["tpot"], here, ["tpot"])[0, 0] == pytest.approx(rest_sd()["tpot"] ** 2)
    assert shared(here, ["tpot"], there, ["tpot"])[0, 0] == pytest.approx(rest_sd()["tpot"] ** 2 * math.exp(-0.5))
    assert shared(here, ["tpot"], here, ["ttft"])[0, 0] == 0


def test_one_figure_narrows_as_two_measurements_of_one_number_do():
    # the same load as the plan's: its TTFT tells 0.5² of a factor and all of the rest, but for its own noise, 0.1
    slopes, loads = np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros((2, 3))
    covariance = np.diag([0.5**2, 0.4**2])
    before = 0.5**2 + rest_sd()["ttft"] ** 2
    [left, _] = foreseen(slopes, loads, ["ttft", "ttft"], covariance, np.array([False, True]))
    assert left == pytest.approx(1 / (1 / before + 0.1**-2))
    # far away, the rest tells nothing
    far = np.array([[0.0, 0, 0], [99.0, 0, 0]])
    [left, _] = foreseen(slopes, far, ["ttft", "ttft"], covariance, np.array([False, True]))
    assert left == pytest.approx(before - 0.5**4 / (before + 0.1**2))
