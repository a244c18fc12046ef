"""Requests that come and clients who leave, by hand."""

import dataclasses
import math

import numpy as np
import pytest

from planner.simulation.kernel import arrivals, server
from planner.simulation.kernel.compiling import ENOUGH_DONE, STOPPED_BY_LOAD
from planner.simulation.records import ABANDONED, REJECTED, UNFINISHED
from planner.simulation.state import NUM_BINS, NUM_REASONS
from tests.simulation.cases import UNIT, limits, make


def at(b, clock):
    b.st.clock = clock
    b.st.sending = b.do(server.next_sending_s)
    b.do(arrivals.take_arrivals)


def test_what_has_come_is_queued_in_order(bench):
    b = bench(make([0, 1, 2, 3], [1] * 4, [1] * 4), limits(), async_scheduling=False)
    at(b, 0.5)
    assert b.waiting == [0]
    at(b, 2.0)
    assert b.waiting == [0, 1, 2]
    assert (b.st.next, b.st.read) == (3, 3)


def test_a_request_that_the_server_has_not_read_is_not_there(bench):
    # Read until 0.75 and 1.5, although both have come at 0.
    table = dataclasses.replace(UNIT, server_per_request_s=0.75)
    b = bench(make([0, 0], [1] * 2, [1] * 2), limits(), table=table, async_scheduling=False)
    at(b, 1.0)
    assert b.waiting == [0]
    at(b, 1.5)
    assert b.waiting == [0, 1]


@pytest.mark.parametrize(
    ("name", "changes", "queued"),
    [
        ("vllm", {}, [0]),  # the step from 2 on was filled when the one before it began, at 1
        ("sglang", {}, [0]),
        ("tensorrt-llm", {}, [0]),
        ("vllm", {"async_scheduling": False}, [0, 1]),
        ("tgi", {}, [0, 1]),
    ],
)
def test_an_engine_that_schedules_ahead_sees_who_came_a_step_earlier(bench, name, changes, queued):
    b = bench(make([0.5, 1.5, 3], [1] * 3, [1] * 3), limits(), name=name, **changes)
    b.st.running, b.st.filled = 1, 1.0
    at(b, 2.0)
    assert b.waiting == queued


def test_an_engine_with_nothing_to_run_takes_who_is_there(bench):
    b = bench(make([0.5, 1.5, 3], [1] * 3, [1] * 3), limits())
    b.st.filled = 1.0
    at(b, 2.0)
    assert b.waiting == [0, 1]


@pytest.mark.parametrize(
    ("running", "since_prefill", "looks"), [(0, 1, True), (1, 1, False), (1, 4, True), (1, 0, True)]
)
def test_the_inbox_is_looked_at_now_and_then(bench, running, since_prefill, looks):
    b = bench(make([0], [1], [1]), limits(), name="sglang", receive_interval_steps=4)
    b.st.running, b.st.steps_since_prefill = running, since_prefill
    at(b, 1.0)
    assert b.waiting == ([0] if looks else [])


@pytest.mark.parametrize(
    ("name", "changes", "rejected"),
    [
        ("vllm", {}, [3]),  # beyond the context
        ("vllm", {"max_queued_requests": 1}, [2, 3]),  # one for the free slot, one that waits
        ("tgi", {"max_concurrent_requests": 1}, [1, 2, 3]),
        ("vllm", {"max_loras": 0}, [0, 3]),  # LoRA is off
    ],
)
def test_who_is_turned_away(bench, name, changes, rejected):
    adapter = np.array([7, -1, -1, -1]) if "max_loras" in changes else None
    b = bench(make([0] * 4, [1, 1, 1, 999], [5] * 4, adapter=adapter), limits(seqs=1), name=name, **changes)
    at(b, 0.0)
    assert np.flatnonzero(b.jobs.status == REJECTED).tolist() == rejected
    assert b.st.done == len(rejected)
    assert b.waiting == [k for k in range(4) if k not in rejected]


def test_who_is_turned_away_in_a_closed_loop_asks_again(bench):
    b = bench(make([0] * 3, [999, 1, 1], [5] * 3, closed_loop_users=1, think_time_s=2.0), limits())
    at(b, 0.0)
    assert (b.st.ready, b.st.sending) == (1, 2.0)


