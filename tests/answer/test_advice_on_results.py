"""When tails, lost requests and hosted prices are worth a word."""

import math
from types import SimpleNamespace

import pytest

from planner.answer.advice_on_results import api_cheaper, average_hides_tail, few_requests, preempts, rejects
from planner.units import DAYS_PER_MONTH


def latencies(mean, p99):
    return SimpleNamespace(ttft_s=SimpleNamespace(mean=mean, p99=p99))


# A tail that is three times the mean, and long enough to be felt.
@pytest.mark.parametrize(
    ("mean", "p99", "warns"), [(0.1, 0.5, True), (0.1, 0.29, False), (0.01, 0.1, False), (math.nan, 1.0, False)]
)
def test_when_an_average_hides_the_tail(mean, p99, warns):
    assert (average_hides_tail(latencies(mean, p99)) is not None) == warns


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


@pytest.mark.parametrize(
    ("counts", "check", "kind"),
    [
        ({"num_rejected": 5}, rejects, "rejected"),
        ({"num_preemptions": 5}, preempts, "preemption"),
    ],
)
def test_shares_of_the_requests(counts, check, kind):
    none = {"num_requests": 100, "num_rejected": 0, "num_preemptions": 0}
    assert check(SimpleNamespace(**none)) is None
    found = check(SimpleNamespace(**(none | counts)))
    assert (found.kind, found.severity) == (kind, "warning")
    assert "5" in found.text


def test_a_few_requests_are_told_without_a_price_to_compare_with():
    bill = {"usd_per_month": 3285.0, "usd_per_thousand_requests": 36.0}
    few = SimpleNamespace(api_usd_per_month=None, requests_per_month=3000 * DAYS_PER_MONTH, **bill)
    assert few_requests(few).text.startswith("Self-hosting for a few thousand requests a day: 3,000 requests")
    assert few_requests(SimpleNamespace(**{**vars(few), "requests_per_month": 1e9})) is None
    assert few_requests(SimpleNamespace(**{**vars(few), "api_usd_per_month": 10.0})) is None
