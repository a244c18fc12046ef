import json
import math
from dataclasses import dataclass

import numpy as np

from planner.answer.as_json import linked, plain, plan_dict
from planner.answer.fits import fits
from planner.answer.planning import plan
from planner.scenario.link import from_query
from planner.scenario.scenario import Scenario


@dataclass(frozen=True)
class Sample:
    figures: np.ndarray
    pair: tuple[float, float]


def test_values_become_plain_types_and_what_is_not_finite_null():
    sample = Sample(np.array([1.5, np.nan]), (math.inf, np.float64(2.0)))
    assert plain({"sample": sample, 3: np.int64(4)}) == {
        "sample": {"figures": [1.5, None], "pair": [None, 2.0]},
        "3": 4,
    }


def test_a_plan_is_strict_json_that_leads_back_to_its_scenario():
    done = plan(Scenario(users=60, num_requests=100))
    body = json.loads(json.dumps(plan_dict(done), allow_nan=False))
    assert body["metrics"]["ttft_s"]["p95"] == done.metrics.ttft_s.p95
    assert from_query(body["link"]).scenario == done.scenario
    assert "result" not in body


def test_a_row_has_the_link_of_its_plan_in_place_of_the_scenario():
    [fit] = fits("RTX 4090", engines=["vllm"], models=["Qwen/Qwen3-4B"])
    row = linked(fit)
    assert "scenario" not in row
    assert row["model"] == "Qwen/Qwen3-4B"
    assert from_query(row["link"]).scenario == fit.scenario
