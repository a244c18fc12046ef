"""Tables of the Fleet & time page, made from a plan over time. No streamlit."""

from __future__ import annotations

import datetime

import numpy as np

from planner.answer import MOST_ORDERS, OverTime, Plan
from planner.cost import Growth
from planner.dashboard.plan_tables import Table, table
from planner.service import Outage
from planner.units import counted, format_duration, format_number, format_percent, format_usd


def day_table(found: OverTime) -> Table:
    """Each policy of the day: its bill, its replicas and what users see."""
    rows = [
        (
            item.policy.name,
            format_usd(item.usd_per_month),
            format_usd(item.saved_usd_per_month) if item.policy.name != found.day_costs[0].policy.name else "—",
            format_number(item.policy.replica_hours),
            f"{item.policy.most_replicas:,}",
            format_percent(item.policy.attainment),
            format_percent(float(np.nanmin(item.policy.met))),
        )
        for item in found.day_costs
    ]
    header = (
        "Replicas",
        "USD a month",
        "Saved",
        "Replica-hours a day",
        "At most",
        "Meet the targets",
        "In the worst hour",
    )
    return table(header, rows)


def how_simulated(found: OverTime) -> str:
    """What of the day was simulated, in a sentence or two."""
    day = found.day
    assert day is not None
    said = f"Simulated: {counted(day.num_requests, 'request')} on the same times under each policy."
    if day.simulated_s < 3600:
        said += f" Of each hour {format_duration(day.simulated_s)}, the second half of it standing for the rest."
    if day.stands_for > 1:
        said += f" Each simulated replica stands for {format_number(day.stands_for, 2)}."
    return f"{said} A bill by replica-hours needs GPUs that can be given back; reserved and owned ones cannot."


def outage_table(found: OverTime, quantile: float) -> Table:
    """Before and during the failure of one replica, as the fleet is and with a spare."""
    without, spare = found.outage, found.outage_with_spare
    assert without is not None
    assert spare is not None

    def row(name: str, outage: Outage, cost: str) -> tuple[str, ...]:
        return (
            name,
            f"{format_percent(outage.before_met)} → {format_percent(outage.during_met)}",
            f"{format_duration(outage.before_ttft_s)} → {format_duration(outage.during_ttft_s)}",
            format_number(outage.lost_requests),
            "—" if np.isnan(outage.felt_s) else format_duration(outage.felt_s),
            cost,
        )

    replicas = counted(without.num_replicas, "replica")
    more = counted(spare.num_replicas, "replica")
    header = (
        "At the peak",
        "Meet the targets",
        f"p{quantile * 100:g} TTFT",
        "Requests begun anew",
        "Targets missed for",
        "USD a month",
    )
    rows = [
        row(f"{replicas}, one fails", without, "—"),
        row(f"{more}, one fails", spare, f"+{format_usd(found.spare_usd_per_month)}"),
    ]
    return table(header, rows)


def orders_table(plan: Plan, found: Growth, today: datetime.date) -> Table:
    """The next orders with their dates, and the bill from then on."""
    rows = []
    for order in found.orders[:MOST_ORDERS]:
        date = order.order_date(today)
        when = "now, late" if date < today else f"{date:%d %b %Y}"
        rows.append(
            (
                f"month {order.needed_month}",
                when,
                f"{order.num_gpus:,} × {plan.gpu.name}",
                format_usd(order.usd_per_gpu_hour),
                format_usd(found.months[order.needed_month].usd_per_month),
            )
        )
    return table(("Needed in", "Order by", "GPUs", "USD per GPU-hour", "Bill from then on, a month"), rows)
