"""The fleet: replicas behind a router at the peak, and the fewest that hold the targets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from planner.inputs import Traffic
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
from planner.service.metrics import ServingMetrics, measure, slo_attainment
from planner.service.replica import Replica, with_windows
from planner.service.sampling import sample_of
from planner.simulation import SimulationResult, simulate_fleet
from planner.workload import Requests, draw_requests, with_rate

MAX_REPLICAS_OF_A_LOOP, MAX_REPLICAS_OF_A_BURST = 16, 500
#: replicas of a loop to simulate while a number is sought: they keep their users, whose shares differ by one at most
FULLEST_AND_OTHERS = 2
ALONE_S = 600.0  # between requests that must not overlap
ALONE_REQUESTS, ALONE_IN_DOUBT = 500, 8_000
#: below the share asked for by so much, no other requests of the kind would tell another story
PLAIN_MISS = 0.02
MOST_REQUESTS = 400_000  # simulated for one figure; a run that needs more says that it is not settled
MOST_STEPS = 60_000_000  # of the engines, all replicas together: answers of many tokens cost steps, not requests
MOST_TOKENS = 1_000_000_000  # of the answers of a first run
LEAST_DRAWN = 100  # requests of a replica at least, however long the answers are
#: requests of each replica that a first run has whatever `most_requests` says; more only within that
PLENTY_DRAWN = 2_000
GROWTH = 4  # each longer run is this many times the last
ROUNDS = 8  # requests of each user that a closed loop is simulated for at least: the first and the last do not count
SHARE_REQUESTS = 500  # at least, where one replica's share is tried
#: with so many requests counted, an attainment so many half-widths from the target needs no longer run
PLAIN_REQUESTS, PLAIN_ERRORS = 10_000, 4
CERTAIN = 0.002  # an attainment this well known needs no longer run, however close it is to the quantile asked for


class Run(NamedTuple):
    """A simulated fleet. `drawn` requests for each replica; 0: they were served as given."""

    drawn: int
    result: SimulationResult
    metrics: ServingMetrics


@lru_cache(maxsize=8)
def _requests_of(traffic: Traffic, num_requests: int, seed: int, max_model_len: int) -> Requests:
    return draw_requests(traffic, num_requests, seed, max_model_len=max_model_len)


def drawn(scenario: Scenario) -> Requests:
    """`draw`, once for all deployments of the same traffic: a search tries thousands on the same requests."""
    return _requests_of(scenario.traffic, scenario.num_requests, scenario.seed, scenario.max_model_len)


def run_fleet(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    num_replicas: int,
    trace: Requests | None = None,
    *,
    most_requests: int = MOST_REQUESTS,
    enough: Callable[[ServingMetrics, Scenario], bool] | None = None,
    begun: Run | None = None,
    most_of_a_loop: int = MAX_REPLICAS_OF_A_LOOP,
) -> Run:
    """Simulate the fleet at the peak rate, or on a trace with its own times.

    A steady service is simulated until its intervals can be believed and tell whether the targets hold: the run grows
    from the scenario's number of requests. A trace, a burst, and a scenario whose requests all count are served as they
    are. Beyond 32 replicas, 32 of them at their share of the traffic stand for the whole, since replicas behind one
    router differ only by chance. The users of a closed loop and the requests of a burst are those of the whole service,
    dealt to its replicas; 16 replicas of a loop, 500 of a burst stand for more.

    Parameters
    ----------
    scenario : Scenario
        Traffic, targets and router.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests.
    num_replicas : int
        How many share the load.
    trace : Requests, optional
        A replayed trace, served at its own times.
    most_requests : int
        Simulated at most; a run that would need more ends unsettled.
    enough : callable, optional
        Whether a run of these metrics needs no longer one; by default when its intervals tell whether the targets hold.
    begun : Run, optional
        A run of the same fleet that stopped at a weaker criterion, to go on from.
    most_of_a_loop : int
        Replicas of a closed loop to simulate; they stand for the others.

    Returns
    -------
    Run
    """
    if trace is not None or scenario.arrivals == "once" or scenario.measured_requests == "all":
        return begun or Run(0, *_serve(scenario, replica, requests, num_replicas, trace, most_of_a_loop, most_requests))
    enough = enough or _settled
    count = max(len(requests), ROUNDS * math.ceil(requests.closed_loop_users / num_replicas))
    run = begun
    while True:
        if run is None:
            longer = requests if count == len(requests) else drawn(scenario.replace(num_requests=count))
            run = Run(count, *_serve(scenario, replica, longer, num_replicas, None, most_of_a_loop, most_requests))
        simulated = len(run.result.arrival_s)
        most = GROWTH * simulated > most_requests or GROWTH * run.result.num_steps > MOST_STEPS
        if run.metrics.verdict == "overloaded" or most or enough(run.metrics, scenario):
            return run
        count, run = GROWTH * run.drawn, None


def _settled(metrics: ServingMetrics, scenario: Scenario) -> bool:
    """Whether the intervals can be believed and show on which side of its target the attainment lies."""
    off, error = abs(metrics.slo_attainment - scenario.target_quantile), metrics.slo_attainment_half_width
    return metrics.is_settled and (error < CERTAIN or error < off)


def is_plain(metrics: ServingMetrics, scenario: Scenario) -> bool:
    """Whether the targets hold or fail by so much that a longer run would say the same."""
    off, error = abs(metrics.slo_attainment - scenario.target_quantile), metrics.slo_attainment_half_width
    return _settled(metrics, scenario) or (metrics.num_counted >= PLAIN_REQUESTS and PLAIN_ERRORS * error < off)


def _serve(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    num_replicas: int,
    trace: Requests | None,
    most_of_a_loop: int,
    most_requests: int,
) -> tuple[SimulationResult, ServingMetrics]:
    """One run: of an open loop or a closed one, `requests` is what each simulated replica gets of the steady stream."""
    level = scenario.service_level
    whole = scenario.measured_requests == "all"  # the requests are those of the whole service
    if requests.closed_loop_users and num_replicas > 1:
        shown = min(num_replicas, MAX_REPLICAS_OF_A_LOOP if whole else most_of_a_loop, requests.closed_loop_users)
        least = ROUNDS * math.ceil(requests.closed_loop_users / num_replicas)
        count = max(least, _plenty(len(requests), shown, most_requests)) * shown
        total = requests if whole else drawn(scenario.replace(num_requests=count))
        return serve_users(replica, total, num_replicas, level, most_simulated=shown)
    if scenario.arrivals == "once" and trace is None and num_replicas > 1:
        return _serve_burst(scenario, replica, requests, num_replicas)
    if num_replicas == 1:
        keep = not scenario.is_open_loop or trace is not None
        offered = requests if keep else with_rate(requests, scenario.peak_rate_rps)
        result = replica.run(offered, timeline=True)
        return result, measure(result, level)
    if trace is not None:
        return _measured(scenario, _routed(scenario, replica, trace, num_replicas))
    if whole:  # as many requests as asked for, dealt to the replicas shown
        shown, busy = min(num_replicas, MAX_REPLICAS_OF_A_BURST), num_replicas
        total, share = take_requests(requests, slice(0, math.ceil(len(requests) * shown / busy))), shown / busy
    else:
        shown, busy, share, traffic = sample_of(scenario, num_replicas)
        total = drawn(traffic.replace(num_requests=_affordable(requests, shown, most_requests)))
    total = with_rate(total, scenario.peak_rate_rps * share)
    result, metrics = _measured(scenario, _routed(scenario, replica, total, shown), 1 / share)
    return result, with_idle(metrics, busy, num_replicas)


def _plenty(asked: int, shown: int, most_requests: int) -> int:
    """Requests of each replica that is shown: as many as asked for, up to 2,000 or the replica's part of the most."""
    return min(asked, max(PLENTY_DRAWN, most_requests // shown))


def _affordable(requests: Requests, shown: int, most_requests: int) -> int:
    """Requests of all replicas that are shown: `_plenty` of each, fewer where answers are very long."""
    most = int(MOST_TOKENS / float(requests.output_tokens.mean()))
    return min(_plenty(len(requests), shown, most_requests) * shown, max(LEAST_DRAWN * shown, most))


def _measured(
    scenario: Scenario, result: SimulationResult, times: float = 1.0
) -> tuple[SimulationResult, ServingMetrics]:
    return result, _scaled(measure(result, scenario.service_level), times)


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
    """Share a burst out to the replicas; beyond 500 of them, 500 are simulated with their share."""
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


def fewest_sharing(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    known: tuple[int, bool] | None = None,
    most_requests: int = MOST_REQUESTS,
) -> int | None:
    """Find the fewest replicas with which a closed loop or a burst meets the targets; None when no number does.

    More than one replica for each user or request cannot help. `known` is a number that need not be simulated, and
    whether it meets them.
    """
    level = scenario.service_level
    most = requests.closed_loop_users or len(requests)

    def holds(count: int) -> bool:
        if known is not None and known[0] == count:
            return known[1]
        return meets(try_fleet(scenario, replica, requests, count, most_requests), level)

    return fewest_that_hold(holds, most)


def _misses_alone(scenario: Scenario, replica: Replica, requests: Requests, trace: Requests | None) -> bool:
    """Whether requests that have a replica to themselves miss the targets: then no number of replicas helps.

    Where the first few leave that open, as many more of their kind are drawn as a load curve has.
    """
    level = scenario.service_level
    share = slo_attainment(serve_apart(replica, requests), level)
    given = trace is not None or scenario.arrivals == "once" or scenario.measured_requests == "all"
    if abs(share - level.quantile) <= PLAIN_MISS and not given:
        more = drawn(scenario.replace(num_requests=max(len(requests), ALONE_IN_DOUBT)))
        share = slo_attainment(serve_apart(replica, more, ALONE_IN_DOUBT), level)
    return share < level.quantile


def find_sharing(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    guess: int,
    trace: Requests | None,
    most_requests: int,
) -> tuple[int | None, Run | None]:
    """Fewest replicas with which a closed loop or a burst meets the targets, and its run where that was whole.

    Parameters
    ----------
    guess : int
        Where to begin.

    Returns
    -------
    tuple of int and Run
        None when a request with a replica to itself misses the targets, or no number up to one for each user or
        request meets them.
    """
    level, most = scenario.service_level, requests.closed_loop_users or len(requests)
    if _misses_alone(scenario, replica, requests, trace):
        return None, None
    runs: dict[int, Run] = {}

    def holds(count: int) -> bool:
        run = run_fleet(
            scenario,
            replica,
            requests,
            count,
            trace,
            most_requests=most_requests,
            enough=is_plain,
            most_of_a_loop=FULLEST_AND_OTHERS,
        )
        if not meets(run.metrics, level):
            return False
        runs[count] = run
        return True

    low, high = 0, max(1, min(guess, most))
    if holds(high):
        while high > 1 and holds(lower := max(1, high * 3 // 4)):
            high = lower
        low = 0 if high == 1 else lower
    else:
        while not holds(grown := min(most, max(high + 1, math.ceil(high * 1.5)))):
            if grown >= most:
                return None, None
            high = grown
        low, high = high, grown
    fewest = smallest_that_holds(holds, low, high)
    whole = (scenario.arrivals == "once" or scenario.measured_requests == "all") or fewest <= FULLEST_AND_OTHERS
    return fewest, runs[fewest] if whole else None


def _scaled(metrics: ServingMetrics, factor: float) -> ServingMetrics:
    # Some replicas stand for more: rates add up, latencies do not.
    return dataclasses.replace(metrics, **{name: getattr(metrics, name) * factor for name in RATES})


def fleet_size(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    guess: int,
    trace: Requests | None = None,
    at_least: int = 1,
    most_requests: int = MOST_REQUESTS,
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
    most_requests : int
        Simulated for each number that is tried.

    Returns
    -------
    int or None
        None when a request that has a replica to itself already misses the targets, or no fleet of up
        to 64 times where the search begins holds them.
    """
    return find_fleet(scenario, replica, requests, guess, trace, at_least, most_requests)[0]


def serve_apart(replica: Replica, requests: Requests, most: int = ALONE_REQUESTS) -> SimulationResult:
    """Each request with a replica to itself: up to `most` of them, far enough apart that none meets another."""
    apart = dataclasses.replace(
        requests, arrival_s=np.arange(len(requests), dtype=np.float64) * ALONE_S, closed_loop_users=0
    )
    return replica.run(first_requests(apart, most))


def serve_share(scenario: Scenario, replica: Replica, requests: Requests, count: int) -> SimulationResult:
    """One replica with so many users of a closed loop, or so many requests of a burst.

    Each user asks as often as in a whole run, so that the first and the last round do not count.
    """
    users = requests.closed_loop_users
    if not users:
        return replica.run(first_requests(requests, count))
    needed = max(SHARE_REQUESTS, ROUNDS * count)
    if scenario.measured_requests != "all" and len(requests) < needed:
        requests = drawn(scenario.replace(num_requests=max(needed, ROUNDS * users)))  # drawn once for every count
    return replica.run(dataclasses.replace(first_requests(requests, needed), closed_loop_users=count))


def try_fleet(
    scenario: Scenario, replica: Replica, requests: Requests, num_replicas: int, most_requests: int = MOST_REQUESTS
) -> ServingMetrics:
    """What so many replicas make of the peak, simulated until the targets plainly hold or fail, as `fleet_size` does.

    Parameters
    ----------
    scenario : Scenario
        Traffic and targets.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests.
    num_replicas : int
        How many share the load.
    most_requests : int
        Simulated at most.

    Returns
    -------
    ServingMetrics
    """
    run = run_fleet(
        scenario,
        replica,
        requests,
        num_replicas,
        most_requests=most_requests,
        enough=is_plain,
        most_of_a_loop=FULLEST_AND_OTHERS,
    )
    return run.metrics


def find_fleet(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    guess: int,
    trace: Requests | None,
    at_least: int,
    most_requests: int,
) -> tuple[int | None, Run | None]:
    """`fleet_size`, and the run that it found to hold."""
    level = scenario.service_level
    if _misses_alone(scenario, replica, requests, trace):
        return None, None
    held: Run | None = None

    def holds(count: int) -> bool:
        nonlocal held
        run = run_fleet(scenario, replica, requests, count, trace, most_requests=most_requests, enough=is_plain)
        if not meets(run.metrics, level):
            return False
        held = run
        return True

    low, high = at_least - 1, max(1, guess, at_least)
    while not holds(high):
        low, high = high, max(high + 1, math.ceil(high * 1.5))
        if high > 64 * max(1, guess, at_least):
            return None, None
    fewest = smallest_that_holds(holds, low, high)
    return fewest, held  # of the numbers that hold, bisection tries the fewest last
