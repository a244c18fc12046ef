"""How many replicas the peak needs, and how they serve its requests."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from planner.scenario import Scenario
from planner.service.capacity import More
from planner.service.clients import first_requests, share_of_one
from planner.service.fleet import MOST_REQUESTS, drawn, fewest_sharing, find_fleet, find_sharing, fleet_size, run_fleet
from planner.service.load import LoadCurve, load_curve, meets, replicas_needed
from planner.service.metrics import ServingMetrics
from planner.service.replica import Replica
from planner.simulation import SimulationResult
from planner.workload import Requests, as_open_loop, with_rate

CURVE_REQUESTS = 8_000  # of the load curve and the capacity: the mean of lognormal lengths is then known within 2 %
MOST_OF_A_CURVE = 100_000  # more tell nothing that a chart shows
DRAWN_AT_ONCE = 4_096  # so that the candidates of a search, each with sequences of its own, share what is drawn
LEAST_SHOWN = 200  # requests under each policy
MOST_CURVE_TOKENS, LEAST_OF_A_CURVE = 40_000_000, 1_000  # of all answers; requests that are enough where they are long


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """Replicas of one kind at the peak: how many, the load that each can bear, and how they serve the requests.

    `num_serving` of the `num_replicas` share the load; `replicas_for_slo` is None when no number meets the targets.
    """

    curve: LoadCurve
    replicas_for_slo: int | None
    num_replicas: int
    num_serving: int
    result: SimulationResult
    metrics: ServingMetrics

    def holds(self, scenario: Scenario) -> bool:
        """Whether the fleet meets the targets at the peak and keeps up with the arrivals."""
        overrun = scenario.is_open_loop and self.overloaded(scenario.peak_rate_rps)
        return meets(self.metrics, scenario.service_level) and not overrun

    def overloaded(self, rate_rps: float) -> bool:
        """Whether a rate exceeds what all replicas finish at full throughput: then the queue grows without end."""
        return rate_rps > self.num_serving * self.curve.capacity_rps * (1 + 1e-9)


def deploy(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    trace: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
    *,
    curve: LoadCurve | None = None,
) -> Fleet:
    """Find how many replicas the peak needs, and serve the requests with them.

    Parameters
    ----------
    scenario : Scenario
        Traffic, targets, and the number of replicas where the user fixes it.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests.
    trace : Requests, optional
        A replayed trace, served at its own times.
    most_requests : int
        Simulated for each number of replicas that is tried.
    curve : LoadCurve, optional
        One replica's sweep on these requests, where the caller has it.

    Returns
    -------
    Fleet
    """
    open_loop, level, fixed = scenario.is_open_loop, scenario.service_level, scenario.fixed_replicas
    curve = curve or curve_of(scenario, replica, requests, trace, most_requests)
    needed = replicas_needed(scenario.peak_rate_rps, curve.slo_rate_rps) if open_loop else 1
    least = curve.replicas_to_carry(scenario.peak_rate_rps) if open_loop else 1
    spare = 0 if fixed is not None else scenario.spare_replicas
    serving = guess = fixed or needed or least
    found = None
    if fixed is None and open_loop:
        needed, found = find_fleet(scenario, replica, requests, guess, trace, least, most_requests)
    elif fixed is None:
        needed, found = find_sharing(scenario, replica, requests, _guessed(scenario, curve), trace, most_requests)
    if fixed is None:
        serving = needed or guess
    most = 2 * serving + 8 if open_loop else min(2 * serving + 8, requests.closed_loop_users or len(requests))
    run = run_fleet(scenario, replica, requests, serving, trace, most_requests=most_requests, begun=found)
    if fixed is None and needed is not None:
        while not meets(run.metrics, level) and serving < most:  # the longer run has the last word
            serving += max(1, serving // 20)
            run = run_fleet(scenario, replica, requests, serving, trace, most_requests=most_requests)
        needed = serving if meets(run.metrics, level) else None
    if fixed is None and open_loop and needed is not None:
        curve = _as_in_the_fleet(curve, scenario.peak_rate_rps, needed)
    fleet = Fleet(
        curve=curve,
        replicas_for_slo=needed,
        num_replicas=serving + spare,
        num_serving=serving,
        result=run.result,
        metrics=run.metrics,
    )
    each_rps = scenario.peak_rate_rps / serving
    if open_loop and curve.slo_rate_rps < each_rps and fleet.holds(scenario):  # what was simulated to hold does hold
        fleet = dataclasses.replace(fleet, curve=_shown_to_hold(curve, each_rps))
    return fleet


def curve_of(
    scenario: Scenario, replica: Replica, requests: Requests, trace: Requests | None, most_requests: int
) -> LoadCurve:
    """One replica's load curve on a scenario's requests, as an open loop."""
    many = as_open_loop(steady_requests(scenario, requests, trace, most_requests))
    return load_curve(replica, many, scenario.service_level, None if trace is not None else more_of(scenario))


def more_of(scenario: Scenario) -> More:
    """Draws requests of a scenario's kind, as an open loop."""

    def more(count: int) -> Requests:
        rounded = -(-count // DRAWN_AT_ONCE) * DRAWN_AT_ONCE
        return first_requests(as_open_loop(drawn(scenario.replace(num_requests=rounded))), count)

    return more


def _guessed(scenario: Scenario, curve: LoadCurve) -> int:
    """Replicas that a closed loop may need, by its load curve; 1 for a burst. Only where the search begins."""
    users = curve.users(scenario.think_time_s)
    return max(1, math.ceil(scenario.concurrent_users / users)) if scenario.arrivals == "closed" and users else 1


def steady_requests(scenario: Scenario, requests: Requests, trace: Requests | None, most_requests: int) -> Requests:
    """The requests, or so many more of their kind that lengths with a long tail average out; 100,000 at most."""
    if trace is not None:
        return requests
    affordable = max(LEAST_OF_A_CURVE, int(MOST_CURVE_TOKENS / float(requests.output_tokens.mean())))
    most = min(CURVE_REQUESTS, most_requests, affordable)
    if len(requests) >= most:
        return first_requests(requests, min(MOST_OF_A_CURVE, affordable))
    return drawn(scenario.replace(num_requests=most))


def _as_in_the_fleet(curve: LoadCurve, peak_rate_rps: float, replicas: int) -> LoadCurve:
    # The fleet's run found that `replicas` hold the peak and one fewer do not: the rate that one replica
    # holds lies between, and no figure may say otherwise.
    if curve.slo_rate_rps <= 0:
        return curve
    if peak_rate_rps / replicas > curve.slo_rate_rps:
        return _shown_to_hold(curve, peak_rate_rps / replicas)
    ceiling = math.inf if replicas == 1 else peak_rate_rps / (replicas - 1) * (1 - 1e-9)
    return dataclasses.replace(curve, slo_rate_rps=min(curve.slo_rate_rps, ceiling))


def _shown_to_hold(curve: LoadCurve, rate_rps: float) -> LoadCurve:
    return dataclasses.replace(curve, slo_rate_rps=rate_rps, slo_rate_is_least=True)


def share_of_replica(scenario: Scenario, requests: Requests, num_serving: int) -> Requests:
    """What one of the replicas that share the load gets of the requests.

    Of an open loop 100,000 at most, and 40 million tokens of answers: policies that serve one by one take a step for
    each.
    """
    if scenario.is_open_loop:
        few = max(LEAST_SHOWN, min(MOST_OF_A_CURVE, int(MOST_CURVE_TOKENS / float(requests.output_tokens.mean()))))
        return with_rate(first_requests(requests, few), scenario.peak_rate_rps / num_serving)
    return share_of_one(requests, num_serving)


def replicas_for_targets(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    fleet: Fleet,
    trace: Requests | None,
    most_requests: int = MOST_REQUESTS,
    *,
    met: bool,
) -> int | None:
    """Fewest replicas that hold the targets, in agreement with what the fleet's own simulation found.

    A load curve of one replica does not show that several share bursts. So a fleet that holds the targets is
    enough whatever the curve says, and where the user's own number misses them, more are tried.
    """
    needed, serving = fleet.replicas_for_slo, fleet.num_serving
    if scenario.asks == "take":
        return serving if met else None
    if not scenario.is_open_loop:
        if scenario.fixed_replicas is None:
            return needed
        if met and serving == 1:
            return 1
        return fewest_sharing(scenario, replica, requests, (serving, met), most_requests)
    if met:
        return min(needed or serving, serving)
    if scenario.fixed_replicas is not None and (needed is None or needed <= serving):
        return fleet_size(scenario, replica, requests, serving + 1, trace, serving + 1, most_requests)
    return needed
