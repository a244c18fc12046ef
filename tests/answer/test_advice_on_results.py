"""When tails, lost requests and hosted prices are worth a word."""

import math
from types import SimpleNamespace

import pytest

from planner.answer.advice_on_results import (
    api_cheaper,
    average_hides_tail,
    few_requests,
    preempts,
    price_assumed,
    rejects,
)
from planner.scenario import Scenario
from planner.units import DAYS_PER_MONTH


def latencies(mean, p99):
    return SimpleNamespace(ttft_s=SimpleNamespace(mean=mean, p99=p99))


# A tail that is three times the mean, and long enough to be felt; with a target, one that only the tail misses.
@pytest.mark.parametrize(
    ("mean", "p99", "target", "warns"),
    [
        (0.1, 0.5, None, True),
        (0.1, 0.29, None, False),
        (0.01, 0.1, None, False),
        (math.nan, 1.0, None, False),
        (0.1, 0.5, 1.0, False),
        (0.1, 0.5, 0.4, True),
        (0.1, 0.5, 0.05, False),
    ],
)
def test_when_an_average_hides_the_tail(mean, p99, target, warns):
    scenario = Scenario(ttft_target_s=target)
    assert (average_hides_tail(scenario, latencies(mean, p99)) is not None) == warns


def bill(own, api, per_month):
    return SimpleNamespace(api_is_cheaper=api < own, api_usd_per_month=api, usd_per_month=own,
                           requests_per_month=per_month, api_source="test")  # fmt: skip


# 730 ÷ 24 days a month: 10,000 requests a day are 304,167 a month.
@pytest.mark.parametrize(
    ("own", "api", "per_month", "kind"),
    [(1000, 10, 304_000, "few_requests"), (1000, 10, 305_000, "api_cheaper"), (10, 1000, 304_000, None)],
)
def test_when_an_api_is_the_simpler_choice(own, api, per_month, kind):
    found = api_cheaper(bill(own, api, per_month))
    assert (found.kind if found else None) == kind


def test_preemptions_are_counted():
    none = {"num_requests": 100, "num_preemptions": 0}
    assert preempts(SimpleNamespace(**none)) is None
    found = preempts(SimpleNamespace(**(none | {"num_preemptions": 5})))
    assert (found.kind, found.severity) == ("preemption", "warning")
    assert "5" in found.text


@pytest.mark.parametrize(("rejected", "severity"), [(0, None), (9, "note"), (10, "warning")])
def test_rejected_requests_are_a_warning_from_one_in_a_hundred_on(rejected, severity):
    found = rejects(Scenario(max_model_len=4096), SimpleNamespace(num_requests=1000, num_rejected=rejected))
    assert (found.severity if found else None) == severity
    assert found is None or "context of 4,096 tokens" in found.text


def test_a_full_queue_is_named_where_the_engine_limits_it():
    some = SimpleNamespace(num_requests=100, num_rejected=5)
    limited = Scenario(engine="ollama")
    assert "may wait" not in rejects(Scenario(), some).text
    assert "beyond the 512 requests that may wait" in rejects(limited, some).text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, None),
        ({"usd_per_gpu_hour": 2.0, "gpu": "RTX 3060"}, None),
        ({"gpu": "RTX 3060"}, "No price of RTX 3060 is known: the bill assumes 2 USD per GPU-hour"),
        ({"price_kind": "owned"}, "without a purchase price"),
        ({"price_kind": "owned", "gpu_purchase_usd": 30000.0}, None),
        ({"price_kind": "reserved", "gpu": "L4"}, "another kind"),
    ],
)
def test_a_bill_on_a_price_that_nobody_stated_says_so(changes, says):
    found = price_assumed(Scenario(**changes))
    assert (found is None) == (says is None)
    assert found is None or says in found.text


def test_a_few_requests_are_told_without_a_price_to_compare_with():
    bill = {"usd_per_month": 3285.0, "usd_per_thousand_requests": 36.0}
    few = SimpleNamespace(api_usd_per_month=None, requests_per_month=3000 * DAYS_PER_MONTH, **bill)
    assert few_requests(few).text.startswith("Self-hosting for a few thousand requests a day: 3,000 requests")
    assert few_requests(SimpleNamespace(**{**vars(few), "requests_per_month": 1e9})) is None
    assert few_requests(SimpleNamespace(**{**vars(few), "api_usd_per_month": 10.0})) is None
