"""What a link tells of the plan that its author saw."""

import dataclasses
from datetime import date

import pytest

from planner.answer.planning import plan
from planner.dashboard.seen import changed_since, seen_text
from planner.scenario.scenario import Scenario

DAY = date(2026, 9, 20)


@pytest.fixture(scope="module")
def done():
    return plan(Scenario(num_requests=300, usd_per_gpu_hour=2.0))


def test_an_unchanged_plan_says_nothing(done):
    assert changed_since(seen_text(done, DAY), done) == ""


# 730 hours at 3 USD instead of 2: 2,190 instead of 1,460 USD a month for one GPU.
def test_a_changed_price_is_told_with_its_effect(done):
    dearer = dataclasses.replace(done, cost=dataclasses.replace(done.cost, usd_per_gpu_hour=3.0, usd_per_month=2190.0))
    said = changed_since(seen_text(done, DAY), dearer)
    assert said == (
        "When this link was made, on 2026-09-20, some figures were others: price of a GPU-hour 2.00 USD, now 3.00 USD; "
        "a month 1,460 USD, now 2,190 USD."
    )


def test_a_plan_that_no_longer_starts(done):
    refused = plan(Scenario(model="deepseek-ai/DeepSeek-V3", num_requests=100))
    assert seen_text(refused, DAY) == ""
    assert "1 GPU; today nothing is served" in changed_since(seen_text(done, DAY), refused)


@pytest.mark.parametrize("text", ["", "x", "2026-09-20~a~b~c~d~e", "~~~~~", "2026-13-40~1~2~3~4~5", "1~2", "~" * 9999])
def test_a_text_that_tells_nothing(done, text):
    assert changed_since(text, done) == ""


@pytest.mark.parametrize("text", ["2026-09-20~nan~inf~-inf~1e999~0", "2026-09-20~1e300~1~1~1~1"])
def test_odd_numbers_raise_nothing(done, text):
    assert "nan" not in changed_since(text, done)
