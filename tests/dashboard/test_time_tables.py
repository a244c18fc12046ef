"""Tables of a plan over time against its figures."""

import datetime

import pytest

from planner.answer.times import over_time
from planner.dashboard import time_tables
from planner.units import format_usd
from tests.answer.cases import planned

DAY = {"demand": "rate", "rate_rps": 60.0, "day_shape": "office"}


def cells(rows):
    return [[cell.replace("\u00a0", " ") for cell in row.values()] for row in rows]


@pytest.fixture(scope="module")
def found():
    return over_time(planned(**DAY))


def test_the_day_has_a_row_for_each_policy(found):
    rows = cells(time_tables.day_table(found))
    assert [row[0] for row in rows] == ["fixed", "scheduled", "autoscaled"]
    assert rows[1][1] == format_usd(found.day_costs[1].usd_per_month)
    assert rows[0][2] == "—"


def test_what_was_simulated_is_said(found):
    said = time_tables.how_simulated(found)
    assert f"{found.day.num_requests:,} requests" in said
    assert ("Of each hour" in said) == (found.day.simulated_s < 3600)


def test_a_spare_stands_beside_the_fleet(found):
    rows = cells(time_tables.outage_table(found, 0.95))
    assert rows[0][0].startswith(f"{found.outage.num_replicas} replica")
    assert rows[1][-1] == f"+{format_usd(found.spare_usd_per_month)}"


def test_orders_have_dates(found):
    today = datetime.date(2026, 1, 1)
    rows = cells(time_tables.orders_table(planned(**DAY), found.growth, today))
    first = found.growth.orders[0]
    expected = "now, late" if first.order_month < 0 else f"{first.order_date(today):%d %b %Y}"
    assert rows[0][1] == expected
    assert len(rows) <= time_tables.MOST_ORDERS
