"""A saved plan, planned again."""

import dataclasses

import pytest

from planner.answer import plan
from planner.answer.recheck import changed_verdict
from planner.errors import InvalidInput
from planner.scenario import Scenario


@pytest.fixture(scope="module")
def done():
    return plan(Scenario(num_requests=500))


def saved(done, **changes):
    body = {"fits": done.fits, "slo_met": done.slo_met, "num_gpus": done.num_gpus}
    return body | {"cost": {"usd_per_month": done.cost.usd_per_month}} | changes


def test_the_same_verdict_changes_nothing(done):
    assert changed_verdict(saved(done), done) == ()


def test_every_part_of_the_verdict_is_told(done):
    said = changed_verdict(saved(done, slo_met=not done.slo_met, num_gpus=done.num_gpus + 3), done)
    assert len(said) == 2
    assert f"{done.num_gpus + 3} before, {done.num_gpus} now" in said[1]
    refused = dataclasses.replace(done, fits=False)
    assert "no longer starts" in changed_verdict(saved(done), refused)[0]


def test_a_bill_that_moves_is_told(done):
    month = done.cost.usd_per_month
    assert changed_verdict(saved(done, cost={"usd_per_month": month * 1.004}), done) == ()
    assert "Cost a month" in changed_verdict(saved(done, cost={"usd_per_month": month * 1.1}), done)[0]


def test_a_scenario_alone_has_no_verdict(done):
    with pytest.raises(InvalidInput, match="plan --json"):
        changed_verdict({"model": "x"}, done)
