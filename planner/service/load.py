"""Latency against load: the rate sweep, the knee, and the highest rate that still meets the targets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.inputs import ServiceLevel
from planner.service.capacity import More, capacity
from planner.service.metrics import ServingMetrics, measure, slo_attainment
from planner.service.replica import Replica, in_parallel
from planner.units import format_interval, format_number
from planner.workload import Requests, with_rate

LOAD_FRACTIONS = (0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.95, 1.0, 1.08)
#: of a replica that misses the targets at every load above: from an almost idle one on
FAINT_FRACTIONS = (0.002, 0.005, 0.01, 0.02)
BISECTIONS = 7
#: closer to its capacity a queue needs longer to settle than any run lasts
STEADY_SHARE = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """One replica at one offered rate."""

    rate_rps: float
    metrics: ServingMetrics
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """One replica over the whole range of load, on identical requests.

    `capacity_rps` is the throughput with a queue that never empties, `capacity_half_width_rps` the half-width of its
    95 % interval (NaN where none is known); `slo_rate_rps` the highest rate, up to 97 % of that, at which the targets
    hold (0 when they fail even when idle); `binding` what limits there. `slo_rate_is_least`: a fleet was simulated to
    hold so much, and how much more it holds was not tried.
    """

    points: tuple[LoadPoint, ...]
    capacity_rps: float
    slo_rate_rps: float
    binding: str
    capacity_half_width_rps: float = math.nan
    slo_rate_is_least: bool = False

    def replicas_to_carry(self, rate_rps: float, *, surely: bool = False) -> int:
        """Replicas that carry a rate when none is loaded beyond 97 % of its capacity, at least 1.

        Parameters
        ----------
        rate_rps : float
            Offered to all of them together. [req/s]
        surely : bool
            Of the capacity take the lower end of its interval.
        """
        off = self.capacity_half_width_rps if surely and math.isfinite(self.capacity_half_width_rps) else 0.0
        return replicas_needed(rate_rps, STEADY_SHARE * (self.capacity_rps - off)) or 1

    def capacity_in_words(self, num_replicas: int = 1) -> str:
        """The rate at which so many replicas saturate, with its uncertainty. [req/s]"""
        return format_interval(self.capacity_rps * num_replicas, self.capacity_half_width_rps * num_replicas)

    def slo_rate_in_words(self, num_replicas: int = 1) -> str:
        """The rate up to which so many replicas hold the targets. [req/s]"""
        return f"{'at least ' if self.slo_rate_is_least else ''}{format_number(self.slo_rate_rps * num_replicas)} req/s"

    def users(self, think_time_s: float) -> float:
        """Users of a closed loop that the replica may serve within the targets, by Little's law; 0 where none.

        Parameters
        ----------
        think_time_s : float
            Pause of a user between an answer and the next request. [s]

        Returns
        -------
        float
            A closed loop queues less than the open one of the sweep, so this is where to begin a search.
        """
        if self.slo_rate_rps <= 0 or not self.points:
            return 0.0
        rates = [point.rate_rps for point in self.points]
        times = [point.metrics.e2e_s.mean for point in self.points]
        return self.slo_rate_rps * (float(np.interp(self.slo_rate_rps, rates, times)) + think_time_s)


def meets(metrics: ServingMetrics, level: ServiceLevel) -> bool:
    """Whether enough requests meet every target: the quantile of the service level."""
    return metrics.slo_attainment >= level.quantile


def load_curve(replica: Replica, requests: Requests, level: ServiceLevel, more: More | None = None) -> LoadCurve:
    """Sweep the offered rate of one replica and find where the targets stop holding.

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity and step time.
    requests : Requests
        Open-loop workload; only its rate is changed, so that all points are paired.
    level : ServiceLevel
        Targets and their quantile.
    more : callable, optional
        As for `capacity`.

    Returns
    -------
    LoadCurve
    """
    top, half_width = capacity(replica, requests, more)
    if top <= 0:
        return LoadCurve(points=(), capacity_rps=0.0, slo_rate_rps=0.0, binding="no request fits")

    def swept(shares: tuple[float, ...]) -> list[LoadPoint]:
        return in_parallel(lambda share: _point(replica, requests, share * top, level), shares)

    # At its capacity a replica's queue grows without end, even if a short run still meets the targets.
    most, points = STEADY_SHARE * top, swept(LOAD_FRACTIONS)
    if not any(meets(point.metrics, level) for point in points):
        points = [*swept(FAINT_FRACTIONS), *points]  # whether load is to blame
    good = [point for point in points if point.rate_rps <= most and meets(point.metrics, level)]
    low = good[-1].rate_rps if good else 0.0
    bad = [point.rate_rps for point in points if point.rate_rps > low]
    high = min(bad[0], most) if bad else low
    binding = next((p.metrics.binding for p in points if p.rate_rps >= high and p.metrics.binding), "")
    if low == 0 or low >= high:
        slo_rate = low
    elif high == most and _holds(replica, requests, most, level):  # else bisection creeps up to it run by run
        slo_rate = most
    else:
        slo_rate = _highest(replica, requests, level, low, high)
    return LoadCurve(
        points=tuple(points),
        capacity_rps=top,
        capacity_half_width_rps=half_width,
        slo_rate_rps=slo_rate,
        binding=binding,
    )


def _highest(replica: Replica, requests: Requests, level: ServiceLevel, low: float, high: float) -> float:
    """Bisection between a rate that holds the targets and one that does not."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _holds(replica, requests, middle, level):
            low = middle
        else:
            high = middle
    return low


def _holds(replica: Replica, requests: Requests, rate_rps: float, level: ServiceLevel) -> bool:
    return slo_attainment(replica.run(with_rate(requests, rate_rps)), level) >= level.quantile


def _point(replica: Replica, requests: Requests, rate_rps: float, level: ServiceLevel) -> LoadPoint:
    result = replica.run(with_rate(requests, rate_rps))
    return LoadPoint(rate_rps=rate_rps, metrics=measure(result, level), verdict=result.verdict)


def replicas_needed(rate_rps: float, slo_rate_rps: float) -> int | None:
    """Replicas that carry `rate_rps` when each carries `slo_rate_rps`; None when none can."""
    if slo_rate_rps <= 0:
        return None
    return max(1, math.ceil(rate_rps / slo_rate_rps - 1e-9))
