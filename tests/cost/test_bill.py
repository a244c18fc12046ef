"""The bill by hand, and where a hosted API becomes cheaper."""

import math

import pytest

from planner.cost.bill import cost_plan
from planner.cost.hosted_apis import ApiPrices
from planner.errors import InvalidInput

API = ApiPrices(usd_per_mtok_input=0.10, usd_per_mtok_output=0.40, offers=(), source="test")


def make(**changes):
    fields = {
        "num_gpus": 2,
        "usd_per_gpu_hour": 2.5,
        "price_source": "test",
        "hours_per_month": 730,
        "mean_rate_rps": 4.0,
        "peak_rate_rps": 8.0,
        "mean_prompt_tokens": 1000.0,
        "mean_output_tokens": 250.0,
        "api": API,
    }
    return cost_plan(**{**fields, **changes})


def test_the_bill_by_hand():
    cost = make()
    # 2 GPUs × 2.50 USD × 730 h; 4 req/s × 2,628,000 s × 1,250 tokens = 13.14 G tokens.
    assert cost.usd_per_month == pytest.approx(3650)
    assert cost.requests_per_month == pytest.approx(10_512_000)
    assert cost.usd_per_million_tokens == pytest.approx(3650 / 13_140)
    assert cost.usd_per_million_tokens_at_peak == pytest.approx(3650 / 26_280)
    assert cost.usd_per_million_output_tokens == pytest.approx(3650 / 2_628)


def test_break_even_is_where_both_bills_are_equal():
    cost = make()
    # 1,000 × 0.10 + 250 × 0.40 USD per million = 0.0002 USD per request.
    assert cost.break_even_requests_per_month == pytest.approx(3650 / 0.0002)
    assert cost.api_usd_per_month == pytest.approx(10_512_000 * 0.0002)
    assert cost.api_is_cheaper
    assert not make(mean_rate_rps=8.0, num_gpus=1).api_is_cheaper


def test_published_break_even():
    # A 2.50 USD/h GPU against 0.004 USD per request breaks even at 625 requests an hour (A21 of the peers' vectors).
    cost = make(
        num_gpus=1,
        api=ApiPrices(usd_per_mtok_input=0.0, usd_per_mtok_output=0.004 / 250 * 1e6, offers=(), source="test"),
    )
    assert cost.break_even_requests_per_month / 730 == pytest.approx(625)


def test_without_an_api_price_nothing_is_compared():
    cost = make(api=None)
    assert cost.api_usd_per_month is None
    assert cost.break_even_requests_per_month is None
    assert not cost.api_is_cheaper


@pytest.mark.parametrize("field", ["usd_per_gpu_hour", "mean_rate_rps", "hours_per_month"])
def test_bad_prices_and_rates_are_named(field):
    for value in (-1.0, math.nan):
        with pytest.raises(InvalidInput, match=field):
            make(**{field: value})


def test_a_token_costs_the_same_however_many_hours_are_paid():
    # 100 h: 2 × 2.50 × 100 = 500 USD for 4 × 360,000 × 1,250 = 1.8 G tokens, as 3,650 USD for 13.14 G.
    few, all_month = make(hours_per_month=100), make()
    assert few.usd_per_month == pytest.approx(500)
    assert few.requests_per_month == pytest.approx(1_440_000)
    assert few.api_usd_per_month == pytest.approx(1_440_000 * 0.0002)
    for name in ("million_tokens", "million_output_tokens", "million_tokens_at_peak", "thousand_requests"):
        assert getattr(few, f"usd_per_{name}") == pytest.approx(getattr(all_month, f"usd_per_{name}"))
    assert few.api_is_cheaper == all_month.api_is_cheaper


def test_nothing_finished_has_no_price():
    cost = make(mean_rate_rps=0.0, peak_rate_rps=0.0, offered_rate_rps=4.0)
    assert math.isinf(cost.usd_per_million_tokens)
    assert math.isinf(cost.usd_per_million_tokens_at_peak)
    assert cost.usd_per_month == pytest.approx(3650)
    assert (cost.requests_per_month, cost.offered_requests_per_month) == (0, pytest.approx(10_512_000))
    assert cost.api_usd_per_month is None
    assert not cost.api_is_cheaper
