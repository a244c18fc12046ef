"""The router that looks at replicas' loads, by hand. test_router.py holds it against one that stops every replica."""

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.simulation.kernel.dispatch import outstanding, would_stand_still
from planner.simulation.machine import make_machine, replicate
from planner.simulation.records import ABANDONED, FINISHED
from planner.simulation.state import make_jobs
from tests.simulation.cases import UNIT, limits, make


@pytest.mark.parametrize(
    ("state", "until", "still"),
    [
        ({}, 5.0, True),  # nothing to do
        ({"fed": 1}, 5.0, False),  # a request to take
        ({"fed": 1, "next": 1, "waiting": 1}, 5.0, False),
        ({"fed": 1, "next": 1, "running": 1}, 5.0, False),
        ({"fed": 1, "next": 1, "running": 1, "step_open": 1, "clock": 6.0}, 5.0, True),  # a step goes on until 6
        ({"fed": 1, "next": 1, "running": 1, "step_open": 1, "clock": 5.0}, 5.0, False),
    ],
)
def test_a_replica_that_would_stand_still_is_left_alone(bench, state, until, still):
    b = bench(make([0], [1], [1]), limits())
    b.st.fed = 0
    for name, value in state.items():
        setattr(b.st, name, value)
    assert b.do(would_stand_still, until=until) == still


def test_an_answer_is_outstanding_until_it_is_sent(bench):
    # Four were given; one was turned away; two are finished, and sent at 3 and 5.
    b = bench(make([0] * 4, [1] * 4, [1] * 4), limits())
    b.st.fed, b.st.done, b.st.unsent, b.st.unsent_first, b.st.unsent_last = 4, 3, 2, 1, 2
    b.jobs[1].finish, b.jobs[1].after, b.jobs[1].status = 3.0, 2, FINISHED
    b.jobs[2].finish, b.jobs[2].after, b.jobs[2].status = 5.0, -1, FINISHED
    b.jobs[3].status = ABANDONED
    assert b.do(outstanding, now=2.9) == 1 + 2
    assert b.do(outstanding, now=3.0) == 1 + 1
    assert b.do(outstanding, now=5.0) == 1
    assert b.do(outstanding, now=9.0) == 1


def fleet(arrival, output, count):
    requests = make(arrival, [1] * len(arrival), output)
    jobs = make_jobs(requests, 1000)
    one = make_machine(requests, get_engine("vllm"), limits(), UNIT, jobs=jobs, closed=False)
    return replicate(one, count, room=len(requests))


def test_the_first_of_the_least_loaded_takes_the_request():
    # 0: all idle, the first. 0.5 and 0.6: the second and the third. 0.7: one each, the first again. 3: the second and
    # the third have made their two tokens, the first one of its requests.
    replicas = fleet([0, 0.5, 0.6, 0.7, 3.0], [9, 2, 2, 9, 1], 3)
    assert replicas.dispatch(np.array([[0, 1, 2]])).tolist() == [0, 1, 2, 0, 1]


def test_the_order_of_the_options_breaks_ties():
    replicas = fleet([0, 0.5], [9, 9], 3)
    assert replicas.dispatch(np.array([[2, 1, 0]])).tolist() == [2, 1]


def test_each_request_has_options_of_its_own():
    replicas = fleet([0, 0.5, 0.6], [9, 9, 9], 3)
    assert replicas.dispatch(np.array([[0, 1], [0, 2], [0, 0]])).tolist() == [0, 2, 0]


def test_what_a_replica_was_given_is_in_its_feed():
    replicas = fleet([0, 0.5, 0.6, 0.7], [9] * 4, 2)
    replicas.dispatch(np.array([[0, 1]]))
    fed = [int(machine.state["fed"][0]) for machine in replicas.machines()]
    assert [machine.feed[:k].tolist() for machine, k in zip(replicas.machines(), fed, strict=True)] == [[0, 2], [1, 3]]
