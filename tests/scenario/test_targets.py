"""Targets: which are on, and what a link or JSON that names only some of them asks for."""

import pytest

from planner.scenario.link import from_json, from_query, to_json, to_params, to_query
from planner.scenario.scenario import Scenario
from planner.scenario.targets import targets_of, unnamed_targets_off

USUAL = {"TTFT": 1.0, "TPOT": 0.05}


def limits(scenario):
    return {target.name: target.limit_s for target in scenario.targets}


def test_targets_that_are_on_come_in_one_order():
    values = {"ttft_target_s": None, "tpot_target_s": None, "itl_target_s": 0.2, "e2e_target_s": 9.0}
    assert [(target.name, target.latency, target.limit_s) for target in targets_of(values)] == [
        ("ITL", "max_itl_s", 0.2),
        ("E2E", "e2e_s", 9.0),
    ]
    assert limits(Scenario()) == USUAL


def test_naming_a_target_turns_the_others_off():
    assert unnamed_targets_off({"users": 5}) == {}
    assert set(unnamed_targets_off({"tpot_target_s": 0.05})) == {"ttft_target_s", "itl_target_s", "e2e_target_s"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("u=9", USUAL),
        ("ttft=2", {"TTFT": 2.0}),
        ("tpot=0.05&u=9", {"TPOT": 0.05}),  # even where it says the default
        ("e2e=10&itl=0.1", {"ITL": 0.1, "E2E": 10.0}),
        ("ttft=none", {}),
        ("v=2&ttft=2", {"TTFT": 2.0}),
        ("v=1&ttft=2", {"TTFT": 2.0, "TPOT": 0.05}),  # links of then left out what was at its default
        ("v=1&u=9", USUAL),
        ("ttft=fast", USUAL),  # not understood, so nothing is named
    ],
)
def test_links_mean_the_targets_that_they_name(query, said):
    assert limits(from_query(query).scenario) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", USUAL),
        ('{"ttft_target_s": 2}', {"TTFT": 2.0}),
        ('{"ttft_target_s": null}', {}),
        ('{"version": 1, "ttft_target_s": 2}', {"TTFT": 2.0, "TPOT": 0.05}),
        ('{"ttft_target_s": 2, "tpot_target_s": null, "e2e_target_s": 30}', {"TTFT": 2.0, "E2E": 30.0}),
    ],
)
def test_json_means_the_targets_that_it_names(text, said):
    assert limits(from_json(text).scenario) == said


def test_a_preset_keeps_its_targets_unless_the_link_names_one():
    base = Scenario(ttft_target_s=5.0)
    assert limits(from_query("u=9", base).scenario) == {"TTFT": 5.0, "TPOT": 0.05}
    assert limits(from_query("e2e=9", base).scenario) == {"E2E": 9.0}


@pytest.mark.parametrize(
    ("changes", "written"),
    [
        ({}, {}),
        ({"ttft_target_s": 2.0}, {"ttft": "2", "tpot": "0.05"}),
        ({"tpot_target_s": None}, {"ttft": "1"}),
        ({"ttft_target_s": None, "tpot_target_s": None}, {"ttft": "none"}),
        ({"ttft_target_s": None, "tpot_target_s": None, "e2e_target_s": 8.0}, {"e2e": "8"}),
    ],
)
def test_links_and_json_carry_every_choice(changes, written):
    scenario = Scenario(**changes)
    assert to_params(scenario) == {"v": "2", **written}
    assert from_query(to_query(scenario)).scenario == scenario
    assert from_json(to_json(scenario)).scenario == scenario
