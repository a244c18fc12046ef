"""What users see while one replica is down."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats
from planner.scenario import Scenario
from planner.service.day import Running
from planner.service.metrics import Mask, latencies, met_targets
from planner.service.replica import in_parallel
from planner.simulation import FINISHED, Failure, SimulationResult, simulate_fleet, simulate_service
from planner.workload import draw_spells

DETECTION_S = 5.0
MOST_SIMULATED = 16
MOST_REQUESTS_OF_AN_OUTAGE = 120_000
LEAST_WARM_UP_S, WARM_UP_TIMES = 60.0, 4.0
BINS = 20  # of the time after the failure, in which its end is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One replica of `num_replicas` fails at the peak and serves again after `recovery_s`.

    `before_*` is the service without a failure, `during_*` what happens to the requests that arrive until the replica
    serves again: the share that meets the targets, and the time to first token at the targets' quantile [s].
    `lost_requests` were in flight on the replica and begin anew; `felt_s` is the time from the failure until the
    targets hold again (NaN where they did not hold before, infinite where they do not within the time simulated).
    """

    num_replicas: int
    recovery_s: float
    before_met: float
    during_met: float
    before_ttft_s: float
    during_ttft_s: float
    lost_requests: float
    requests_during: float
    felt_s: float


def serve_outage(running: Running) -> tuple[Outage, Outage]:
    """Simulate the failure of one replica at the peak: of the fleet as it is, and of one with a replica more.

    Parameters
    ----------
    running : Running
        An open loop; all of its replicas take part in the load.

    Returns
    -------
    tuple of Outage
        Up to 16 replicas the failure itself is simulated: what was in flight begins anew elsewhere once the clients
        notice, after 5 s. Of larger fleets 16 replicas are simulated under the share of the load that is left to
        each.
    """
    without, spare = in_parallel(
        lambda count: _outage(running, count), (running.num_replicas, running.num_replicas + 1)
    )
    return without, spare


def _outage(running: Running, count: int) -> Outage:
    scenario, rate = running.scenario, running.scenario.peak_rate_rps
    recovery_s = DETECTION_S + running.startup_s
    warm_s = max(LEAST_WARM_UP_S, WARM_UP_TIMES * running.served_s)
    shown = min(count, MOST_SIMULATED)
    part = shown / count
    spells = [warm_s, recovery_s, recovery_s]
    after_s = max(recovery_s / 4, min(recovery_s, MOST_REQUESTS_OF_AN_OUTAGE / (rate * part) - warm_s - recovery_s))
    spells[2] = after_s
    whole = count == shown
    left = 1.0 if whole else count / (count - 1)
    requests = draw_spells(scenario, np.array([1.0, left, 1.0]) * rate * part, np.array(spells))
    replica = running.replica
    lost = running.served_s * rate / count
    if whole:
        run = simulate_service(
            requests,
            replica.engine,
            replica.limits,
            replica.step_time,
            num_replicas=count,
            failure=Failure(time_s=warm_s, detection_s=DETECTION_S, recovery_s=recovery_s),
            router=scenario.router,
            seed=scenario.seed,
        )
        result, lost = run.result, float(run.num_retried)
    else:
        result = simulate_fleet(
            requests,
            replica.engine,
            replica.limits,
            replica.step_time,
            num_replicas=shown,
            router=scenario.router,
            seed=scenario.seed,
            stop_on_overload=False,
        )
    return _seen(scenario, result, count, warm_s, recovery_s, lost)


def _seen(
    scenario: Scenario, result: SimulationResult, count: int, warm_s: float, recovery_s: float, lost: float
) -> Outage:
    met = met_targets(result, scenario.service_level)
    arrival = result.arrival_s
    before = (arrival >= warm_s / 4) & (arrival < warm_s)
    during = (arrival >= warm_s) & (arrival < warm_s + recovery_s)

    def share(which: Mask) -> float:
        return float(met[which].mean()) if which.any() else math.nan

    def first(which: Mask) -> float:
        done = which & (result.status == FINISHED)
        return float(np.quantile(latencies(result, done).ttft_s, scenario.target_quantile)) if done.any() else math.nan

    return Outage(
        num_replicas=count,
        recovery_s=recovery_s,
        before_met=share(before),
        during_met=share(during),
        before_ttft_s=first(before),
        during_ttft_s=first(during),
        lost_requests=lost,
        requests_during=scenario.peak_rate_rps * recovery_s,
        felt_s=_felt_s(met, arrival, warm_s, share(before), scenario.target_quantile),
    )


def _felt_s(met: Mask, arrival: Floats, failed_s: float, before: float, quantile: float) -> float:
    """From the failure until the end of the last span in which too few requests met the targets."""
    if not before >= quantile:
        return math.nan
    after = arrival >= failed_s
    span = (float(arrival[-1]) - failed_s) / BINS
    if span <= 0:
        return math.nan
    place = np.minimum(((arrival[after] - failed_s) / span).astype(np.int64), BINS - 1)
    asked, held = np.bincount(place, minlength=BINS), np.bincount(place, met[after], minlength=BINS)
    short = np.flatnonzero(held < quantile * asked)
    if not len(short):
        return 0.0
    return math.inf if short[-1] == BINS - 1 else float(short[-1] + 1) * span
