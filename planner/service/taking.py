"""The most load that a given number of replicas takes within the targets, and what gives first above it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.inputs import ServiceLevel
from planner.scenario import MOST_RPS, Scenario
from planner.service.deployment import Fleet, curve_of, deploy
from planner.service.fleet import MOST_REQUESTS, Run, is_plain, run_fleet
from planner.service.load import STEADY_SHARE, LoadCurve, meets
from planner.service.metrics import ServingMetrics, slo_attainment
from planner.service.pools import Pools, deploy_pools, serve_pools
from planner.service.replica import Replica
from planner.simulation import SimulationResult
from planner.workload import Requests, draw, with_rate

PRECISION = 0.02  # of the load found
LESS = 0.98  # of a load that a longer run finds to miss
MOST_USERS, MOST_AT_ONCE = 100_000, 200_000
THROUGHPUT = "throughput"
LOST = "rejected or abandoned requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """The most load that a fleet takes within the targets.

    `load` is in requests per second of an open loop, users of a closed loop, requests of a burst: 0 where even the
    least misses, infinite where nothing limits it. `gives_first` is the target that more load misses first (TTFT, TPOT,
    ITL, E2E), "throughput" or lost requests; `held_up_by` what requests then wait for, as the simulator names it.
    """

    load: float
    gives_first: str
    held_up_by: str
    curve: LoadCurve


def most_load(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
) -> Most:
    """Find the most load at which the scenario's replicas hold its targets.

    The load curve of one replica says where to begin; the fleet's own simulation has the last word.

    Parameters
    ----------
    scenario : Scenario
        Number of replicas, targets, and the kind of arrivals; how much traffic it states does not matter.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests, or the trace.
    trace : Requests, optional
        A recorded trace, replayed faster or slower.
    most_requests : int
        Simulated at most for one load.

    Returns
    -------
    Most
        Within 2 % below the highest load that the simulation finds to hold.
    """
    curve = curve_of(scenario, replica, requests, trace, most_requests)
    replicas = scenario.fixed_replicas or 1

    def run(load: float) -> ServingMetrics:
        return _run(scenario, replica, requests, trace, load, most_requests).metrics

    return _most(scenario, curve, _begin(scenario, curve, replica, replicas), run)


def _most(
    scenario: Scenario, curve: LoadCurve, begin: tuple[float, float], run: Callable[[float], ServingMetrics]
) -> Most:
    """The most load of a fleet: `begin` are a load to begin with and one that is certainly the most."""
    guess, most = begin
    if guess <= 0:
        return Most(load=0.0, gives_first=_missed_idle(scenario, curve), held_up_by=curve.binding, curve=curve)
    if not scenario.targets and scenario.arrivals != "once":
        return Most(load=guess, gives_first=THROUGHPUT, held_up_by=curve.binding, curve=curve)
    if not scenario.targets:
        return Most(load=math.inf, gives_first="", held_up_by="", curve=curve)
    level = scenario.service_level
    runs: dict[float, ServingMetrics] = {}

    def holds(load: float) -> bool:
        runs[load] = found = run(load)
        return meets(found, level) and found.verdict != "overloaded"

    whole = not scenario.is_open_loop
    low, high = _bracket(holds, guess, most, whole=whole)
    while high - low > max(PRECISION * high, 1.0 if whole else 0.0) and low > 0:
        middle = float(int((low + high) / 2)) if whole else (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    over = runs[high]
    gives = THROUGHPUT if low >= most else _gives(scenario, over)
    return Most(load=low, gives_first=gives, held_up_by=over.binding, curve=curve)


class Took(NamedTuple):
    """A fleet at the most load that it takes: the scenario with that load, its requests, and what they make of it."""

    scenario: Scenario
    requests: Requests
    fleet: Fleet
    most: Most


def deploy_most(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
) -> Took:
    """The scenario's replicas at the most load that holds its targets; parameters as of `most_load`.

    Returns
    -------
    Took
        Where no load holds them, or nothing limits it, the scenario and its requests as they were.
    """
    most = most_load(scenario, replica, requests, trace, most_requests)

    def serve(there: Scenario, given: Requests, faster: Requests | None) -> Fleet:
        return deploy(there, replica, given, faster, most_requests, curve=most.curve)

    return _at_most(scenario, requests, trace, most, serve)


def _at_most(
    scenario: Scenario,
    requests: Requests,
    trace: Requests | None,
    most: Most,
    serve: Callable[[Scenario, Requests, Requests | None], Fleet],
) -> Took:
    """The fleet at the most load; a little less where its own, longer run misses there."""
    load = most.load
    while True:
        there = scenario.at_load(load) if 0 < load < math.inf else scenario
        given = requests if scenario.is_open_loop or trace is not None else draw(there)
        faster = with_rate(trace, load) if trace is not None and scenario.is_open_loop and load > 0 else trace
        fleet = serve(there, given, faster)
        if fleet.holds(there) or not 0 < load < math.inf:
            break
        fewer = load * LESS if scenario.is_open_loop else load - max(1, round(load * (1 - LESS)))
        if fewer < min(1.0, most.load / 2):
            break
        load = fewer  # the longer run has the last word
    found = dataclasses.replace(most, load=load if fleet.holds(there) else 0.0)
    if scenario.is_open_loop and found.load > 0:  # one figure for the most that these replicas take
        each = dataclasses.replace(
            fleet.curve, slo_rate_rps=there.peak_rate_rps / fleet.num_serving, slo_rate_is_least=False
        )
        fleet = dataclasses.replace(fleet, curve=each)
    return Took(there, given if trace is None else faster or trace, fleet, found)


def deploy_most_pools(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    kv_bytes_per_token: float,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
) -> tuple[Took, Pools]:
    """`deploy_most` of prefill and decode on separate replicas, one of each where their numbers are not given.

    Parameters
    ----------
    kv_bytes_per_token : float
        KV cache of one token over all GPUs of a replica. [bytes]

    Returns
    -------
    tuple of Took and Pools
    """
    first = deploy_pools(scenario, replica, requests, kv_bytes_per_token, trace, most_requests)
    curve, pools = first.fleet.curve, first.pools

    def run(load: float) -> ServingMetrics:
        there = scenario.at_load(load)
        given = requests if scenario.is_open_loop else draw(there)
        faster = with_rate(trace, load) if trace is not None and scenario.is_open_loop else trace
        return serve_pools(there, replica, given, kv_bytes_per_token, faster, most_requests)

    def serve(there: Scenario, given: Requests, faster: Requests | None) -> Fleet:
        nonlocal pools
        done = deploy_pools(there, replica, given, kv_bytes_per_token, faster, most_requests, curve=curve)
        pools = done.pools
        return done.fleet

    begin = _begin(scenario, curve, replica, pools.num_decode if scenario.arrivals == "once" else pools.num_serving)
    took = _at_most(scenario, requests, trace, _most(scenario, curve, begin, run), serve)
    return took, pools


def _begin(scenario: Scenario, curve: LoadCurve, replica: Replica, replicas: int) -> tuple[float, float]:
    """A load to begin with, and one that is certainly the most."""
    if scenario.arrivals == "once":
        return float(replica.limits.max_num_seqs * replicas), float(MOST_AT_ONCE)
    if scenario.arrivals == "closed":
        users = curve.users(scenario.think_time_s) * replicas
        return float(max(1, int(users))) if curve.capacity_rps > 0 else 0.0, float(MOST_USERS)
    most = min(MOST_RPS, STEADY_SHARE * curve.capacity_rps * replicas)
    return min(most, curve.slo_rate_rps * replicas), most


def _run(
    scenario: Scenario, replica: Replica, requests: Requests, trace: Requests | None, load: float, most_requests: int
) -> Run:
    """The fleet at one load."""
    replicas = scenario.fixed_replicas or 1
    if scenario.is_open_loop:
        tried = scenario.replace(demand="rate", rate_rps=load)
        faster = with_rate(trace, load) if trace is not None else None
        return run_fleet(tried, replica, requests, replicas, faster, most_requests=most_requests, enough=is_plain)
    tried = scenario.at_load(load)
    return run_fleet(tried, replica, draw(tried), replicas, most_requests=most_requests, enough=is_plain)


def _bracket(holds: Callable[[float], bool], guess: float, most: float, *, whole: bool) -> tuple[float, float]:
    """A load that holds, or 0, and one that does not, or the most."""
    step = 1.15 if not whole else 1.5
    least = 1.0 if whole else guess / 64

    def rounded(load: float) -> float:
        return float(max(1, int(load))) if whole else load

    guess = min(guess, most)
    if holds(guess):
        low = guess
        while low < most:
            high = min(most, max(rounded(low * step), low + 1 if whole else 0.0))
            if not holds(high):
                return low, high
            low = high
        return low, most
    high = guess
    while high > least:
        low = rounded(high / step)
        if holds(low):
            return low, high
        high = low
    return 0.0, high


def _gives(scenario: Scenario, over: ServingMetrics) -> str:
    """What a load above the most misses: the target that is furthest off."""
    if over.lost_fraction > 1 - scenario.target_quantile:
        return LOST
    times = {
        target.name: getattr(over, target.latency).at(scenario.target_quantile) / target.limit_s
        for target in scenario.targets
    }
    known = {name: ratio for name, ratio in times.items() if math.isfinite(ratio)}
    return max(known, key=lambda name: known[name], default=THROUGHPUT)


def _missed_idle(scenario: Scenario, curve: LoadCurve) -> str:
    """What an idle replica misses."""
    return _gives(scenario, curve.points[0].metrics) if curve.points else LOST


def roomy(replica: Replica, most_tokens: int) -> Replica:
    """A replica that takes requests of up to so many tokens."""
    return dataclasses.replace(replica, limits=dataclasses.replace(replica.limits, max_model_len=most_tokens))


def longest_prompt_tokens(
    scenario: Scenario,
    serve: Callable[[Requests], SimulationResult],
    requests: Requests,
    most_tokens: int,
    mean_output_tokens: float,
) -> int:
    """The longest prompt with which a request alone on a replica meets every target. [tokens]

    Parameters
    ----------
    scenario : Scenario
        Its targets.
    serve : callable
        Runs requests on a replica, or on one of each kind, that takes contexts of `most_tokens`.
    requests : Requests
        Any, whose first is stretched.
    most_tokens : int
        Longest context with which the engine starts.
    mean_output_tokens : float
        Answer of that request.

    Returns
    -------
    int
        0 where not even one token meets them. Without targets what the context leaves beside the answer.
    """
    answer = max(1, round(mean_output_tokens))
    level: ServiceLevel = dataclasses.replace(scenario.service_level, window="all")

    def holds(tokens: int) -> bool:
        return slo_attainment(serve(_alone(requests, tokens, answer)), level) >= 1

    most = most_tokens - answer
    if most < 1 or not holds(1):
        return 0
    if holds(most):
        return most
    low, high = 1, most
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _alone(requests: Requests, prompt: int, output: int) -> Requests:
    """One request of these lengths, which shares no prefix."""
    one = np.array([0], dtype=np.int64)
    return dataclasses.replace(
        requests,
        arrival_s=np.zeros(1),
        prompt_tokens=one + prompt,
        output_tokens=one + output,
        output_limit_tokens=one + output,
        prefix_group=one - 1,
        prefix_tokens=one,
        closed_loop_users=0,
        kv_ready_tokens=None,
        priority=None,
        adapter=None,
    )
