"""24 months: when a fleet runs out, what to order when, and what that costs."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass

import numpy as np

from planner.cost.break_even import serving_replicas
from planner.errors import require_int, require_number

MONTHS = 24
WEEKS_PER_MONTH = 365.25 / 12 / 7
DAYS_PER_MONTH = 365.25 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """One month from now: the peak at its end, what it needs, what is there when ordered in time, and the bill."""

    month: int
    rate_rps: float
    replicas_needed: int
    replicas: int
    usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Replicas that are needed in a month, and when they have to be ordered; negative: before now."""

    needed_month: int
    order_month: float
    replicas: int
    num_gpus: int
    usd_per_gpu_hour: float

    def order_date(self, today: datetime.date) -> datetime.date:
        """The last day on which this order comes in time."""
        return today + datetime.timedelta(days=math.floor(self.order_month * DAYS_PER_MONTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The months to come. `runs_out_month` is the first one that this fleet does not hold; None within 24 months."""

    months: tuple[Month, ...]
    orders: tuple[Order, ...]
    runs_out_month: int | None
    first_order_is_late: bool


def growth(
    *,
    rate_rps: float,
    rate_each_rps: float,
    serving: int,
    spare: int,
    gpus_per_replica: int,
    usd_per_gpu_hour: float,
    hours_per_month: float,
    growth_per_month: float,
    lead_time_weeks: float,
    price_trend_per_year: float,
    kinds: tuple[int, ...] = (1,),
) -> Growth:
    """How long a fleet lasts when the traffic grows, and what to order when.

    Parameters
    ----------
    rate_rps : float
        Peak rate now. [req/s]
    rate_each_rps : float
        What one replica holds within the targets. [req/s]
    serving, spare : int
        Replicas bought: those that share the load, and those kept for failures.
    gpus_per_replica : int
        GPUs of one replica.
    usd_per_gpu_hour : float
        Today's price; what is ordered later costs the price of the month in which it is ordered. [USD/h]
    hours_per_month : float
        Hours paid. [h]
    growth_per_month : float
        0.05 is 5 % more each month.
    lead_time_weeks : float
        From the order until the replicas serve. [weeks]
    price_trend_per_year : float
        Change of the price in a year; -0.2 is 20 % less.
    kinds : tuple of int
        Replicas of each kind, where prefill and decode are apart: each kind grows by its own share of them.
    """
    require_number("rate_rps", rate_rps, above=0)
    require_number("rate_each_rps", rate_each_rps, above=0)
    require_int("serving", serving)
    require_number("growth_per_month", growth_per_month, above=-1)
    require_number("price_trend_per_year", price_trend_per_year, above=-1)
    have, bill = serving, (serving + spare) * gpus_per_replica * usd_per_gpu_hour * hours_per_month
    months, orders = [], []
    for month in range(MONTHS + 1):
        rate = rate_rps * (1 + growth_per_month) ** month
        needed = int(serving_replicas(np.array(rate / (rate_each_rps * sum(kinds))), kinds))
        if needed > have:
            begun = month - lead_time_weeks / WEEKS_PER_MONTH
            order = Order(
                needed_month=month,
                order_month=begun,
                replicas=needed - have,
                num_gpus=(needed - have) * gpus_per_replica,
                usd_per_gpu_hour=usd_per_gpu_hour * (1 + price_trend_per_year) ** (max(0.0, begun) / 12),
            )
            orders.append(order)
            bill += order.num_gpus * order.usd_per_gpu_hour * hours_per_month
            have = needed
        months.append(
            Month(month=month, rate_rps=rate, replicas_needed=needed, replicas=have + spare, usd_per_month=bill)
        )
    return Growth(
        months=tuple(months),
        orders=tuple(orders),
        runs_out_month=orders[0].needed_month if orders else None,
        first_order_is_late=bool(orders) and orders[0].order_month < 0,
    )
