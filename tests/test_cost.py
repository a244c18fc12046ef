import math

import pytest

from planner.api_prices import ApiPrices, api_prices, normalised
from planner.cost import cost_plan
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


def test_the_same_weights_have_one_name_everywhere():
    names = ["meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instant", "@cf/meta/llama-3.1-8b-instruct-fp8"]
    assert {normalised(name) for name in names} == {"llama-3.1-8b"}


def test_api_prices_lie_within_their_offers():
    found = api_prices("openai/gpt-oss-120b")
    assert found is not None
    inputs = [offer.usd_per_mtok_input for offer in found.offers]
    assert min(inputs) <= found.usd_per_mtok_input <= max(inputs)
    assert "genai-prices" in found.source
    assert api_prices("nobody/no-such-model") is None
