"""24 hours of a service: a fixed fleet, one by timetable and one by autoscaler on the same requests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from planner.arrays import Floats, Ints
from planner.scenario import Scenario
from planner.service.metrics import latencies, met_targets
from planner.service.replica import Replica, in_parallel
from planner.simulation import FINISHED, Autoscaling, ServiceRun, Timetable, simulate_service
from planner.units import SECONDS_PER_HOUR
from planner.workload import draw_spells

FIXED, SCHEDULED, AUTOSCALED = "fixed", "scheduled", "autoscaled"
MOST_SIMULATED, FEWEST_SIMULATED = 12, 6  # replicas: beyond them each stands for several
MOST_REQUESTS_OF_A_DAY = 200_000
HEADROOM = 1.5  # of the autoscaler's most replicas over the fixed fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A planned service, as far as its days and its failures depend on it. Two of one scenario are equal.

    `num_serving` of the `num_replicas` share the load at the peak, each up to `rate_each_rps` within the targets and
    then with `in_flight_each` requests in flight at 80 % of that rate; a replica starts within `startup_s`.
    """

    scenario: Scenario
    replica: Replica = field(compare=False)
    num_replicas: int = field(compare=False)
    num_serving: int = field(compare=False)
    rate_each_rps: float = field(compare=False)
    in_flight_each: float = field(compare=False)
    startup_s: float = field(compare=False)
    served_s: float = field(compare=False)  # mean end-to-end time at the peak


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayPolicy:
    """One way to run the replicas over a day. Arrays have an entry for each hour from midnight on.

    `replicas` are those paid for on average, spares left out; `met` is the share of requests that meet the targets and
    `ttft_s` their time to first token at the targets' quantile (NaN in an hour without a request). `replica_hours` and
    `attainment` are of the whole day.
    """

    name: str
    replicas: Floats
    met: Floats
    ttft_s: Floats
    replica_hours: float
    attainment: float
    most_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Day:
    """24 hours: the rate of each [req/s], what each policy makes of them, and how they were simulated.

    `stands_for` is how many replicas each simulated one stands for; `simulated_s` of each hour were simulated, the
    second half of them standing for the rest of the hour.
    """

    rates_rps: Floats
    policies: tuple[DayPolicy, ...]
    startup_s: float
    stands_for: float
    simulated_s: float
    num_requests: int


def serve_day(running: Running) -> Day:
    """Simulate one day of a service under three policies on the same requests.

    Parameters
    ----------
    running : Running
        An open loop.

    Returns
    -------
    Day
        fixed: as many replicas as the peak needs, always. scheduled: as many as each hour's rate needs, started in
        time. autoscaled: requests in flight ÷ the target, with the start-up delay. The rate is constant within an
        hour, so that the steps between hours are the steepest that the curve allows.
    """
    scenario = running.scenario
    rates = np.array(scenario.hourly_rates_rps)
    shown, simulated_s = _affordable(running, rates)
    part = shown / running.num_serving
    requests = draw_spells(scenario, rates * part, np.full(len(rates), simulated_s))
    needed = hourly_replicas(rates * part, running.rate_each_rps)
    rule = Autoscaling(
        max_replicas=max(1, math.ceil(HEADROOM * shown)),
        target_per_replica=scenario.autoscale_target or running.in_flight_each,
        startup_s=running.startup_s,
        cooldown_s=scenario.cooldown_s,
    )
    table = Timetable(
        time_s=tuple((np.arange(len(rates)) * simulated_s).tolist()),
        replicas=needed,
        startup_s=running.startup_s,
    )
    plans: tuple[tuple[str, int, Autoscaling | None, Timetable | None], ...] = (
        (FIXED, shown, None, None),
        (SCHEDULED, needed[0], None, table),
        (AUTOSCALED, needed[0], rule, None),
    )

    def lane(item: tuple[str, int, Autoscaling | None, Timetable | None]) -> DayPolicy:
        name, first, autoscaling, timetable = item
        run = simulate_service(
            requests,
            running.replica.engine,
            running.replica.limits,
            running.replica.step_time,
            num_replicas=first,
            autoscaling=autoscaling,
            timetable=timetable,
            router=scenario.router,
            seed=scenario.seed,
        )
        return _policy(name, run, scenario, len(rates), simulated_s, 1 / part)

    return Day(
        rates_rps=rates,
        policies=tuple(in_parallel(lane, plans)),
        startup_s=running.startup_s,
        stands_for=1 / part,
        simulated_s=simulated_s,
        num_requests=len(requests),
    )


