"""The hour of an owned GPU, by hand."""

import pytest

from planner.cost.owned import owned_hour, power_w
from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario

OWNED = Scenario(
    gpu_purchase_usd=29_200.0,
    depreciation_years=4.0,
    resale_share=0.1,
    power_usd_per_kwh=0.2,
    pue=1.5,
    server_power_factor=2.0,
    people_usd_per_month=7_300.0,
    hours_per_month=730.0,
)


def test_an_hour_by_hand():
    hour = owned_hour(OWNED, 700.0, 0.5, 10)
    # 29,200 × 0.9 over 48 months of 730 h; 700 W × 0.5 × 2 × 1.5 = 1.05 kW at 0.20 USD; 7,300 over 10 GPUs × 730 h
    assert hour.depreciation_usd == pytest.approx(0.75)
    assert hour.power_usd == pytest.approx(0.21)
    assert hour.people_usd == pytest.approx(1.0)
    assert hour.usd_per_hour == pytest.approx(1.96)


def test_what_stands_idle_still_loses_value():
    # A month has 365 paid hours: each bears twice the depreciation.
    assert owned_hour(OWNED.replace(hours_per_month=365.0), 700.0, 0.5, 10).depreciation_usd == pytest.approx(1.5)


def test_power_follows_the_load():
    assert power_w(OWNED, 700.0, 1.0) == pytest.approx(2100)
    assert power_w(OWNED, None, 1.0) == 0.0
    with pytest.raises(InvalidInput, match="load"):
        power_w(OWNED, 700.0, 1.5)
