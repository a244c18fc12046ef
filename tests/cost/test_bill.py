"""The bill by hand, and where a hosted API becomes cheaper."""

import math

import pytest

from planner.cost.bill import AT_FULL, AT_MEAN, AT_TARGETS, FleetUse, cost_plan
from planner.cost.break_even import OwnSteps
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


def use(usd, requests, **changes):
    steps = OwnSteps(usd_per_replica_month=usd, requests_per_replica_month=requests)
    fields = {"at_targets_rps": 8.0, "capacity_rps": 10.0, "output_weight": 4.0, "busy": 0.5, "gpu_w": 350.0,
              "power_w": 700.0, "steps": steps}  # fmt: skip
    return FleetUse(**{**fields, **changes})


def test_break_even_is_where_both_bills_are_equal():
    cost = make(use=use(3650.0, 100e6))
    # 1,000 × 0.10 + 250 × 0.40 USD per million = 0.0002 USD per request.
    assert cost.break_even_requests_per_month == pytest.approx(3650 / 0.0002)
    assert cost.api_usd_per_month == pytest.approx(10_512_000 * 0.0002)
    assert cost.api_is_cheaper
    assert not make(mean_rate_rps=8.0, num_gpus=1).api_is_cheaper


def test_published_break_even():
    # A 2.50 USD/h GPU against 0.004 USD per request breaks even at 625 requests an hour (A21 of the peers' vectors).
    cost = make(
        num_gpus=1,
        use=use(2.5 * 730, 1e6),
        api=ApiPrices(usd_per_mtok_input=0.0, usd_per_mtok_output=0.004 / 250 * 1e6, offers=(), source="test"),
    )
    assert cost.break_even_requests_per_month / 730 == pytest.approx(625)


def test_a_fleet_that_grows_with_the_volume_may_never_pay():
    # 3,650 USD buy what the API sells for 0.0002 × 18 million = 3,600 USD.
    cost = make(use=use(3650.0, 18e6))
    assert cost.break_even.first_requests_per_month is None
    assert cost.break_even_requests_per_month is None


def test_targets_that_are_missed_at_every_volume_have_no_break_even():
    cost = make(use=use(1.0, 1.0, steps=None, at_targets_rps=0.0))
    assert cost.break_even is None


def test_prices_at_three_loads():
    cost = make(use=use(3650.0, 100e6))
    assert [(item.load, item.requests_per_s) for item in cost.prices] == [
        (AT_MEAN, 4.0),
        (AT_TARGETS, 8.0),
        (AT_FULL, 10.0),
    ]
    assert cost.prices[0].usd_per_million_tokens == pytest.approx(cost.usd_per_million_tokens)
    assert cost.prices[1].usd_per_million_tokens == pytest.approx(cost.usd_per_million_tokens / 2)


def test_energy_by_hand():
    # 2 GPUs × 350 W over 4 req/s × 1,250 tokens; 2 × 0.7 kW × 730 h.
    cost = make(use=use(3650.0, 100e6))
    assert cost.gpu_joules_per_token == pytest.approx(700 / 5000)
    assert cost.kwh_per_month == pytest.approx(1022)
    assert make(use=use(1.0, 1.0, gpu_w=0.0, power_w=0.0)).gpu_joules_per_token is None


def test_users_share_the_bill():
    assert make(users=100).usd_per_user_month == pytest.approx(36.5)
    assert make().usd_per_user_month is None


def test_cached_input_is_billed_at_its_own_price():
    api = ApiPrices(
        usd_per_mtok_input=1.0, usd_per_mtok_output=2.0, usd_per_mtok_cached_input=0.1, offers=(), source="test"
    )
    # 1,000 × (0.75 × 1 + 0.25 × 0.1) + 250 × 2 USD per million
    assert make(api=api, api_cached_share=0.25).api_usd_per_request == pytest.approx(1275e-6)
    assert make(api=api).api_usd_per_request == pytest.approx(1500e-6)


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