def test_a_queue_that_outgrows_everything_stops_the_run(bench):
    # More than 5 wait, more than 30 % of those that came, and enough are done to tell the capacity.
    b = bench(make([0] * 20, [1] * 20, [1] * 20), limits())
    b.rules.stop_waiting = 5
    b.st.done = ENOUGH_DONE - 1
    at(b, 0.0)
    assert not b.st.stopped
    b.st.done = ENOUGH_DONE
    at(b, 0.0)
    assert b.st.stopped == STOPPED_BY_LOAD


@pytest.mark.parametrize(("waiting", "stops"), [(6, False), (7, True)])
def test_a_queue_of_thirty_percent_is_no_overload(bench, waiting, stops):
    b = bench(make([0] * 20, [1] * 20, [1] * 20), limits())
    at(b, 0.0)
    b.rules.stop_waiting, b.st.done, b.st.waiting = 5, ENOUGH_DONE, waiting
    at(b, 1.0)
    assert bool(b.st.stopped) == stops


def test_gaps_are_filed_by_twentieths_of_the_requests(bench):
    b = bench(make(list(range(40)), [1] * 40, [1] * 40), limits(), async_scheduling=False)
    for clock in (0, 1, 2, 3, 39):
        at(b, float(clock))
        assert b.st.gaps_from == NUM_REASONS + clock // 2 * NUM_BINS


# -- patience


def impatient(bench, *, arrival, patience_s=None, timeout_s=None, capacity=None, output=5):
    n = len(arrival)
    b = bench(
        make(arrival, [2] * n, [output] * n), capacity or limits(seqs=2), patience_s=patience_s, timeout_s=timeout_s
    )
    b.st.sending = b.do(server.next_sending_s)
    return b


def test_who_came_first_loses_patience_first(bench):
    b = impatient(bench, arrival=[0, 1, 2], patience_s=10.0)
    at(b, 3.0)
    assert b.do(arrivals.oldest_here, silent=True) == 0
    assert b.do(arrivals.patience_since, silent=True) == 0.0
    b.jobs[0].first_token = 3.5  # it has its first token, not yet its answer
    assert b.do(arrivals.patience_since, silent=True) == 1.0
    assert b.do(arrivals.patience_since, silent=False) == 0.0
    b.jobs.status[:] = REJECTED
    assert b.do(arrivals.patience_since, silent=True) == math.inf
    assert b.do(arrivals.oldest_here, silent=False) == -1


def test_a_client_leaves_after_its_patience_not_before(bench):
    b = impatient(bench, arrival=[0, 1, 2], patience_s=3.0)
    at(b, 3.0)
    assert b.waiting == [0, 1, 2]
    at(b, 3.5)
    assert b.waiting == [1, 2]
    assert b.jobs.status.tolist() == [ABANDONED, UNFINISHED, UNFINISHED]
    assert b.st.waiting_area == 3.0  # it waited until it left
    at(b, 9.0)
    assert b.waiting == []
    assert b.st.done == 3


def test_a_client_who_leaves_takes_its_sequence_along(bench):
    b = impatient(bench, arrival=[0, 0, 0], timeout_s=4.0)
    at(b, 0.0)
    b.prefill()
    b.decode(2)
    assert b.decoding == [0, 1]
    at(b, 4.5)
    assert (b.running, b.waiting) == ([], [])
    assert b.st.free_blocks == b.rules.blocks
    assert (b.jobs.status == ABANDONED).all()


def test_a_token_that_is_computed_and_not_sent_is_not_seen(bench):
    # The step ends at 1, the server sends its tokens at 4: A came at 0 and B at 2.
    b = impatient(bench, arrival=[0, 2], patience_s=3.0)
    slots = b.admit(0, 1)
    for slot in slots:
        b.slots[slot].computed = b.slots[slot].known
    b.st.partial_tokens, b.st.clock, b.st.server_free = 4, 1.0, 4.0
    b.do(arrivals.let_go_unseen)
    assert b.jobs.status.tolist() == [ABANDONED, UNFINISHED]
    assert b.running == [1]


@pytest.mark.parametrize("job", [0, 1, 2])
def test_leaving_the_queue_from_anywhere(bench, job):
    b = impatient(bench, arrival=[0, 0, 0], patience_s=3.0)
    at(b, 0.0)
    b.do(arrivals.leave_queue, job=job)
    assert b.waiting == [k for k in range(3) if k != job]
