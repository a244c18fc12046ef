"""The step loop of one replica: when it stops, and that it can be stopped anywhere."""

import dataclasses
import math

import numpy as np
import pytest

from planner.simulation.kernel import loop
from planner.simulation.kernel.compiling import MAX_STEPS, STOPPED_BY_FAULT, STOPPED_BY_LOAD
from planner.simulation.machine import make_machine
from tests.simulation.cases import UNIT, limits, make, random_case
from tests.simulation.kernel.bench import Bench


def advance(b, until=math.inf):
    loop.advance(*b.machine, until)  # compiled


def test_an_idle_replica_waits_for_its_first_request():
    b = Bench(make([5.0], [1], [2]), limits())
    advance(b, 4.0)
    assert (b.st.clock, b.st.steps) == (0.0, 0)
    advance(b, 5.0)  # what comes at that very moment comes later
    assert b.st.steps == 0
    advance(b)
    assert (b.st.clock, b.st.steps, b.jobs.finish.tolist()) == (7.0, 2, [7.0])


@pytest.mark.parametrize(("until", "clock", "open_step"), [(1.0, 1.0, 0), (1.5, 2.0, 1), (2.0, 2.0, 0), (9.0, 3.0, 0)])
def test_a_step_that_starts_in_time_is_computed(until, clock, open_step):
    # Three steps of 1 s; a step that ends later than it is asked for keeps its tokens to itself.
    b = Bench(make([0], [1], [3]), limits())
    advance(b, until)
    assert (b.st.clock, b.st.step_open) == (clock, open_step)
    assert np.isnan(b.jobs[0].first_token) == (until < 1)
    advance(b)
    assert b.jobs[0].finish == 3.0


@pytest.mark.parametrize("seed", range(12))
def test_a_run_in_pieces_is_the_run_at_once(seed):
    requests, engine, capacity, table = random_case(seed)
    whole = make_machine(requests, engine, capacity, table)
    whole.run()
    pieces = make_machine(requests, engine, capacity, table)
    end = whole.clock_s
    for until in np.sort(np.random.default_rng(seed).uniform(0, end, 30)):
        pieces.run(float(until))
    pieces.run()
    for name in whole.jobs.dtype.names:
        np.testing.assert_array_equal(whole.jobs[name], pieces.jobs[name], name)
    for name in ("clock", "steps", "busy_s", "running_area", "waiting_area", "used_area", "hit_tokens"):
        assert whole.state[name] == pieces.state[name], name


def test_a_loop_that_never_ends_is_stopped():
    b = Bench(make([0], [1], [99]), limits())
    b.st.steps = MAX_STEPS + 1
    advance(b)
    assert b.st.stopped == STOPPED_BY_LOAD


def test_a_request_that_cannot_start_and_never_leaves_is_a_fault():
    # Blocks that nobody holds have gone: only a defect of the loop can do that.
    b = Bench(make([0], [5], [1]), limits(blocks=10))
    b.st.free_blocks = 0
    advance(b)
    assert b.st.stopped == STOPPED_BY_FAULT


def test_a_stopped_replica_stays_where_it_is():
    b = Bench(make([0], [5], [1]), limits())
    b.st.stopped = STOPPED_BY_LOAD
    advance(b)
    assert b.st.steps == 0


def test_a_static_batch_gives_all_blocks_back():
    b = Bench(make([0, 0, 0], [1, 1, 1], [3, 1, 1]), limits(seqs=2, blocks=40, max_len=10), name="static")
    advance(b, 2.5)
    assert b.st.free_blocks < 40
    advance(b)
    assert (b.st.free_blocks, b.st.batch) == (40, 0)
    assert b.jobs.finish.tolist() == [3.0, 1.0, 4.0]


def test_requests_that_come_during_a_step_are_read_in_it():
    # Reading takes 0.5 s, a step 1 s. The first is read until 0.5; the others, sent at 0.6 and 0.7, until 1.1 and 1.6.
    # The step that ends at 1.5 takes what has been read by then; its token is sent once both have been read.
    table = dataclasses.replace(UNIT, server_per_request_s=0.5)
    b = Bench(make([0, 0.6, 0.7], [1] * 3, [1] * 3), limits(), table=table)
    advance(b)
    assert b.jobs.first_token.tolist() == pytest.approx([1.6, 2.5, 3.5])
    assert b.jobs.admitted.tolist() == pytest.approx([0.5, 1.5, 2.5])
