"""Other prices on a finished run: the same plan as a new one, without a simulation."""

import dataclasses

import pytest

from planner.answer import pricing
from planner.answer.planning import plan
from planner.errors import InvalidInput
from planner.scenario.fields import unsimulated_names
from planner.simulation import machine
from tests.answer.cases import SMALL, planned

CHANGES = [
    {"usd_per_gpu_hour": 0.5},
    {"api_usd_per_mtok_input": 0.01, "api_usd_per_mtok_output": 0.01},
    {"price_kind": "owned", "gpu_purchase_usd": 20_000.0, "people_usd_per_month": 5_000.0},
    {"hours_per_month": 200.0, "title": "Night shift"},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_a_repriced_plan_is_the_plan_at_that_price(changes):
    again, fresh = pricing.reprice(planned(), SMALL.replace(**changes)), plan(SMALL.replace(**changes))
    for name in ("scenario", "cost", "headline", "reasons", "findings", "chain", "metrics", "num_gpus", "gpu"):
        assert getattr(again, name) == getattr(fresh, name), name
    prices = [[item.usd_per_million_tokens_at_capacity for item in done.policies] for done in (again, fresh)]
    assert prices[0] == prices[1]


def test_no_simulation_runs(monkeypatch):
    done = planned()

    def refuse(*_args, **_more):
        raise AssertionError("a simulation ran")

    monkeypatch.setattr(machine.kernel, "advance", refuse)
    with pytest.raises(AssertionError):
        plan(SMALL)
    assert pricing.reprice(done, SMALL.replace(usd_per_gpu_hour=1.0)).cost.usd_per_gpu_hour == 1.0


def test_what_is_simulated_cannot_be_repriced():
    with pytest.raises(InvalidInput, match="users"):
        pricing.reprice(planned(), SMALL.replace(users=501))


def test_an_engine_that_does_not_start_has_no_bill():
    refused = planned(model="meta-llama/Llama-3.3-70B-Instruct")
    other = refused.scenario.replace(usd_per_gpu_hour=1.0)
    assert pricing.reprice(refused, other).cost is None
    assert pricing.reprice(refused, other).scenario == other


def test_the_unpriced_scenario_keeps_what_is_simulated():
    asked = SMALL.replace(users=77, usd_per_gpu_hour=3.0, title="x", pue=1.1, growth_per_month=0.2)
    assert asked.without("prices") == SMALL.replace(users=77, growth_per_month=0.2)
    assert asked.without("prices", "time") == SMALL.replace(users=77)
    assert {item.name for item in dataclasses.fields(SMALL)} > unsimulated_names() > {"title", "usd_per_gpu_hour"}


def test_what_gpus_take_can_be_repriced_though_the_form_still_states_another_load():
    asked = SMALL.replace(question="take", users=9)
    done = plan(asked)
    dearer = pricing.reprice(done, asked.replace(usd_per_gpu_hour=9.0))
    assert dearer.scenario.users == done.scenario.users > 9
    assert dearer.taken == done.taken
    assert dearer.cost.usd_per_gpu_hour == 9.0
