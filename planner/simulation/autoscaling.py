"""A service that changes while it runs: replicas are started and stopped by a rule or a timetable, one may fail."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput, require_choice, require_int, require_number
from planner.inputs import EngineSettings, Limits
from planner.simulation import state
from planner.simulation.machine import Machine, collect, make_machine, replicate
from planner.simulation.records import ABANDONED, REJECTED, UNFINISHED, SimulationResult
from planner.simulation.router import ROUTERS, fixed_routes
from planner.step_time import StepTimeTable
from planner.workload import Requests

FAIL, RETRY, CHANGE, READY = range(4)  # what happens first at one moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """A rule like that of the Kubernetes autoscaler on requests in flight.

    Every `interval_s` the wanted number is ceil(unfinished requests ÷ `target_per_replica`), within
    the bounds; a ratio within `tolerance` of the replicas there are changes nothing. More replicas serve `startup_s`
    later (weights load, graphs are captured) and are paid from the start. Fewer are kept only down to the most that
    was wanted within the last `cooldown_s`, and a replica drains first. Interval, cooldown and tolerance are the
    defaults of Kubernetes (HorizontalPodAutoscaler: sync period, downscale stabilisation, tolerance), the others
    assumptions.
    """

    min_replicas: int = 1
    max_replicas: int = 8
    target_per_replica: float = 32.0
    interval_s: float = 15.0
    startup_s: float = 120.0
    cooldown_s: float = 300.0
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        require_int("min_replicas", self.min_replicas)
        require_int("max_replicas", self.max_replicas, at_least=self.min_replicas, at_most=1000)
        require_number("target_per_replica", self.target_per_replica, above=0)
        require_number("interval_s", self.interval_s, above=0)
        require_number("startup_s", self.startup_s, at_least=0)
        require_number("cooldown_s", self.cooldown_s, at_least=0)
        require_number("tolerance", self.tolerance, at_least=0, at_most=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """So many replicas serve from each of these times on; those that are added start `startup_s` earlier."""

    time_s: tuple[float, ...]
    replicas: tuple[int, ...]
    startup_s: float = 120.0

    def __post_init__(self) -> None:
        if len(self.time_s) != len(self.replicas) or not self.time_s or list(self.time_s) != sorted(self.time_s):
            raise InvalidInput("time_s", self.time_s, "ascending times, one for each number of replicas")
        for number in self.replicas:
            require_int("replicas", number, at_most=1000)
        require_number("startup_s", self.startup_s, at_least=0)


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

    `time_s` and `replicas` are a staircase of paid replicas; `replica_seconds` its area. `retried` are the requests
    that a failed replica had not finished.
    """

    result: SimulationResult
    time_s: Floats
    replicas: Ints
    replica_seconds: float
    retried: tuple[int, ...] = ()

    @property
    def num_retried(self) -> int:
        """How many requests were begun anew."""
        return len(self.retried)


@dataclass(slots=True)
class _Host:
    """One replica with its life: paid from `paid_from`, serving from `ready_at`. It can live again once drained."""

    machine: Machine
    paid_from: float = math.inf
    ready_at: float = math.inf
    paid_until: float = -math.inf
    draining: bool = False
    failed: bool = False

    def serves(self, now: float) -> bool:
        return self.ready_at <= now and not self.draining and now < self.paid_until

    @property
    def kept(self) -> bool:
        return not self.draining and self.paid_until == math.inf

    @property
    def lives(self) -> bool:
        return self.paid_until == math.inf


