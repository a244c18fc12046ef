"""Latency against load: the rate sweep, the knee, and the highest rate that still meets the targets."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from planner.engine import EngineSettings
from planner.metrics import ServingMetrics, measure
from planner.simulation import simulate
from planner.simulation.api_server import behind_server, server_s, stretch
from planner.simulation.records import Limits, Requests, SimulationResult
from planner.simulation.workload import with_rate
from planner.step_time import StepTimeTable
from planner.traffic import ServiceLevel

LOAD_FRACTIONS = (0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.95, 1.0, 1.08)
IDLE_FRACTION = 0.002
BISECTIONS = 6
#: closer to its capacity a queue needs longer to settle than any run lasts
STEADY_SHARE = 0.97
#: how many times over the engine is filled to find its capacity, and how many of them settle first
FILLINGS, FILLINGS_LEFT_OUT = 12, 4
Given = TypeVar("Given")
Found = TypeVar("Found")


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="simulate")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked worker inherits the pool without its threads


def in_parallel(function: Callable[[Given], Found], items: Iterable[Given]) -> list[Found]:
    """Apply a function to each item on all cores, in order; the compiled simulator runs beside others."""
    return list(_threads().map(function, items))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """One replica at one offered rate."""

    rate_rps: float
    metrics: ServingMetrics
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """One replica over the whole range of load, on identical requests.

    `capacity_rps` is the throughput with a queue that never empties; `slo_rate_rps` the highest rate, up to
    97 % of that, at which the targets hold (0 when they fail even when idle); `binding` what limits there.
    """

    points: tuple[LoadPoint, ...]
    capacity_rps: float
    slo_rate_rps: float
    binding: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """What the simulator needs of one replica: scheduler, capacity and step time."""

    engine: EngineSettings
    limits: Limits
    step_time: StepTimeTable

    def run(self, requests: Requests, *, timeline: bool = False) -> SimulationResult:
        """Serve the requests on this replica."""
        result = simulate(requests, self.engine, self.limits, self.step_time, timeline=timeline)
        return with_windows(behind_server(result, self.step_time), self.limits)


def with_windows(result: SimulationResult, limits: Limits, *, num_replicas: int = 1) -> SimulationResult:
    """Count the blocks of windows and states as written: each running sequence fills its own.

    The simulator counts a token once, in the blocks of the layers that grow with the sequence.
    """
    if not limits.fixed_blocks_per_sequence or not limits.num_kv_blocks:
        return result
    fixed = result.mean_running / num_replicas * limits.fixed_blocks_per_sequence / limits.num_kv_blocks
    written = min(result.mean_kv_used_fraction, result.mean_kv_written_fraction + fixed)
    return dataclasses.replace(result, mean_kv_written_fraction=written)


def at_once(requests: Requests) -> Requests:
    """The same requests, all queued at time zero, which shows the capacity."""
    return dataclasses.replace(requests, arrival_s=np.zeros(len(requests)), closed_loop_users=0)


def repeated(requests: Requests, count: int) -> Requests:
    """At least `count` requests: the same ones over and over, the gaps between them included."""
    times = -(-count // len(requests))
    if times <= 1:
        return requests
    arrays: dict[str, Any] = {
        item.name: np.tile(getattr(requests, item.name), times)
        for item in dataclasses.fields(requests)
        if isinstance(getattr(requests, item.name), np.ndarray)
    }
    one_round_s = float(requests.arrival_s[-1]) * len(requests) / max(1, len(requests) - 1)
    arrays["arrival_s"] += np.repeat(np.arange(times) * one_round_s, len(requests))
    return dataclasses.replace(requests, **arrays)


def capacity_rps(replica: Replica, requests: Requests) -> float:
    """Requests per second that one replica finishes while its queue never empties.

    All requests wait from the start. Until the engine has been filled a few times prompts and answers are
    out of step, and once the last request is taken up only answers are left: completions are counted
    between the two. The requests are repeated until that span holds several fillings. The API server in
    front then slows what it cannot keep up with.

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity and step time.
    requests : Requests
        The workload; its arrival times do not matter.

    Returns
    -------
    float
        0 when no request of the workload fits.
    """
    engine = replica.engine.with_patient_clients()
    result = simulate(at_once(requests), engine, replica.limits, replica.step_time)
    if len(requests) < FILLINGS * result.peak_running:
        more = at_once(repeated(requests, FILLINGS * result.peak_running))
        result = simulate(more, engine, replica.limits, replica.step_time)
    finished = np.sort(result.finish_s[np.isfinite(result.finish_s)])
    if len(finished) < 2:
        return 0.0
    high = max(1, len(finished) - 1 - result.peak_running)
    low = min(FILLINGS_LEFT_OUT * result.peak_running, high - 1)
    span = finished[high] - finished[low]
    rate = float((high - low) / span) if span > 0 else len(finished) / max(result.duration_s, 1e-9)
    return rate / stretch(rate * server_s(replica.step_time, float(requests.output_tokens.mean())))


def meets(metrics: ServingMetrics, level: ServiceLevel) -> bool:
    """Whether enough requests meet every target: the quantile of the service level."""
    return metrics.slo_attainment >= level.quantile


def load_curve(replica: Replica, requests: Requests, level: ServiceLevel) -> LoadCurve:
    """Sweep the offered rate of one replica and find where the targets stop holding.

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity and step time.
    requests : Requests
        Open-loop workload; only its rate is changed, so that all points are paired.
    level : ServiceLevel
        Targets and their quantile.

    Returns
    -------
    LoadCurve
    """
    top = capacity_rps(replica, requests)
    if top <= 0:
        return LoadCurve(points=(), capacity_rps=0.0, slo_rate_rps=0.0, binding="no request fits")
    points = in_parallel(lambda share: _point(replica, requests, share * top, level), LOAD_FRACTIONS)
    # At its capacity a replica falls behind for ever, however well the requests of a short run fare.
    most = STEADY_SHARE * top
    good = [point for point in points if point.rate_rps <= most and meets(point.metrics, level)]
    low = good[-1].rate_rps if good else 0.0
    bad = [point.rate_rps for point in points if point.rate_rps > low]
    high = min(bad[0], most) if bad else low
    binding = next((p.metrics.binding for p in points if p.rate_rps >= high and p.metrics.binding), "")
    if not good:
        # Missed at the lowest point of the sweep: a replica that is all but idle tells whether load is to blame.
        idle = _point(replica, requests, IDLE_FRACTION * top, level)
        if meets(idle.metrics, level):
            good, low = [idle], idle.rate_rps
    if good and low < high:
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if meets(_point(replica, requests, middle, level).metrics, level):
                low = middle
            else:
                high = middle
    return LoadCurve(points=tuple(points), capacity_rps=top, slo_rate_rps=low, binding=binding)


def _point(replica: Replica, requests: Requests, rate_rps: float, level: ServiceLevel) -> LoadPoint:
    result = replica.run(with_rate(requests, rate_rps))
    return LoadPoint(rate_rps=rate_rps, metrics=measure(result, level), verdict=result.verdict)


def replicas_needed(rate_rps: float, slo_rate_rps: float) -> int | None:
    """Replicas that carry `rate_rps` when each carries `slo_rate_rps`; None when none can."""
    if slo_rate_rps <= 0:
        return None
    return max(1, math.ceil(rate_rps / slo_rate_rps - 1e-9))
