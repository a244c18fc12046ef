"""The fleet: replicas behind a router at the peak, and the fewest that hold the targets."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from planner.scenario import Scenario
from planner.service.clients import (
    RATES,
    fewest_that_hold,
    first_requests,
    serve_users,
    smallest_that_holds,
    take_requests,
    with_idle,
)
from planner.service.load import meets
from planner.service.metrics import ServingMetrics, measure
from planner.service.replica import Replica, with_windows
from planner.simulation import SimulationResult, simulate_fleet
from planner.workload import Requests, draw_requests, with_rate

MAX_SIMULATED_REPLICAS = 16
MAX_REPLICAS_OF_A_BURST = 500
SEARCH_LENGTHS = 4  # while the number is still searched for, a fleet shares this many times the requests
BLIND_ROUTERS = ("round_robin", "random", "prefix_affinity")  # their choice does not depend on the replicas
ALONE_S = 600.0  # between requests that shall not meet
ALONE_REQUESTS = 500
ROUTED_REQUESTS = 8_000  # routers that look at the load stop every replica at each arrival


def operate(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    num_replicas: int,
    trace: Requests | None = None,
    most_requests: int | None = None,
) -> tuple[SimulationResult, ServingMetrics]:
    """Simulate the fleet at the peak rate, or on a trace with its own times.

    Beyond 16 replicas, 16 of them at their share of the rate stand for the whole, since replicas
    behind one router differ only by chance. The users of a closed loop and the requests of a burst are
    those of the whole service, dealt to its replicas.
    """
    shown = min(num_replicas, MAX_SIMULATED_REPLICAS)
    if requests.closed_loop_users and num_replicas > 1:
        shown = min(shown, requests.closed_loop_users)
        each = len(requests)  # every replica sees a steady state
        total = draw_requests(scenario.traffic, each * shown, scenario.seed, max_model_len=scenario.max_model_len)
        return serve_users(replica, total, num_replicas, scenario.service_level, most_simulated=shown)
    if scenario.arrivals == "once" and trace is None and num_replicas > 1:
        return _serve_burst(scenario, replica, requests, num_replicas)
    if shown == 1:
        keep = not scenario.is_open_loop or trace is not None
        offered = requests if keep else with_rate(requests, scenario.peak_rate_rps)
        result = replica.run(offered, timeline=True)
        return result, measure(result, scenario.service_level)
    if trace is not None:
        total, shown = trace, num_replicas
    else:
        # Enough requests that every replica sees a steady state.
        blind = scenario.router in BLIND_ROUTERS
        count = min(scenario.num_requests * shown, most_requests or math.inf, math.inf if blind else ROUTED_REQUESTS)
        total = draw_requests(scenario.traffic, int(count), scenario.seed, max_model_len=scenario.max_model_len)
        total = with_rate(total, scenario.peak_rate_rps * shown / num_replicas)
    result = _routed(scenario, replica, total, shown)
    return result, _scaled(measure(result, scenario.service_level), num_replicas / shown)


def _routed(scenario: Scenario, replica: Replica, requests: Requests, num_replicas: int) -> SimulationResult:
    """Serve an open stream on replicas behind the scenario's router."""
    result = simulate_fleet(
        requests,
        replica.engine,
        replica.limits,
        replica.step_time,
        num_replicas=num_replicas,
        router=scenario.router,
        seed=scenario.seed,
    )
    return with_windows(result, replica.limits, num_replicas=num_replicas)


def _serve_burst(
    scenario: Scenario, replica: Replica, requests: Requests, num_replicas: int
) -> tuple[SimulationResult, ServingMetrics]:
    """Deal a burst to the replicas; beyond 500 of them, 500 with their share stand for the whole."""
    busy = min(len(requests), num_replicas)
    shown = min(busy, MAX_REPLICAS_OF_A_BURST)
    result = _routed(
        scenario, replica, take_requests(requests, slice(0, math.ceil(len(requests) * shown / busy))), shown
    )
    metrics = _scaled(measure(result, scenario.service_level), busy / shown)
    counts = ("num_finished", "num_rejected", "num_abandoned", "num_unfinished", "num_preemptions")
    if shown < busy:
        scale = len(requests) / metrics.num_requests
        metrics = dataclasses.replace(
            metrics,
            num_requests=len(requests),
            **{name: round(getattr(metrics, name) * scale) for name in counts},
        )
    return result, with_idle(metrics, busy, num_replicas)


def fewest_sharing(scenario: Scenario, replica: Replica, requests: Requests) -> int | None:
    """Find the fewest replicas with which a closed loop or a burst meets the targets; None when no number does.

    More than one replica for each user or request cannot help.
    """
    level = scenario.service_level
    most = requests.closed_loop_users or len(requests)
    return fewest_that_hold(lambda count: meets(operate(scenario, replica, requests, count)[1], level), most)


def _scaled(metrics: ServingMetrics, factor: float) -> ServingMetrics:
    # Sixteen replicas stand for more: rates add up, latencies do not.
    return dataclasses.replace(metrics, **{name: getattr(metrics, name) * factor for name in RATES})


def fleet_size(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    guess: int,
    trace: Requests | None = None,
    at_least: int = 1,
) -> int | None:
    """Find the fewest replicas whose own simulation meets the targets.

    The load curve belongs to one replica under its share of the traffic; a fleet also shares bursts, so
    its simulation has the last word. Replicas are added by half until the targets hold, then the
    smallest number is found by bisection.

    Parameters
    ----------
    scenario : Scenario
        Traffic and targets.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests.
    guess : int
        Where to begin, from the load curve.
    trace : Requests, optional
        A replayed trace, served at its own times.
    at_least : int
        Fewer than this cannot carry the rate at full throughput, which a short run does not show.

    Returns
    -------
    int or None
        None when a request that has a replica to itself already misses the targets, or no fleet of up
        to 64 times where the search begins holds them.
    """
    level = scenario.service_level
    apart = dataclasses.replace(
        requests, arrival_s=np.arange(len(requests), dtype=np.float64) * ALONE_S, closed_loop_users=0
    )
    if not meets(measure(replica.run(first_requests(apart, ALONE_REQUESTS)), level), level):
        return None

    def holds(count: int) -> bool:
        return meets(operate(scenario, replica, requests, count, trace, SEARCH_LENGTHS * len(requests))[1], level)

    low, high = at_least - 1, max(1, guess, at_least)
    while not holds(high):
        low, high = high, max(high + 1, math.ceil(high * 1.5))
        if high > 64 * max(1, guess, at_least):
            return None
    return smallest_that_holds(holds, low, high)
