from urllib.parse import parse_qs

import pytest

from planner.answer.fits import fits
from planner.answer.planning import plan
from planner.answer.search.recommend import recommend
from planner.errors import InvalidInput
from planner.scenario.link import from_query, to_query
from planner.scenario.presets import preset
from planner.scenario.scenario import Scenario
from planner.serve import calls
from planner.serve.calls import (
    compare_call,
    fits_call,
    list_call,
    plan_call,
    read_link_call,
    recommend_call,
    scenario_of,
)

FEW = {"num_requests": 100}


def test_a_scenario_comes_from_a_preset_a_link_and_fields_in_this_order():
    found, notes = scenario_of({"preset": "small-team", "link": "u=60&tp=2", "scenario": {"users": 70}})
    assert found == preset("small-team").replace(users=70, tensor_parallel_size=2)
    assert notes == ()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"scenario": {"users": 0}}, "users"),
        ({"scenario": {"usres": 3}}, "setting"),
        ({"scenario": [1]}, "scenario"),
        ({"scenario": {"users": float("nan")}}, "users"),
        ({"scenario": {"model": "no/such-model"}}, "model"),
        ({"link": "tp=x"}, "tensor_parallel_size"),
        ({"link": "nonsense=1"}, "setting"),
        ({"link": 5}, "link"),
        ({"link": "http://["}, "link"),
        ({"preset": "nothing"}, "preset"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(arguments, field):
    with pytest.raises(InvalidInput) as caught:
        scenario_of(arguments)
    assert caught.value.field == field


def test_a_whole_address_may_carry_parameters_of_mail_programs():
    assert scenario_of({"link": "https://plan.example.com/?u=60&utm_source=mail"})[0].users == 60


def test_a_plan_is_that_of_the_library():
    answer, ours = plan_call({"scenario": FEW | {"users": 60}}), plan(Scenario(users=60, num_requests=100))
    assert answer["headline"] == ours.headline
    assert answer["metrics"]["ttft_s"]["p95"] == ours.metrics.ttft_s.p95
    assert from_query(answer["link"]).scenario == ours.scenario


def test_a_shortened_context_is_noted():
    answer = plan_call({"link": "m=facebook/opt-13b&nr=100"})
    assert answer["memory"]["max_model_len"] == 2048
    assert "2,048" in answer["notes"][0]


def test_rows_of_a_search_are_those_of_the_library(monkeypatch):
    restricted = {"my_gpus": "L40S:1", "users": 50, "num_requests": 100}
    found = recommend(Scenario(**restricted))
    asked = []
    monkeypatch.setattr(calls, "recommend", lambda scenario, executor: asked.append(scenario) or found)
    answer = recommend_call({"scenario": restricted, "rows": 1})
    assert asked == [Scenario(**restricted)]
    assert [row["link"] for row in answer["candidates"]] == [to_query(row.scenario) for row in found.candidates[:1]]
    assert answer["summary"] == found.summary
    assert answer["candidates"][0]["usd_per_month"] == found.candidates[0].usd_per_month


def test_a_comparison_says_what_differs_and_which_is_cheapest():
    others = {"link": "u=50&g=L40S&nr=100", "name": "smaller"}
    answer = compare_call({"plans": [{"scenario": FEW | {"users": 50}}, others]})
    assert [row["name"] for row in answer["plans"]] == ["Plan 1", "smaller"]
    assert answer["differing"] == [{"name": "gpu", "label": "GPU", "values": ["H100 SXM", "L40S"]}]
    least = min(answer["plans"], key=lambda row: row["usd_per_month"])
    assert least["status"] == "meets targets"
    assert answer["cheapest_that_meets_targets"] == least["name"]
    shared = parse_qs(answer["link"])
    assert from_query(shared["vs"][0]).scenario.gpu == "L40S"


@pytest.mark.parametrize("plans", ["two", [{}], [{}] * 5, [{}, {"file": "/etc/passwd"}], [{}, "u=5"]])
def test_a_comparison_of_something_else_is_refused(plans):
    with pytest.raises(InvalidInput) as caught:
        compare_call({"plans": plans})
    assert caught.value.field == "plans"


def test_models_that_fit_are_those_of_the_library():
    names = ["Qwen/Qwen3-8B", "Qwen/Qwen3-4B"]
    ours = fits("RTX 4090", engines=["vllm"], models=names)
    answer = fits_call({"gpu": "RTX 4090", "engines": ["vllm"], "search": "qwen/qwen3-", "rows": 500})
    found = {row["model"]: row for row in answer["models"]}
    assert answer["total"] == len(found)
    for row in ours:
        assert found[row.model]["tokens_per_s_alone"] == row.tokens_per_s_alone


def test_what_cannot_be_used_of_a_link_is_told():
    answer = read_link_call({"link": "https://plan.example.com/?v=2&u=60&zz=3&tp=x"})
    assert answer["scenario"] == {"users": 60}
    assert {error["field"] for error in answer["not_used"]} == {"tensor_parallel_size", "setting"}
    assert answer["link"] == "v=2&u=60"


def test_a_list_can_be_searched_and_cut():
    answer = list_call({"what": "gpus", "search": "h100", "rows": 1})
    assert answer["total"] > 1
    assert [row["vendor"] for row in answer["entries"]] == ["NVIDIA"]
    with pytest.raises(InvalidInput):
        list_call({"what": "gpus", "rows": 0})


def test_no_engine_is_not_every_engine():
    with pytest.raises(InvalidInput) as caught:
        fits_call({"gpu": "RTX 4090", "engines": []})
    assert caught.value.field == "engines"
