"""A service that changes while it runs: replicas are started and stopped by a rule, one may fail."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput, require_int, require_number
from planner.inputs import EngineSettings, Limits
from planner.simulation import state
from planner.simulation.machine import Machine, collect, make_machine
from planner.simulation.records import ABANDONED, REJECTED, UNFINISHED, SimulationResult
from planner.step_time import StepTimeTable
from planner.workload import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """A rule like that of a horizontal autoscaler on requests in flight.

    Every `interval_s` the wanted number is ceil(unfinished requests ÷ `target_per_replica`), within
    the bounds. More replicas serve `startup_s` later (weights load, graphs are captured) and are paid
    from the start; fewer only after `cooldown_s` without a change, and a replica drains first.
    """

    min_replicas: int = 1
    max_replicas: int = 8
    target_per_replica: float = 32.0
    interval_s: float = 15.0
    startup_s: float = 120.0
    cooldown_s: float = 300.0

    def __post_init__(self) -> None:
        require_int("min_replicas", self.min_replicas)
        require_int("max_replicas", self.max_replicas, at_least=self.min_replicas, at_most=1000)
        require_number("target_per_replica", self.target_per_replica, above=0)
        require_number("interval_s", self.interval_s, above=0)
        require_number("startup_s", self.startup_s, at_least=0)
        require_number("cooldown_s", self.cooldown_s, at_least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Replica `replica` dies at `time_s`; its clients notice after `detection_s` and ask again elsewhere."""

    time_s: float
    replica: int = 0
    detection_s: float = 5.0
    recovery_s: float = math.inf  # from failure until it serves again

    def __post_init__(self) -> None:
        require_number("time_s", self.time_s, at_least=0)
        require_int("replica", self.replica, at_least=0)
        require_number("detection_s", self.detection_s, at_least=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServiceRun:
    """The records, and how many replicas were paid for and when.

    `time_s` and `replicas` are a staircase of paid replicas; `replica_seconds` its area.
    """

    result: SimulationResult
    time_s: Floats
    replicas: Ints
    replica_seconds: float
    num_retried: int


class _Host:
    """One replica with its life: paid from `paid_from`, serving from `ready_at`."""

    def __init__(self, machine: Machine, paid_from: float, ready_at: float) -> None:
        self.machine = machine
        self.paid_from, self.ready_at = paid_from, ready_at
        self.draining = False
        self.paid_until = math.inf

    def serves(self, now: float) -> bool:
        return self.ready_at <= now and not self.draining and now < self.paid_until


def simulate_service(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    num_replicas: int = 1,
    autoscaling: Autoscaling | None = None,
    failure: Failure | None = None,
) -> ServiceRun:
    """Serve an open stream while replicas come and go; the router picks the fewest unfinished requests.

    Parameters
    ----------
    requests, engine, limits, step_time
        As for `simulate_fleet`.
    num_replicas : int
        Replicas that serve from the start; under autoscaling at least its minimum.
    autoscaling : Autoscaling, optional
        The rule; None: the number stays.
    failure : Failure, optional
        One replica dies. What it had not finished is computed anew elsewhere; such a request keeps
        its original arrival, so its latencies hold the lost time.

    Returns
    -------
    ServiceRun
        Records and the staircase of paid replicas.
    """
    if requests.closed_loop_users or not len(requests):
        raise InvalidInput("requests", "closed or empty", "an open loop with at least one request")
    require_int("num_replicas", num_replicas, at_most=1000)
    if failure is not None and failure.replica >= num_replicas:
        raise InvalidInput("failure.replica", failure.replica, f"a replica from 0 to {num_replicas - 1}")
    return _Service(requests, engine, limits, step_time, num_replicas, autoscaling, failure).run()


class _Service:
    def __init__(
        self,
        requests: Requests,
        engine: EngineSettings,
        limits: Limits,
        step_time: StepTimeTable,
        num_replicas: int,
        autoscaling: Autoscaling | None,
        failure: Failure | None,
    ) -> None:
        self.requests, self.engine, self.limits, self.step_time = requests, engine, limits, step_time
        self.rule, self.failure = autoscaling, failure
        self.jobs = state.make_jobs(requests, limits.max_model_len)
        self.routes = np.zeros(len(requests), dtype=np.int64)
        self.hosts: list[_Host] = []
        self.start = float(requests.arrival_s[0])
        self.last_change = -math.inf
        self.retried: list[int] = []
        for _ in range(max(num_replicas, autoscaling.min_replicas if autoscaling else 1)):
            self.add(self.start, self.start)

    def add(self, now: float, ready_at: float) -> None:
        machine = make_machine(
            self.requests,
            self.engine,
            self.limits,
            self.step_time,
            stop_on_overload=False,
            jobs=self.jobs,
            feed=np.zeros(2 * len(self.requests), dtype=np.int64),  # room for retries
            closed=False,
        )
        self.hosts.append(_Host(machine, now, ready_at))

    def route(self, index: int, now: float) -> None:
        serving = [k for k, host in enumerate(self.hosts) if host.serves(now)]
        if not serving:  # all start up: the request waits for the first of them
            waiting = [k for k, host in enumerate(self.hosts) if not host.draining and host.paid_until == math.inf]
            if not waiting:
                return
            serving = [min(waiting, key=lambda k: self.hosts[k].ready_at)]
            now = max(now, self.hosts[serving[0]].ready_at)
        best = min(serving, key=lambda k: self.hosts[k].machine.outstanding(now))
        self.jobs["arrival"][index] = now
        self.hosts[best].machine.give(index)
        self.routes[index] = best

    def scale(self, now: float, rule: Autoscaling) -> None:
        kept = [host for host in self.hosts if not host.draining and host.paid_until == math.inf]
        unfinished = sum(host.machine.outstanding(now) for host in self.hosts if host.paid_until == math.inf)
        wanted = math.ceil(unfinished / rule.target_per_replica)
        wanted = min(max(wanted, rule.min_replicas), rule.max_replicas)
        if wanted > len(kept):
            for _ in range(wanted - len(kept)):
                self.add(now, now + rule.startup_s)
            self.last_change = now
        elif wanted < len(kept) and now - self.last_change >= rule.cooldown_s:
            for host in kept[wanted:]:
                host.draining = True
            self.last_change = now
        for host in self.hosts:
            if host.draining and host.paid_until == math.inf and host.machine.outstanding(now) == 0:
                host.paid_until = now

    def fail(self, failure: Failure) -> list[int]:
        """Stop the replica; returns what it had not finished, reset as if never served."""
        host, now = self.hosts[failure.replica], failure.time_s
        host.machine.run(now)
        host.paid_until = now
        mine = host.machine.feed[: host.machine.count("fed")]
        finish = self.jobs["finish"][mine]
        lost = mine[~(finish <= now) & ~np.isin(self.jobs["status"][mine], (REJECTED, ABANDONED))]
        for name in ("first_token", "finish", "admitted"):
            self.jobs[name][lost] = np.nan
        for name in ("max_gap", "preemptions", "made", "given", "own", "place"):
            self.jobs[name][lost] = 0
        self.jobs["status"][lost] = UNFINISHED
        host.machine.state["stopped"] = 1  # it takes no further step
        if math.isfinite(failure.recovery_s):
            self.add(now, now + failure.recovery_s)
        return [int(index) for index in lost]

    def run(self) -> ServiceRun:
        arrivals = self.requests.arrival_s
        events: list[tuple[float, int, str]] = [(float(t), k, "arrival") for k, t in enumerate(arrivals)]
        end = float(arrivals[-1])
        if self.rule:
            times = np.arange(self.start + self.rule.interval_s, end, self.rule.interval_s)
            events += [(float(t), -1, "scale") for t in times]
        if self.failure:
            events.append((self.failure.time_s, -2, "fail"))
            events.append((self.failure.time_s + self.failure.detection_s, -1, "retry"))
        for time, index, what in sorted(events):
            if what == "arrival":
                self.route(index, time)
            elif what == "scale" and self.rule:
                self.scale(time, self.rule)
            elif what == "fail" and self.failure:
                self.retried = self.fail(self.failure)
            elif what == "retry":
                for lost in self.retried:
                    self.route(lost, time)
        return self.finish()

    def finish(self) -> ServiceRun:
        for host in self.hosts:
            host.machine.state["closed"] = 1
            host.machine.run()
            if host.machine.count("stopped"):
                host.machine.state["stopped"] = 0  # the failed one: not a sign of overload
        machines = [host.machine for host in self.hosts]
        end = max(machine.clock_s for machine in machines)
        self.jobs["arrival"][:] = self.requests.arrival_s
        result = collect(self.requests, machines, self.step_time, self.routes)
        lives = [(host.paid_from, min(host.paid_until, end)) for host in self.hosts]
        times = np.unique(np.array([moment for life in lives for moment in life]))
        counts = np.array([sum(begin <= t < stop for begin, stop in lives) for t in times], dtype=np.int64)
        return ServiceRun(
            result=dataclasses.replace(result, duration_s=end - self.start),
            time_s=times,
            replicas=counts,
            replica_seconds=float(sum(stop - begin for begin, stop in lives)),
            num_retried=len(self.retried),
        )
