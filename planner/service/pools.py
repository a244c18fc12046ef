"""Prefill and decode on separate replicas: how many of each, and what they make of the requests."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from planner.inputs import ServiceLevel
from planner.scenario import Scenario
from planner.service.capacity import capacity_rps
from planner.service.clients import RATES, first_requests
from planner.service.deployment import Fleet
from planner.service.fleet import ALONE_REQUESTS, ALONE_S, GROWTH, is_plain
from planner.service.load import LOAD_FRACTIONS, STEADY_SHARE, LoadCurve, LoadPoint, meets
from planner.service.metrics import ServingMetrics, measure, slo_attainment
from planner.service.replica import Replica, in_parallel
from planner.simulation import (
    DisaggregatedRun,
    Pool,
    SimulationResult,
    decode_part,
    prefill_part,
    simulate_disaggregated,
)
from planner.workload import Requests, as_open_loop, draw, with_rate

MOST_REQUESTS = 100_000  # of one simulated run, whatever the number of replicas
CURVE_REQUESTS = 20_000
MOST_TRIES = 24
BISECTIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """The replicas of each kind, and how they are used at the peak.

    `prefill_rps` and `decode_rps` are what one replica of each kind finishes at full throughput [req/s];
    `prefill_busy` and `decode_busy` the share of the time in which their engines work. A request's KV cache of
    `kv_bytes_per_token` bytes a token travels for `mean_transfer_s` on average.
    """

    num_prefill: int
    num_decode: int
    prefill_rps: float
    decode_rps: float
    prefill_busy: float
    decode_busy: float
    kv_bytes_per_token: float
    transfer_bytes_per_s: float
    mean_transfer_s: float

    @property
    def num_serving(self) -> int:
        """Replicas of both kinds."""
        return self.num_prefill + self.num_decode

    @property
    def capacity_rps(self) -> float:
        """Requests per second that both kinds together finish at most."""
        return min(self.num_prefill * self.prefill_rps, self.num_decode * self.decode_rps)

    def least(self, rate_rps: float) -> int:
        """Fewest replicas of both kinds together that carry a rate. [req/s]"""
        return sum(least_pools(rate_rps, self.prefill_rps, self.decode_rps))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledFleet:
    """A fleet of two kinds, seen as one: `fleet.curve` has the whole service's rates per replica."""

    fleet: Fleet
    pools: Pools


class _Service:
    """Both pools of one scenario, served with different numbers of replicas."""

    def __init__(
        self,
        scenario: Scenario,
        replica: Replica,
        requests: Requests,
        trace: Requests | None,
        kv_bytes_per_token: float,
        most_requests: int,
    ) -> None:
        self.scenario, self.replica, self.requests, self.trace = scenario, replica, requests, trace
        self.kv_bytes_per_token, self.most = kv_bytes_per_token, min(most_requests, MOST_REQUESTS)
        self.level = scenario.service_level
        self.rate = scenario.peak_rate_rps
        self.tried: dict[tuple[int, int], tuple[DisaggregatedRun, ServingMetrics]] = {}

    def run(self, requests: Requests, prefill: int, decode: int) -> DisaggregatedRun:
        each = self.replica
        pool = Pool(engine=each.engine, limits=each.limits, step_time=each.step_time, num_replicas=prefill)
        return simulate_disaggregated(
            requests,
            pool,
            dataclasses.replace(pool, num_replicas=decode),
            kv_bytes_per_token=self.kv_bytes_per_token,
            link_bytes_per_s=self.scenario.kv_transfer_bytes_per_s,
            router=self.scenario.router,
            seed=self.scenario.seed,
        )

    def drawn(self, count: int) -> Requests:
        """More requests of the scenario's kind, as an open loop."""
        count = min(count, self.most)
        if self.trace is not None or len(self.requests) >= count:
            return self.requests
        return draw(self.scenario.replace(num_requests=count))

    def at_peak(self, prefill: int, decode: int) -> tuple[DisaggregatedRun, ServingMetrics]:
        """The service at its peak, simulated once for each pair of numbers."""
        if (prefill, decode) not in self.tried:
            self.tried[prefill, decode] = self._at_peak(prefill, decode)
        return self.tried[prefill, decode]

    def _at_peak(self, prefill: int, decode: int) -> tuple[DisaggregatedRun, ServingMetrics]:
        """A trace or a burst as it is; of a steady service as many requests as tell whether the targets hold."""
        steady = self.trace is None and self.scenario.is_open_loop
        count = len(self.requests) * (prefill + decode)
        while True:
            run = self.run(with_rate(self.drawn(count), self.rate) if steady else self.requests, prefill, decode)
            metrics = measured(run, self.level, prefill, decode)
            told = is_plain(metrics, self.scenario) or metrics.verdict == "overloaded"
            if not steady or told or GROWTH * count > self.most:
                return run, metrics
            count *= GROWTH

    def holds(self, prefill: int, decode: int) -> bool:
        return meets(self.at_peak(prefill, decode)[1], self.level)

    def short_of(self, prefill: int, decode: int) -> str:
        """The kind of which one more replica helps: prefill sets the first token, decode all others."""
        service = self.at_peak(prefill, decode)[0].service
        first = ServiceLevel(
            ttft_s=self.level.ttft_s, tpot_s=None, quantile=self.level.quantile, window=self.level.window
        )
        others = dataclasses.replace(self.level, ttft_s=None, e2e_s=None)
        return "prefill" if slo_attainment(service, first) <= slo_attainment(service, others) else "decode"


