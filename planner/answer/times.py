"""What a finished plan costs and does over 24 hours, in a failure and over 24 months."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.answer.outcome import Plan, serving_replicas
from planner.answer.planning import replica_of
from planner.catalog import engine_start_s
from planner.cost import Growth, Order, growth
from planner.errors import Infeasible
from planner.service import FIXED, Day, DayPolicy, Outage, Running, serve_day, serve_outage
from planner.units import DAYS_PER_MONTH, counted, format_duration, format_number, format_percent, format_usd

FULL_SHARE = 0.8  # of the rate within the targets at which the autoscaler aims
MOST_ORDERS = 8  # orders listed
KEPT_KINDS = {"owned": "Owned", "reserved": "Reserved"}  # kinds of GPUs that cannot be given back for some hours


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """How long a replica takes to start, and what that rests on. [s]"""

    seconds: float
    is_estimate: bool
    source: str


def start_up(done: Plan) -> StartUp:
    """The start-up time of one replica: as entered, or the engine's own start plus weights ÷ disk speed."""
    entered = done.scenario.startup_s
    if entered is not None:
        return StartUp(seconds=entered, is_estimate=False, source="entered by hand")
    own_s, source = engine_start_s(done.engine.family)
    size = done.memory.weights_bytes * done.scenario.parallelism.gpus_per_replica
    read_s = size / (done.scenario.disk_gb_s * 1e9)
    told = f"{format_number(size / 1e9)} GB of weights at {format_number(done.scenario.disk_gb_s)} GB/s"
    return StartUp(
        seconds=own_s + read_s,
        is_estimate=True,
        source=f"estimate: {told} take {format_duration(read_s)}, the engine's own start {format_duration(own_s)} "
        f"({source})",
    )