def simulate_service(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    num_replicas: int = 1,
    autoscaling: Autoscaling | None = None,
    timetable: Timetable | None = None,
    failure: Failure | None = None,
    router: str = "least_outstanding",
    seed: int = 0,
) -> ServiceRun:
    """Serve an open stream while replicas come and go.

    Parameters
    ----------
    requests, engine, limits, step_time
        As for `simulate_fleet`.
    num_replicas : int
        Replicas that serve from the start; under autoscaling at least its minimum.
    autoscaling : Autoscaling, optional
        The rule; None: the number stays.
    timetable : Timetable, optional
        How many serve when, in place of a rule.
    failure : Failure, optional
        One replica dies. What it had not finished is computed anew elsewhere; such a request keeps
        its original arrival, so its latencies hold the lost time.
    router : str
        As for `simulate_fleet`, over the replicas that serve when a request arrives.
    seed : int
        Seed of the routers that draw.

    Returns
    -------
    ServiceRun
        Records and the staircase of paid replicas.
    """
    if requests.closed_loop_users or not len(requests):
        raise InvalidInput("requests", "closed or empty", "an open loop with at least one request")
    require_int("num_replicas", num_replicas, at_most=1000)
    require_choice("router", router, ROUTERS)
    if autoscaling is not None and timetable is not None:
        raise InvalidInput("timetable", "given", "a rule or a timetable, not both")
    if failure is not None and failure.replica >= num_replicas:
        raise InvalidInput("failure.replica", failure.replica, f"a replica from 0 to {num_replicas - 1}")
    most = max(num_replicas, autoscaling.max_replicas if autoscaling else 0, *(timetable.replicas if timetable else ()))
    changes = autoscaling is not None or timetable is not None
    # Twice as many: a draining replica and its successor can live at the same time.
    machine = make_machine(
        requests,
        engine,
        limits,
        step_time,
        stop_on_overload=False,
        jobs=state.make_jobs(requests, limits.max_model_len),
        closed=False,
    )
    count = (2 * most if changes else most) + (failure is not None)
    service = _Service(requests, machine, count, autoscaling, timetable, failure, router, seed)
    return service.run(num_replicas, step_time)


