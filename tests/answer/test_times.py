"""A plan over time: start-up, day, failure and months from one finished plan."""

import dataclasses

import pytest

from planner.answer import times
from planner.answer.pricing import reprice
from planner.cost import Growth, Order
from planner.errors import Infeasible
from tests.answer.cases import SMALL, planned

DAY = {"demand": "rate", "rate_rps": 60.0, "day_shape": "office"}


@pytest.fixture(scope="module")
def found():
    return times.over_time(planned(**DAY))


def test_the_start_of_a_replica_by_hand():
    # 8,030,261,248 parameters in bf16 at 2 GB/s take 8.03 s; vLLM's own start 64 s.
    done = planned(disk_gb_s=2.0)
    start = times.start_up(done)
    assert start.seconds == pytest.approx(64 + 8.03, abs=0.1)
    assert start.is_estimate
    assert "estimate" in start.source
    entered = times.start_up(planned(startup_s=30.0))
    assert (entered.seconds, entered.is_estimate) == (30.0, False)


def test_the_day_is_priced_by_replica_hours(found):
    done, day = planned(**DAY), found.day
    fixed, *others = found.day_costs
    assert fixed.usd_per_month == pytest.approx(done.cost.usd_per_month)
    assert fixed.saved_usd_per_month == 0
    for item in others:
        share = item.policy.replica_hours / (24 * done.num_replicas)
        assert item.usd_per_month == pytest.approx(share * done.cost.usd_per_month)
    assert day.rates_rps.max() == pytest.approx(60.0)


def test_spares_are_paid_for_under_every_policy(found):
    spared = planned(**DAY, spare_replicas=1)
    each = spared.cost.usd_per_month / spared.num_replicas
    costs = times.day_costs(spared, found.day)
    assert [item.usd_per_month for item in costs] == pytest.approx(
        [item.usd_per_month + each for item in found.day_costs]
    )


def test_prices_do_not_simulate_the_day_again(found, monkeypatch):
    monkeypatch.setattr(times, "simulate_time", lambda service: pytest.fail("a simulation ran"))
    dear = reprice(planned(**DAY), SMALL.replace(**DAY, usd_per_gpu_hour=9.0))
    known = times.Simulated(day=found.day, outage=found.outage, outage_with_spare=found.outage_with_spare)
    again = times.over_time(dear, known)
    assert again.day_costs[0].usd_per_month == pytest.approx(dear.cost.usd_per_month)
    assert times.running(dear) == times.running(planned(**DAY))


def test_the_months_begin_with_the_plan(found):
    done, first = planned(**DAY), found.growth.months[0]
    assert first.replicas == done.num_replicas
    assert first.usd_per_month == pytest.approx(done.cost.usd_per_month)
    assert found.growth.runs_out_month > 0


def test_a_closed_loop_has_months_but_no_day():
    closed = times.over_time(planned(arrivals="closed", concurrent_users=8))
    assert closed.day is None
    assert closed.outage is None
    assert closed.growth is not None
    assert "no rate" in times.time_text(planned(arrivals="closed", concurrent_users=8), closed)


def test_an_engine_that_does_not_start_has_no_time():
    with pytest.raises(Infeasible):
        times.over_time(planned(model="meta-llama/Llama-3.3-70B-Instruct"))


def cost(name, bill, saved, attainment):
    policy = type("Policy", (), {"name": name, "attainment": attainment, "replica_hours": bill})
    return times.DayCost(policy=policy, usd_per_month=bill, saved_usd_per_month=saved)


def test_the_cheapest_that_keeps_the_targets_is_said():
    fixed, scheduled, scaled = (
        cost("fixed", 100.0, 0.0, 0.99),
        cost("scheduled", 60.0, 40.0, 0.97),
        cost("autoscaled", 50.0, 50.0, 0.9),
    )
    said = times.day_sentence((fixed, scheduled, scaled), 0.95)
    assert "scheduled costs 60.00 USD a month, 40 % less" in said
    assert "fixed fleet is the cheapest" in times.day_sentence((fixed, scaled), 0.95)
    kept = times.day_sentence((fixed, scheduled), 0.95, "reserved")
    assert "Reserved GPUs are paid for all day, 100.00 USD" in kept
    assert "free 40 % of" in kept
    assert "No policy" in times.day_sentence((scaled,), 0.95)


def test_text_names_every_part(found):
    said = times.time_text(planned(**DAY), found)
    for part in ("Start of a replica", "24 hours", "One replica fails", "24 months", "autoscaled"):
        assert part in said


def test_growth_in_a_sentence(found):
    late = dataclasses.replace(found.growth, runs_out_month=None, orders=())
    assert "24 months and longer" in times.growth_sentence(late, 0.05)
    assert "does not hold today" in times.growth_sentence(dataclasses.replace(found.growth, runs_out_month=0), 0.05)


def test_later_orders_are_counted_rather_than_listed():
    # An order a month from the second on, of 1, 2, 3 … GPUs; the terminal lists eight of eleven.
    orders = tuple(
        Order(needed_month=month, order_month=month - 1.0, replicas=month, num_gpus=month, usd_per_gpu_hour=1.0)
        for month in range(1, 12)
    )
    found = Growth(months=(), orders=orders, runs_out_month=1, first_order_is_late=False)
    assert times.orders_left_out(found) == "3 later orders with 30 GPUs in all, to month 11"
    assert times.orders_left_out(dataclasses.replace(found, orders=orders[:8])) == ""
