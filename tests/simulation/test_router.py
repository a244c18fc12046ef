"""Replicas behind a router."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.errors import InvalidInput
from planner.inputs.traffic import Arrivals, Lengths, ServiceLevel, Traffic
from planner.service.metrics import measure
from planner.simulation.machine import make_machine, simulate
from planner.simulation.records import ABANDONED, REJECTED
from planner.simulation.router import ROUTERS, simulate_fleet
from planner.simulation.state import make_jobs
from planner.step_time.step_table import StepTimeTable
from planner.workload.drawing import draw_requests
from tests.simulation.cases import give, limits, make

TABLE = StepTimeTable.unit(64)
CAPACITY = limits(seqs=4, blocks=2000)


def workload(n: int = 4000, rate: float = 0.2):
    traffic = Traffic(
        arrivals=Arrivals(rate_rps=rate),
        prompt_tokens=Lengths(kind="constant", mean=10),
        output_tokens=Lengths(kind="exponential", mean=40, maximum=400),
    )
    return draw_requests(traffic, n, 5)


@pytest.mark.parametrize("router", ROUTERS)
def test_one_replica_is_the_replica(router):
    requests = workload(500, 0.05)
    alone = simulate(requests, get_engine("vllm"), CAPACITY, TABLE)
    fleet = simulate_fleet(requests, get_engine("vllm"), CAPACITY, TABLE, num_replicas=1, router=router)
    np.testing.assert_array_equal(alone.finish_s, fleet.finish_s)
    assert alone.num_steps == fleet.num_steps


@pytest.mark.parametrize("router", ROUTERS)
def test_each_replica_serves_its_own_share(router):
    requests = workload(1000)
    fleet = simulate_fleet(requests, get_engine("vllm"), CAPACITY, TABLE, num_replicas=3, router=router, seed=1)
    for replica in range(3):
        mine = fleet.replica == replica
        part = make(requests.arrival_s[mine], requests.prompt_tokens[mine], requests.output_tokens[mine])
        alone = simulate(part, get_engine("vllm"), CAPACITY, TABLE)
        np.testing.assert_array_equal(alone.finish_s, fleet.finish_s[mine])


def test_smarter_routers_wait_less():
    # Random splitting keeps Poisson streams, turns make them more regular, looking at the load is best.
    requests = workload(20_000, 0.33)
    waits = {}
    for router in ("random", "round_robin", "power_of_two", "least_outstanding"):
        fleet = simulate_fleet(requests, get_engine("vllm"), CAPACITY, TABLE, num_replicas=4, router=router, seed=1)
        waits[router] = measure(fleet, ServiceLevel()).wait_s.mean
    assert waits["random"] > waits["round_robin"] > waits["least_outstanding"]
    assert waits["random"] > waits["power_of_two"] > waits["least_outstanding"]


def test_least_outstanding_by_hand():
    # 0: both idle, the first takes A (10 steps). 0.5: the second takes B (1 step). 2: B is done, the second takes C.
    requests = make([0, 0.5, 2], [1, 1, 1], [10, 1, 1])
    fleet = simulate_fleet(requests, get_engine("vllm"), CAPACITY, TABLE, num_replicas=2, router="least_outstanding")
    assert fleet.replica.tolist() == [0, 1, 1]
    assert fleet.finish_s.tolist() == [10, 1.5, 3]


def test_an_answer_is_outstanding_until_its_last_token_is_sent():
    # Reading takes nothing, a token 1.5 s: the engine is done with A at 1, its client has it at 2.5. B comes before and
    # goes to the second replica; C comes when A has gone and B, sent at 4, has not.
    table = dataclasses.replace(TABLE, server_per_token_s=1.5)
    requests = make([0, 1.5, 2.75], [1, 1, 1], [1, 1, 1])
    fleet = simulate_fleet(requests, get_engine("vllm"), CAPACITY, table, num_replicas=2, router="least_outstanding")
    assert fleet.replica.tolist() == [0, 1, 0]
    assert fleet.finish_s.tolist() == [2.5, 4, 5.25]


def _routes_by_stopping_everyone(requests, engine, table, num_replicas, options):
    """Every replica that may be chosen is stopped at each arrival and asked, even one whose step goes on."""
    jobs = make_jobs(requests, CAPACITY.max_model_len)
    room = np.zeros((num_replicas, len(requests)), dtype=np.int64)
    machines = [make_machine(requests, engine, CAPACITY, table, jobs=jobs, feed=feed, closed=False) for feed in room]
    routes: list[int] = []
    for index, arrival in enumerate(requests.arrival_s):
        for k in set(options[index]):
            machines[k].run(float(arrival))
        gone = (jobs["finish"] <= arrival) | np.isin(jobs["status"], (REJECTED, ABANDONED))
        here = np.bincount(np.array(routes, dtype=int)[~gone[:index]], minlength=num_replicas)
        best = int(min(options[index], key=lambda k: here[k]))
        give(machines[best], index)
        routes.append(best)
    for machine in machines:
        machine.state["closed"] = 1
        machine.run()
    return routes, jobs["finish"]


@pytest.mark.parametrize("router", ["least_outstanding", "power_of_two"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("vllm", {}),
        ("vllm", {"patience_s": 30.0, "timeout_s": 90.0, "max_queued_requests": 5}),
        ("sglang", {}),
        ("tgi", {}),
        ("static", {}),
    ],
)
@pytest.mark.parametrize("server_s", [0.0, 0.05])
def test_replicas_that_are_busy_need_not_be_stopped(router, name, more, server_s):
    engine = dataclasses.replace(get_engine(name), **more)
    table = dataclasses.replace(TABLE, server_per_request_s=server_s, server_per_token_s=server_s)
    requests = workload(400, 0.3)
    options = np.tile(np.arange(3), (400, 1))
    if router == "power_of_two":  # the two that the router draws
        options = np.random.default_rng(np.random.SeedSequence([1, 2])).integers(0, 3, (400, 2))
    routes, finish = _routes_by_stopping_everyone(requests, engine, table, 3, options)
    fleet = simulate_fleet(requests, engine, CAPACITY, table, num_replicas=3, router=router, seed=1)
    assert fleet.replica.tolist() == routes
    np.testing.assert_array_equal(fleet.finish_s, finish)


def test_prefix_affinity_keeps_a_group_together():
    requests = make(np.arange(60.0), [40] * 60, [2] * 60, prefix_group=np.arange(60) % 3, prefix_tokens=np.full(60, 32))
    hits = {}
    for router in ("round_robin", "prefix_affinity"):
        fleet = simulate_fleet(
            requests, get_engine("vllm"), limits(seqs=4, blocks=500, size=16), TABLE, num_replicas=2, router=router
        )
        hits[router] = fleet.prefix_tokens_hit
    assert hits == {"prefix_affinity": 57 * 32, "round_robin": 54 * 32}


def test_a_closed_loop_has_no_router():
    requests = make([0, 0], [1, 1], [1, 1], closed_loop_users=1)
    with pytest.raises(InvalidInput, match="closed"):
        simulate_fleet(requests, get_engine("vllm"), CAPACITY, TABLE, num_replicas=2)
