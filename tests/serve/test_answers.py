import json

import pytest

from planner.answer.as_json import plan_dict
from planner.answer.planning import plan
from planner.answer.search.outcome import candidate_of
from planner.errors import Infeasible, InvalidInput
from planner.scenario.link import to_query
from planner.scenario.scenario import Scenario
from planner.serve.answers import candidate_answer, changed, compared_plan, plan_answer, refusal

SCENARIO = Scenario(users=60, num_requests=100)


@pytest.fixture(scope="module")
def done():
    return plan(SCENARIO)


def part_of(small, whole):
    if isinstance(small, dict):
        return all(name in whole and part_of(value, whole[name]) for name, value in small.items())
    if isinstance(small, list):
        return len(small) == len(whole) and all(map(part_of, small, whole))
    return small == whole


def test_an_answer_is_a_part_of_the_plans_json(done):
    answer, whole = plan_answer(done), plan_dict(done)
    assert part_of(answer, whole)
    assert {"headline", "verdict", "findings", "bands", "metrics", "cost", "memory", "chain", "link"} <= answer.keys()
    assert len(json.dumps(answer)) < len(json.dumps(whole)) / 10
    assert set(answer["bands"]["ttft"]) >= {"median_fraction", "p90_fraction", "basis"}


def test_an_engine_that_does_not_start_is_an_answer_too():
    answer = plan_answer(plan(Scenario(model="meta-llama/Llama-3.3-70B-Instruct", num_requests=100)))
    assert answer["fits"] is False
    assert answer["metrics"] is None
    assert answer["memory"]["refusal"]


def test_only_what_differs_from_the_defaults_is_written():
    assert changed(SCENARIO) == {"users": 60, "num_requests": 100}


def test_rows_have_the_figures_and_the_link(done):
    row = candidate_answer(candidate_of(done))
    assert row["usd_per_month"] == done.cost.usd_per_month
    assert row["link"] == to_query(done.scenario)
    assert compared_plan("ours", done)["evidence"] == done.verdict.evidence


def test_an_error_names_field_value_and_what_would_be_valid():
    assert refusal(InvalidInput("users", 0, "a whole number of at least 1")) == {
        "error": "Users (users) = 0 is not valid: expected a whole number of at least 1.",
        "field": "users",
        "value": 0,
        "valid": "a whole number of at least 1",
        "remedies": [],
    }
    assert refusal(Infeasible("no room", ["a larger GPU"]))["remedies"] == ["a larger GPU"]
    strange = refusal(InvalidInput("plans", [float("nan"), "x" * 900], "a list"))
    assert len(json.dumps(strange, allow_nan=False)) < 1000
