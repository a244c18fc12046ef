"""Several replicas behind a router."""

from __future__ import annotations

import numpy as np

from planner.arrays import Ints
from planner.errors import InvalidInput, require_choice, require_int
from planner.inputs import EngineSettings, Limits
from planner.simulation import state
from planner.simulation.machine import collect, make_machine, replicate
from planner.simulation.records import SimulationResult
from planner.step_time import StepTimeTable
from planner.workload import Requests

ROUTERS = ("round_robin", "random", "least_outstanding", "power_of_two", "prefix_affinity")


def simulate_fleet(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    num_replicas: int,
    router: str = "round_robin",
    seed: int = 0,
    stop_on_overload: bool = True,
) -> SimulationResult:
    """Serve an open stream of requests on equal replicas.

    Parameters
    ----------
    requests : Requests
        The workload of the whole service, open loop.
    engine, limits, step_time
        As for `simulate`, of one replica.
    num_replicas : int
        How many.
    router : str
        round_robin; random; least_outstanding (fewest requests whose last token has not been sent, lowest
        number on ties); power_of_two (the lesser of two random replicas); prefix_affinity (a prefix group
        stays on one replica, requests without a group go round).
    seed : int
        Seed of the routers that draw.
    stop_on_overload : bool
        As for `simulate`, per replica.

    Returns
    -------
    SimulationResult
        Records of all requests with their replica; sums and averages over all replicas
        (`mean_running` and `mean_waiting` of the service, fractions per replica).
    """
    require_int("num_replicas", num_replicas, at_most=10_000)
    require_choice("router", router, ROUTERS)
    if not len(requests):
        raise InvalidInput("requests", 0, "at least one request")
    if requests.closed_loop_users:
        raise InvalidInput("arrivals", "closed", "an open loop; give each replica its share of users")
    rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
    chosen = fixed_routes(requests.prefix_group, num_replicas, router, rng)
    one = make_machine(
        requests,
        engine,
        limits,
        step_time,
        stop_on_overload=stop_on_overload,
        jobs=state.make_jobs(requests, limits.max_model_len),
        closed=chosen is not None,
    )
    if chosen is not None:
        machines = []
        for k, machine in enumerate(replicate(one, num_replicas, room=0).machines()):
            feed = np.flatnonzero(chosen == k)
            machine.state["fed"] = len(feed)
            machines.append(machine._replace(feed=feed))
            machines[-1].run()
        return collect(requests, machines, step_time, chosen)
    replicas = replicate(one, num_replicas, room=len(requests))
    options = np.arange(num_replicas, dtype=np.int64)[np.newaxis]
    if router == "power_of_two":
        options = rng.integers(0, num_replicas, (len(requests), 2))
    routes = replicas.dispatch(options)
    machines = replicas.machines()
    for machine in machines:
        machine.raise_fault()
        machine.state["closed"] = 1
        machine.run()
    return collect(requests, machines, step_time, routes)


def fixed_routes(group: Ints, num_replicas: int, router: str, rng: np.random.Generator, before: int = 0) -> Ints | None:
    """Replica of each request where the router does not look at the replicas' load; `before` have come already."""
    n = len(group)
    if num_replicas == 1:
        return np.zeros(n, dtype=np.int64)
    if router == "round_robin":
        return np.arange(before, before + n, dtype=np.int64) % num_replicas
    if router == "random":
        return rng.integers(0, num_replicas, n)
    if router == "prefix_affinity":
        return np.where(group >= 0, group, np.arange(before, before + n)) % num_replicas
    return None