def _affordable(running: Running, rates: Floats) -> tuple[int, float]:
    """Replicas to simulate, and how much of each hour [s], with about as many requests as a day may have.

    An hour is shown at least until a replica started in it has served for a while and one to be stopped has cooled
    down; rather than that, fewer replicas stand for all.
    """
    shown = min(running.num_serving, MOST_SIMULATED)
    least_s = min(SECONDS_PER_HOUR, 2 * running.startup_s + running.scenario.cooldown_s + 60.0)
    whole_rps = float(rates.sum())  # one second of every hour
    while shown > FEWEST_SIMULATED and whole_rps * (shown / running.num_serving) * least_s > MOST_REQUESTS_OF_A_DAY:
        shown = max(FEWEST_SIMULATED, shown // 2)
    room_s = MOST_REQUESTS_OF_A_DAY / max(1e-9, whole_rps * (shown / running.num_serving))
    return shown, min(SECONDS_PER_HOUR, max(least_s, room_s))


def hourly_replicas(rates_rps: Floats, rate_each_rps: float) -> tuple[int, ...]:
    """Replicas that carry each hour's rate within the targets, at least one."""
    return tuple(max(1, math.ceil(rate / rate_each_rps - 1e-9)) for rate in rates_rps.tolist())


def _policy(
    name: str, run: ServiceRun, scenario: Scenario, hours: int, simulated_s: float, stands_for: float
) -> DayPolicy:
    """A run by hours; the second half of what was simulated of an hour counts for all that was not."""
    result, half = run.result, simulated_s / 2
    rest = (SECONDS_PER_HOUR - half) / half
    hour = np.minimum((result.arrival_s // simulated_s).astype(np.int64), hours - 1)
    weight = np.where(result.arrival_s - hour * simulated_s < half, 1.0, rest)
    met = met_targets(result, scenario.service_level)
    asked = np.bincount(hour, weight, minlength=hours)
    held = np.bincount(hour, weight * met, minlength=hours)
    edges: Floats = np.arange(hours + 1, dtype=np.float64) * simulated_s
    first, second = _paid_s(run, edges[:-1], edges[:-1] + half), _paid_s(run, edges[:-1] + half, edges[1:])
    replicas = (first + second * rest) / SECONDS_PER_HOUR * stands_for
    return DayPolicy(
        name=name,
        replicas=replicas,
        met=np.divide(held, asked, out=np.full(hours, np.nan), where=asked > 0),
        ttft_s=_hourly_ttft(run, hour, hours, scenario.target_quantile),
        replica_hours=float(replicas.sum()),
        attainment=float(held.sum() / asked.sum()),
        most_replicas=math.ceil(int(run.replicas.max()) * stands_for - 1e-9),
    )


def _hourly_ttft(run: ServiceRun, hour: Ints, hours: int, quantile: float) -> Floats:
    ttft = latencies(run.result, run.result.status == FINISHED).ttft_s
    when = hour[run.result.status == FINISHED]
    return np.array([np.quantile(ttft[when == k], quantile) if (when == k).any() else np.nan for k in range(hours)])


def _paid_s(run: ServiceRun, begin: Floats, end: Floats) -> Floats:
    """Replica-seconds paid between two times, from the staircase of paid replicas."""
    times, counts = run.time_s, run.replicas.astype(np.float64)
    counts[-1] = counts[-2]  # the run ends with its last answer, the replicas that served it are paid on
    area = np.concatenate([[0.0], np.cumsum(counts[:-1] * np.diff(times))])

    def upto(moment: Floats) -> Floats:
        place = np.clip(np.searchsorted(times, moment, side="right") - 1, 0, len(times) - 1)
        paid: Floats = area[place] + counts[place] * (moment - times[place])  # also before the first request
        return paid

    return upto(end) - upto(begin)