def deploy_pools(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    kv_bytes_per_token: float,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
    *,
    curve: LoadCurve | None = None,
) -> PooledFleet:
    """Find how many replicas of each kind the peak needs, and serve the requests with them.

    The search begins with what each kind needs at full throughput, adds replicas of the kind that misses its target
    (first token: prefill; all others: decode) until the targets hold, and then takes away what is not needed.

    Parameters
    ----------
    scenario : Scenario
        Traffic, targets, and the numbers of replicas where the user fixes them.
    replica : Replica
        What each replica is; both kinds are alike.
    requests : Requests
        The drawn requests.
    kv_bytes_per_token : float
        KV cache of one token over all GPUs of a replica. [bytes]
    trace : Requests, optional
        A replayed trace, served at its own times.
    most_requests : int
        Simulated for each pair of numbers that is tried.
    curve : LoadCurve, optional
        The sweep of these numbers of replicas, where the caller has it.

    Returns
    -------
    PooledFleet
    """
    service = _Service(scenario, replica, requests, trace, kv_bytes_per_token, most_requests)
    prefill_rps, decode_rps = pool_rates(replica, requests)
    prefill, decode, needed = _numbers(service, prefill_rps, decode_rps)
    run, metrics = service.at_peak(prefill, decode)
    serving = prefill + decode
    pools = Pools(
        num_prefill=prefill,
        num_decode=decode,
        prefill_rps=prefill_rps,
        decode_rps=decode_rps,
        prefill_busy=_busy(run.prefill, prefill),
        decode_busy=_busy(run.decode, decode) if run.decode is not None else 0.0,
        kv_bytes_per_token=kv_bytes_per_token,
        transfer_bytes_per_s=scenario.kv_transfer_bytes_per_s,
        mean_transfer_s=run.mean_transfer_s,
    )
    fleet = Fleet(
        curve=curve or _curve(service, pools, met=needed is not None),
        replicas_for_slo=needed,
        num_replicas=serving + (0 if scenario.asks == "take" else 2 * scenario.spare_replicas),  # of each kind
        num_serving=serving,
        result=run.service,
        metrics=metrics,
    )
    return PooledFleet(fleet=fleet, pools=pools)


def serve_pools(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    kv_bytes_per_token: float,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
) -> ServingMetrics:
    """What the given numbers of replicas make of the peak; parameters as of `deploy_pools`."""
    service = _Service(scenario, replica, requests, trace, kv_bytes_per_token, most_requests)
    prefill, decode = scenario.fixed_pools
    return service.at_peak(prefill or 1, decode or 1)[1]


def serve_lone(scenario: Scenario, replica: Replica, kv_bytes_per_token: float, requests: Requests) -> SimulationResult:
    """A prefill and a decode replica serve these requests at their own times."""
    return _Service(scenario, replica, requests, None, kv_bytes_per_token, len(requests)).run(requests, 1, 1).service


def pool_rates(replica: Replica, requests: Requests) -> tuple[float, float]:
    """Requests per second that one prefill and one decode replica finish at full throughput. [req/s]"""
    spread = as_open_loop(requests)
    answers = decode_part(spread)
    prefill_rps = capacity_rps(replica, prefill_part(spread))
    decode_rps = capacity_rps(replica, answers) * len(spread) / len(answers) if answers is not None else math.inf
    return prefill_rps, decode_rps