class _Service:
    def __init__(
        self,
        requests: Requests,
        machine: Machine,
        most: int,
        autoscaling: Autoscaling | None,
        timetable: Timetable | None,
        failure: Failure | None,
        router: str,
        seed: int,
    ) -> None:
        self.requests, self.jobs = requests, machine.jobs
        self.rule, self.timetable, self.failure, self.router = autoscaling, timetable, failure, router
        room = len(requests) * (1 if failure is None else 2)  # for retries
        self.replicas = replicate(machine, most, room=room)
        self.hosts = [_Host(each) for each in self.replicas.machines()]
        self.routes = np.zeros(len(requests), dtype=np.int64)
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
        self.start, self.end = float(requests.arrival_s[0]), float(requests.arrival_s[-1])
        self.wanted_before: deque[tuple[float, int]] = deque()
        self.retried: tuple[int, ...] = ()
        self.lives: list[tuple[int, float, float]] = []
        self.events: list[tuple[float, int, int]] = []

    def add(self, now: float, ready_at: float) -> None:
        """Start a replica: one that has not lived yet or has been drained, else one that still drains."""
        free = [k for k, host in enumerate(self.hosts) if not host.lives and not host.failed]
        if not free:
            draining = next(host for host in self.hosts if host.draining and host.lives)
            draining.draining = False
            return
        host = self.hosts[free[0]]
        host.paid_from, host.ready_at, host.paid_until, host.draining = now, ready_at, math.inf, False
        if ready_at > now:
            heapq.heappush(self.events, (ready_at, READY, 0))

    def stop(self, k: int, now: float) -> None:
        """End a replica's life."""
        host = self.hosts[k]
        self.lives.append((k, host.paid_from, now))
        host.paid_until, host.draining = now, False

    def dispatch(self, begin: int, end: int, now: float) -> None:
        """Route requests `begin` to `end`, which arrive while the serving replicas stay the same."""
        if begin == end:
            return
        serving = np.array([k for k, host in enumerate(self.hosts) if host.serves(now)], dtype=np.int64)
        if not len(serving):  # all start up: the requests wait for the first of them
            waiting = [k for k, host in enumerate(self.hosts) if host.kept]
            if not waiting:
                return
            first = min(waiting, key=lambda k: self.hosts[k].ready_at)
            self.jobs["arrival"][begin:end] = np.maximum(self.jobs["arrival"][begin:end], self.hosts[first].ready_at)
            serving = np.array([first], dtype=np.int64)
        group = self.requests.prefix_group[begin:end]
        chosen = fixed_routes(group, len(serving), self.router, self.rng, before=begin)
        options = serving[np.newaxis] if chosen is None else serving[chosen][:, np.newaxis]
        if self.router == "power_of_two" and len(serving) > 1:
            options = serving[self.rng.integers(0, len(serving), (end - begin, 2))]
        self.replicas.dispatch(options, begin=begin, end=end, routes=self.routes)

    def wanted(self, now: float, kept: int) -> int:
        """Replicas that the rule or the timetable asks for at a time."""
        if self.timetable is not None:
            table = self.timetable
            ahead = int(np.searchsorted(table.time_s, now + table.startup_s + 1e-9, side="right")) - 1
            here = int(np.searchsorted(table.time_s, now + 1e-9, side="right")) - 1
            return max(table.replicas[max(0, here) : max(0, ahead) + 1])
        assert self.rule is not None
        unfinished = sum(host.machine.outstanding(now) for host in self.hosts if host.lives)
        ratio = unfinished / self.rule.target_per_replica
        asked = kept if abs(ratio / kept - 1) <= self.rule.tolerance else math.ceil(ratio)
        asked = min(max(asked, self.rule.min_replicas), self.rule.max_replicas)
        self.wanted_before.append((now, asked))
        while self.wanted_before[0][0] < now - self.rule.cooldown_s:
            self.wanted_before.popleft()
        return asked if asked >= kept else min(kept, max(number for _, number in self.wanted_before))

    def scale(self, now: float) -> None:
        """Start or stop replicas, and end those that have drained."""
        kept = [host for host in self.hosts if host.kept]
        wanted = self.wanted(now, len(kept))
        startup_s = self.rule.startup_s if self.rule else self.timetable.startup_s if self.timetable else 0.0
        for _ in range(wanted - len(kept)):
            self.add(now, now + startup_s)
        for host in sorted(kept, key=lambda host: (host.paid_from, host.ready_at))[wanted:]:
            host.draining = True
        for k, host in enumerate(self.hosts):
            if host.draining and host.lives and host.machine.outstanding(now) == 0:
                self.stop(k, now)
        if self.timetable is not None and any(host.draining for host in self.hosts):  # look again until it is drained
            heapq.heappush(self.events, (now + 15.0, CHANGE, 1))

    def fail(self, failure: Failure) -> tuple[int, ...]:
        """Stop the replica; returns what it had not finished, reset as if never served."""
        host, now = self.hosts[failure.replica], failure.time_s
        host.machine.run(now)
        host.failed = True
        self.stop(failure.replica, now)
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
        return tuple(int(index) for index in lost)

    def run(self, num_replicas: int, step_time: StepTimeTable) -> ServiceRun:
        for _ in range(max(num_replicas, self.rule.min_replicas if self.rule else 1)):
            self.add(self.start, self.start)
        if self.rule:
            times = np.arange(self.start + self.rule.interval_s, self.end, self.rule.interval_s)
            self.events += [(float(t), CHANGE, 0) for t in times]
        if self.timetable:
            early = [t - self.timetable.startup_s for t in self.timetable.time_s]
            moments = {max(self.start, t) for t in (*self.timetable.time_s, *early)}
            self.events += [(t, CHANGE, 0) for t in moments if t <= self.end]
        if self.failure:
            self.events.append((self.failure.time_s, FAIL, 0))
            self.events.append((self.failure.time_s + self.failure.detection_s, RETRY, 0))
        heapq.heapify(self.events)
        arrivals, done, now = self.requests.arrival_s, 0, self.start
        while self.events:
            time, what, _ = heapq.heappop(self.events)
            upto = int(np.searchsorted(arrivals, time, side="left"))
            self.dispatch(done, upto, now)
            done, now = upto, time
            if what == CHANGE:
                self.scale(time)
            elif what == FAIL and self.failure:
                self.retried = self.fail(self.failure)
            elif what == RETRY:
                for lost in self.retried:
                    self.jobs["arrival"][lost] = time
                    self.dispatch(lost, lost + 1, time)
        self.dispatch(done, len(arrivals), now)
        return self.finish(step_time)

    def finish(self, step_time: StepTimeTable) -> ServiceRun:
        hosts = [host for host in self.hosts if host.paid_from < math.inf]
        for host in hosts:
            host.machine.state["closed"] = 1
            host.machine.run()
            if host.machine.count("stopped"):
                host.machine.state["stopped"] = 0  # the failed one: not a sign of overload
        machines = [host.machine for host in hosts]
        end = max(machine.clock_s for machine in machines)
        self.jobs["arrival"][:] = self.requests.arrival_s
        result = collect(self.requests, machines, step_time, self.routes)
        lives = [(begin, stop) for _, begin, stop in self.lives]
        lives += [(host.paid_from, end) for host in hosts if host.lives]
        times = np.unique(np.array([moment for life in lives for moment in life]))
        counts = np.array([sum(begin <= t < stop for begin, stop in lives) for t in times], dtype=np.int64)
        return ServiceRun(
            result=dataclasses.replace(result, duration_s=end - self.start),
            time_s=times,
            replicas=counts,
            replica_seconds=float(sum(stop - begin for begin, stop in lives)),
            retried=self.retried,
        )