def running(done: Plan) -> Running | None:
    """The service as its days and failures depend on it; None where it serves nothing or has no rate.

    Parameters
    ----------
    done : Plan
        A closed loop or a burst has no rate that could change from hour to hour; prefill and decode on separate
        replicas are not simulated over time.
    """
    curve, metrics = done.curve, done.metrics
    if done.pools is not None:  # replicas of two kinds would start and fail
        return None
    if curve is None or metrics is None or not done.scenario.is_open_loop or curve.capacity_rps <= 0:
        return None
    each = curve.slo_rate_rps or curve.capacity_rps * FULL_SHARE
    rates = [point.rate_rps for point in curve.points]
    times = [point.metrics.e2e_s.mean for point in curve.points]
    aim = FULL_SHARE * each
    served_s = float(np.interp(aim, rates, times))
    mean_s = metrics.e2e_s.mean
    return Running(
        scenario=done.scenario.without("prices"),
        replica=replica_of(done),
        num_replicas=done.num_replicas,
        num_serving=serving_replicas(done),
        rate_each_rps=each,
        in_flight_each=max(0.1, aim * served_s) if math.isfinite(served_s) else 1.0,
        startup_s=start_up(done).seconds,
        served_s=mean_s if math.isfinite(mean_s) else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCost:
    """What one policy of a day costs, and what it saves against the fixed fleet. [USD/month]"""

    policy: DayPolicy
    usd_per_month: float
    saved_usd_per_month: float


def day_costs(done: Plan, day: Day) -> tuple[DayCost, ...]:
    """The bill of each policy: its replica-hours and the spares', every day of the month.

    The price is that of the plan, so it assumes GPUs that can be given back by the minute; reserved and owned ones
    cannot.
    """
    assert done.cost is not None
    spare = done.num_replicas - serving_replicas(done)
    each = done.cost.usd_per_gpu_hour * done.scenario.parallelism.gpus_per_replica
    month = {item.name: (item.replica_hours + 24 * spare) * each * DAYS_PER_MONTH for item in day.policies}
    return tuple(
        DayCost(policy=item, usd_per_month=month[item.name], saved_usd_per_month=month[FIXED] - month[item.name])
        for item in day.policies
    )


def growth_of(done: Plan) -> Growth | None:
    """The 24 months to come; None where the plan serves nothing or no number of replicas meets the targets."""
    cost, scenario = done.cost, done.scenario
    needed = done.replicas_for_slo
    if cost is None or needed is None:
        return None
    serving, rate = serving_replicas(done), scenario.peak_rate_rps
    each = done.curve.slo_rate_rps if done.curve is not None and scenario.is_open_loop else 0.0
    if not scenario.is_open_loop:
        rate, each = 1.0, 1.0 / needed  # as many users or requests per replica as now
    if each <= 0:
        each = rate / needed
    return growth(
        rate_rps=rate,
        rate_each_rps=each,
        serving=serving,
        spare=done.num_replicas - serving,
        gpus_per_replica=scenario.parallelism.gpus_per_replica,
        usd_per_gpu_hour=cost.usd_per_gpu_hour,
        hours_per_month=scenario.hours_per_month,
        growth_per_month=scenario.growth_per_month,
        lead_time_weeks=scenario.lead_time_weeks,
        price_trend_per_year=scenario.price_trend_per_year,
        kinds=(1,) if done.pools is None else (done.pools.num_prefill, done.pools.num_decode),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """24 hours, a failure and 24 months of one plan. None: the traffic has no rate, or nothing is served."""

    start_up: StartUp
    day: Day | None
    day_costs: tuple[DayCost, ...]
    outage: Outage | None
    outage_with_spare: Outage | None
    spare_usd_per_month: float
    growth: Growth | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """What of a plan over time has to be simulated."""

    day: Day
    outage: Outage
    outage_with_spare: Outage


def simulate_time(service: Running) -> Simulated:
    """Simulate a day of a service, and the failure of one replica."""
    outage, with_spare = serve_outage(service)
    return Simulated(day=serve_day(service), outage=outage, outage_with_spare=with_spare)


def over_time(done: Plan, simulated: Simulated | None = None) -> OverTime:
    """Simulate a day and a failure of a plan, and work out its months.

    Parameters
    ----------
    done : Plan
        As `plan` gives it.
    simulated : Simulated, optional
        The day and the failure, where they are known already: prices do not change them.

    Raises
    ------
    Infeasible
        When the engine does not start.
    """
    if done.cost is None:
        raise Infeasible(done.memory.refusal, done.memory.remedies)
    service = running(done)
    if simulated is None and service is not None:
        simulated = simulate_time(service)
    return OverTime(
        start_up=start_up(done),
        day=simulated.day if simulated is not None else None,
        day_costs=day_costs(done, simulated.day) if simulated is not None else (),
        outage=simulated.outage if simulated is not None else None,
        outage_with_spare=simulated.outage_with_spare if simulated is not None else None,
        spare_usd_per_month=spare_usd_per_month(done),
        growth=growth_of(done),
    )


def spare_usd_per_month(done: Plan) -> float:
    """What one more replica costs. [USD/month]"""
    assert done.cost is not None
    return done.cost.usd_per_gpu_hour * done.scenario.parallelism.gpus_per_replica * done.scenario.hours_per_month


def day_sentence(costs: tuple[DayCost, ...], quantile: float, price_kind: str = "ondemand") -> str:
    """What following the day saves, and which of the policies keep the targets."""
    fixed = costs[0]
    if price_kind in KEPT_KINDS:
        least = min(item.policy.replica_hours for item in costs)
        free = format_percent(max(0.0, 1 - least / fixed.policy.replica_hours))
        return (
            f"{KEPT_KINDS[price_kind]} GPUs are paid for all day, {format_usd(fixed.usd_per_month)} a month; following "
            f"the load would free {free} of their replica-hours for other work"
        )
    best = min((item for item in costs if item.policy.attainment >= quantile), key=_bill, default=None)
    if best is None:
        return "No policy keeps the targets over this day"
    if best.policy.name == FIXED or best.saved_usd_per_month < 0.005 * fixed.usd_per_month:
        return f"The fixed fleet is the cheapest that keeps the targets: {format_usd(fixed.usd_per_month)} a month"
    saved = format_percent(best.saved_usd_per_month / fixed.usd_per_month) if fixed.usd_per_month else "nothing"
    return (
        f"A fleet that is {best.policy.name} costs {format_usd(best.usd_per_month)} a month, {saved} less than the "
        f"fixed one, and {format_percent(best.policy.attainment)} of requests meet the targets"
    )


def _bill(item: DayCost) -> float:
    return item.usd_per_month


def outage_sentence(outage: Outage, quantile: float) -> str:
    """What users see when one replica fails."""
    if outage.num_replicas == 1:
        return (
            f"The only replica is down for {format_duration(outage.recovery_s)}: every request of that time waits, "
            f"{counted(outage.requests_during, 'request')} in all"
        )
    seen = f"p{quantile * 100:g} first token {format_duration(outage.during_ttft_s)}"
    keeps = "the targets still hold" if outage.during_met >= quantile else "the targets do not hold"
    return (
        f"With one of {outage.num_replicas:,} replicas down for {format_duration(outage.recovery_s)}, {keeps}: "
        f"{format_percent(outage.during_met)} of requests meet them, {seen}"
    )


def growth_sentence(found: Growth, growth_per_month: float) -> str:
    """When the fleet runs out."""
    rate = f"{'+' if growth_per_month >= 0 else '−'}{format_percent(abs(growth_per_month))} a month"
    if found.runs_out_month is None:
        return f"At {rate} this fleet lasts 24 months and longer"
    if found.runs_out_month == 0:
        return "This fleet does not hold today's peak within the targets"
    order = found.orders[0]
    when = "now: the lead time is longer than that" if order.order_month < 0 else f"by month {order.order_month:.1f}"
    return (
        f"At {rate} this fleet runs out in month {found.runs_out_month}; order {counted(order.num_gpus, 'GPU')} {when}"
    )


def _ordered(order: Order) -> str:
    return "ordered now, late," if order.order_month < 0 else f"ordered by month {order.order_month:.1f}"


def orders_left_out(found: Growth) -> str:
    """What the list of orders leaves out; empty where it holds all of them."""
    later = found.orders[MOST_ORDERS:]
    if not later:
        return ""
    gpus = sum(order.num_gpus for order in later)
    return f"{counted(len(later), 'later order')} with {counted(gpus, 'GPU')} in all, to month {later[-1].needed_month}"


def time_text(done: Plan, found: OverTime) -> str:
    """A plan over time as text for the terminal."""
    scenario = done.scenario
    quantile = scenario.target_quantile
    lines = [f"Start of a replica: {format_duration(found.start_up.seconds)} ({found.start_up.source})", ""]
    if found.day is None:
        why = "a closed loop or a burst has no rate that changes from hour to hour"
        if done.pools is not None:
            why = "not worked out for prefill and decode on separate replicas"
        lines.append(f"24 hours: {why}.")
    else:
        lines.append(f"24 hours: {day_sentence(found.day_costs, quantile, scenario.price_kind)}.")
        lines += [
            f"  {item.policy.name:12} {format_number(item.policy.replica_hours):>8} replica-hours a day, at most "
            f"{counted(item.policy.most_replicas, 'replica')}, {format_percent(item.policy.attainment)} meet the "
            f"targets ({format_percent(float(np.nanmin(item.policy.met)))} in the worst hour), "
            f"{format_usd(item.usd_per_month)} a month"
            for item in found.day_costs
        ]
    if found.outage is not None and found.outage_with_spare is not None:
        lines += ["", f"One replica fails: {outage_sentence(found.outage, quantile)}."]
        lines.append(
            f"  With a spare ({format_usd(found.spare_usd_per_month)} a month): "
            f"{format_percent(found.outage_with_spare.during_met)} meet the targets meanwhile."
        )
    lines += ["", "24 months: no number of replicas meets the targets."]
    if found.growth is not None:
        lines[-1] = f"24 months: {growth_sentence(found.growth, scenario.growth_per_month)}."
        lines += [
            f"  month {order.needed_month:2}: {counted(order.num_gpus, 'GPU')} more, {_ordered(order)} at "
            f"{format_usd(order.usd_per_gpu_hour)} per GPU-hour"
            for order in found.growth.orders[:MOST_ORDERS]
        ]
        if len(found.growth.orders) > MOST_ORDERS:
            lines.append(f"  {orders_left_out(found.growth)}")
    return "\n".join(lines)
