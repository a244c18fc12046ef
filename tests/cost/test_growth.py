"""Months to come, by hand."""

import datetime

import pytest

from planner.cost.growth import Order, growth
from planner.errors import InvalidInput


def grow(**changes):
    fields = {
        "rate_rps": 10.0,
        "rate_each_rps": 5.0,
        "serving": 2,
        "spare": 1,
        "gpus_per_replica": 4,
        "usd_per_gpu_hour": 2.0,
        "hours_per_month": 100.0,
        "growth_per_month": 0.5,
        "lead_time_weeks": 0.0,
        "price_trend_per_year": 0.0,
    }
    return growth(**{**fields, **changes})


def test_growth_by_hand():
    # 10, 15, 22.5, 33.75 req/s: two, three, five, seven replicas of 5 req/s.
    found = grow()
    assert [month.replicas_needed for month in found.months[:4]] == [2, 3, 5, 7]
    assert [month.replicas for month in found.months[:4]] == [3, 4, 6, 8]
    # 3 × 4 GPUs × 2 USD × 100 h
    assert [month.usd_per_month for month in found.months[:3]] == [2400.0, 3200.0, 4800.0]
    assert found.runs_out_month == 1
    assert [(order.needed_month, order.num_gpus) for order in found.orders[:2]] == [(1, 4), (2, 8)]
    assert len(found.months) == 25


def test_prefill_and_decode_grow_each_by_its_own_share():
    # One prefill and two decode replicas hold 15 req/s. At 10, 15, 22.5, 33.75 req/s: 1 + 2, 1 + 2, 2 + 3, 3 + 5.
    found = grow(serving=3, kinds=(1, 2))
    assert [month.replicas_needed for month in found.months[:4]] == [3, 3, 5, 8]
    assert [(order.needed_month, order.replicas) for order in found.orders[:2]] == [(2, 2), (3, 3)]


def test_a_fleet_with_room_lasts():
    found = grow(serving=50, growth_per_month=0.05)
    assert found.runs_out_month is None
    assert found.orders == ()
    assert not found.first_order_is_late
    assert grow(growth_per_month=-0.1).runs_out_month is None


def test_orders_come_the_lead_time_before():
    # A month has 4.348 weeks: eight are 1.84 months.
    found = grow(lead_time_weeks=8.0)
    assert found.orders[1].order_month == pytest.approx(2 - 1.84, abs=0.001)
    assert found.first_order_is_late
    assert not grow(lead_time_weeks=4.0).first_order_is_late


def test_later_orders_have_the_price_of_their_month():
    # From ten replicas, 50 req/s, at 10 % a month: 10 × 1.1^17 = 50.5 req/s in month 17, 5 months of lead time before.
    found = grow(serving=10, growth_per_month=0.1, price_trend_per_year=-0.5, lead_time_weeks=5 * 365.25 / 84)
    assert found.runs_out_month == 17
    assert found.orders[0].usd_per_gpu_hour == pytest.approx(2.0 * 0.5)
    assert found.months[17].usd_per_month == pytest.approx(11 * 4 * 2.0 * 100 + 1 * 4 * 1.0 * 100)


def test_dates_of_orders():
    order = Order(needed_month=6, order_month=4.0, replicas=1, num_gpus=1, usd_per_gpu_hour=1.0)
    assert order.order_date(datetime.date(2026, 1, 1)) == datetime.date(2026, 1, 1) + datetime.timedelta(days=121)


def test_bad_growth_is_named():
    with pytest.raises(InvalidInput, match="growth_per_month"):
        grow(growth_per_month=-1.0)