def least_pools(rate_rps: float, prefill_rps: float, decode_rps: float) -> tuple[int, int]:
    """Fewest prefill and decode replicas that carry a rate at full throughput, which a short run does not show."""
    prefill = max(1, math.ceil(rate_rps / (STEADY_SHARE * prefill_rps)) if prefill_rps else 1)
    return prefill, max(1, math.ceil(rate_rps / (STEADY_SHARE * decode_rps)) if decode_rps else 1)


def _numbers(service: _Service, prefill_rps: float, decode_rps: float) -> tuple[int, int, int | None]:
    """Replicas of each kind, and how many the targets need; None when no number that was tried meets them."""
    fixed_prefill, fixed_decode = service.scenario.fixed_pools
    rate = service.rate if service.scenario.is_open_loop else 0.0
    least_prefill, least_decode = least_pools(rate, prefill_rps, decode_rps)
    prefill, decode = fixed_prefill or least_prefill, fixed_decode or least_decode
    can_grow = {"prefill": fixed_prefill is None, "decode": fixed_decode is None}
    if not _idle_holds(service):
        return prefill, decode, None
    for _ in range(MOST_TRIES):
        if service.holds(prefill, decode):
            break
        kind = service.short_of(prefill, decode)
        if not can_grow[kind]:
            return prefill, decode, None
        if kind == "prefill":
            prefill += max(1, prefill // 8)
        else:
            decode += max(1, decode // 8)
    if not service.holds(prefill, decode):
        return prefill, decode, None
    while can_grow["prefill"] and prefill > least_prefill and service.holds(prefill - 1, decode):
        prefill -= 1
    while can_grow["decode"] and decode > least_decode and service.holds(prefill, decode - 1):
        decode -= 1
    return prefill, decode, prefill + decode


def _idle_holds(service: _Service) -> bool:
    """Whether requests that never meet each other hold the targets."""
    few = first_requests(service.requests, ALONE_REQUESTS)
    apart = dataclasses.replace(few, arrival_s=np.arange(len(few), dtype=np.float64) * ALONE_S)
    return slo_attainment(service.run(apart, 1, 1).service, service.level) >= service.level.quantile


def measured(run: DisaggregatedRun, level: ServiceLevel, prefill: int, decode: int) -> ServingMetrics:
    """What the users of both pools see; busy is the mean over all replicas."""
    busy = prefill * _busy(run.prefill, prefill) + (decode * _busy(run.decode, decode) if run.decode else 0.0)
    return dataclasses.replace(measure(run.service, level), busy_utilization=busy / (prefill + decode))


def _busy(result: SimulationResult, replicas: int) -> float:
    return min(1.0, result.busy_s / max(result.duration_s, 1e-300) / replicas)


def _curve(service: _Service, pools: Pools, *, met: bool) -> LoadCurve:
    """The whole service against load, all rates divided by its replicas."""
    count, top = pools.num_serving, pools.capacity_rps
    if not 0 < top < math.inf:
        return LoadCurve(points=(), capacity_rps=0.0, slo_rate_rps=0.0, binding="no request fits")
    requests = as_open_loop(service.drawn(CURVE_REQUESTS))

    def at(rate: float) -> tuple[float, ServingMetrics, str]:
        run = service.run(with_rate(requests, rate), pools.num_prefill, pools.num_decode)
        return rate, measured(run, service.level, pools.num_prefill, pools.num_decode), run.service.verdict

    found = in_parallel(at, [share * top for share in LOAD_FRACTIONS])
    good = [rate for rate, metrics, _ in found if rate <= STEADY_SHARE * top and meets(metrics, service.level)]
    low = max(good, default=0.0)
    high = min((rate for rate, *_ in found if rate > low), default=low)
    high = min(high, STEADY_SHARE * top)
    for _ in range(BISECTIONS if low and high > low else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if meets(at(middle)[1], service.level) else (low, middle)
    if met and service.scenario.is_open_loop:
        low = max(low, service.rate)
    points = tuple(
        LoadPoint(
            rate_rps=rate / count,
            metrics=dataclasses.replace(metrics, **{name: getattr(metrics, name) / count for name in RATES}),
            verdict=verdict,
        )
        for rate, metrics, verdict in found
    )
    least = "prefill" if pools.num_prefill * pools.prefill_rps < pools.num_decode * pools.decode_rps else "decode"
    return LoadCurve(
        points=points, capacity_rps=top / count, slo_rate_rps=min(low, top) / count, binding=f"{least} replicas"
    )
