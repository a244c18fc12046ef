"""One replica: bad input, totals over replicas, and the verdict whether it keeps up."""

import dataclasses
import math

import numpy as np
import pytest

from planner.catalog.engines import engine_names, get_engine
from planner.errors import InvalidInput
from planner.simulation import kernel, state
from planner.simulation.machine import bin_middles, collect, make_machine, replicate, simulate, stability
from planner.simulation.records import ABANDONED, FINISHED, REJECTED
from planner.step_time.step_table import StepTimeTable
from tests.simulation.cases import UNIT, give, limits, make

VLLM = get_engine("vllm")


def test_nothing_to_do_is_an_error():
    with pytest.raises(InvalidInput, match="at least one request"):
        simulate(make([], [], []), VLLM, limits(), UNIT)


@pytest.mark.parametrize("name", engine_names())
def test_without_memory_every_request_is_turned_away(name):
    result = simulate(make([0, 1], [5, 5], [5, 5]), get_engine(name), limits(blocks=0), UNIT)
    assert (result.status == REJECTED).all()
    assert result.num_steps == 0


def test_too_long_for_the_context_or_the_pool_is_turned_away():
    requests = make([0, 0, 0], [95, 10, 60], [6, 10, 2])
    result = simulate(requests, VLLM, limits(max_len=100, blocks=60), UNIT)
    assert (result.status == REJECTED).tolist() == [True, False, True]


def test_a_huge_answer_that_is_turned_away_costs_no_memory():
    result = simulate(make([0, 0], [5, 5], [10_000_000, 2]), VLLM, limits(), UNIT)
    assert (result.status == REJECTED).tolist() == [True, False]


def test_samples_are_few_and_even():
    n = 300
    requests = make([0.0] * n, [1] * n, [100] * n)
    result = simulate(requests, VLLM, limits(seqs=2), UNIT, timeline=True)
    times = result.timeline.time_s
    assert result.num_steps == 15_000
    assert 2048 <= len(times) <= 4096
    assert set(np.diff(times)) == {4.0}
    assert (result.timeline.running == 2).all()
    assert simulate(requests, VLLM, limits(seqs=2), UNIT).timeline is None


def test_pipeline_stages_overlap_micro_batches():
    # Four stages of 1 s: one sequence takes four seconds a token, four take four seconds together.
    table = StepTimeTable(decode_s=np.ones(9), mixed_s=np.ones(9), head_s=np.zeros(9), pipeline_stages=4)
    one = simulate(make([0], [1], [3]), VLLM, limits(), table)
    four = simulate(make([0] * 4, [1] * 4, [3] * 4), VLLM, limits(), table)
    assert one.finish_s.tolist() == [12]
    assert four.finish_s.tolist() == [12] * 4


def test_front_end_latency_is_added_outside_the_steps():
    table = StepTimeTable(decode_s=np.ones(9), mixed_s=np.ones(9), head_s=np.zeros(9), request_overhead_s=0.5)
    result = simulate(make([0], [1], [2]), VLLM, limits(), table)
    assert (result.first_token_s[0], result.finish_s[0], result.busy_s) == (1.5, 2.5, 2.0)


# -- a machine on its own


def test_requests_may_be_handed_over_one_by_one():
    requests = make([0, 1, 6], [1] * 3, [3, 3, 3])
    jobs = state.make_jobs(requests, 1000)
    feed = np.zeros(3, dtype=np.int64)
    at_once = dataclasses.replace(VLLM, async_scheduling=False)
    machine = make_machine(requests, at_once, limits(), UNIT, jobs=jobs, feed=feed, closed=False)
    give(machine, 0)
    give(machine, 1)
    assert machine.outstanding(0.5) == 2
    assert machine.outstanding(3.0) == 1  # A has three tokens, B two
    assert machine.outstanding(4.0) == 0
    assert machine.clock_s == 4.0
    give(machine, 2)
    assert machine.outstanding(4.0) == 1
    machine.run()
    assert jobs["finish"].tolist() == [3, 4, 9]
    assert machine.count("steps") == 4 + 3


def test_a_defect_of_the_loop_is_not_passed_over():
    machine = make_machine(make([0], [1], [1]), VLLM, limits(), UNIT)
    machine.state["stopped"] = kernel.STOPPED_BY_FAULT
    with pytest.raises(RuntimeError, match="nothing to do"):
        machine.raise_fault()


@pytest.mark.parametrize(
    ("arrival", "users", "stop", "watched"),
    [
        ([0, 1], 0, True, True),
        ([0, 1], 0, False, False),
        ([0, 0], 0, True, False),  # all at once: the queue says nothing about a rate
        ([0, 1], 1, True, False),  # a closed loop cannot pile up
    ],
)
def test_which_runs_are_watched_for_overload(arrival, users, stop, watched):
    requests = make(arrival, [1] * 2, [1] * 2, closed_loop_users=users)
    machine = make_machine(requests, VLLM, limits(), UNIT, stop_on_overload=stop)
    assert (machine.rules["stop_waiting"][0] < state.UNBOUNDED) == watched


def test_replicas_share_the_requests_and_nothing_else():
    requests = make([0] * 4, [5] * 4, [3] * 4, prefix_group=np.zeros(4, dtype=int), prefix_tokens=np.full(4, 4))
    one = make_machine(requests, VLLM, limits(), UNIT, jobs=state.make_jobs(requests, 1000), closed=False)
    first, second = replicate(one, 2, room=4).machines()
    give(first, 0)
    first.run()
    assert first.jobs is second.jobs
    assert (first.count("steps"), second.count("steps"), second.count("fed")) == (3, 0, 0)
    for name in ("slots", "groups", "runs", "calendar", "tallies", "state"):
        assert not np.shares_memory(getattr(first, name), getattr(second, name)), name
    assert not second.tallies.any()


def test_totals_and_averages_over_replicas():
    # Replica 0 serves A in 0-4, replica 1 B in 0-2: 1.5 run on average, of 2 x 10 blocks 1, 2, 3 and 4 of A are
    # held and 1, 2 of B.
    requests = make([0, 0], [1, 1], [4, 2])
    jobs = state.make_jobs(requests, 1000)
    machines = [
        make_machine(requests, VLLM, limits(seqs=2, blocks=10), UNIT, jobs=jobs, feed=np.array([k])) for k in range(2)
    ]
    for machine in machines:
        machine.state["fed"] = 1
        machine.run()
    result = collect(requests, machines, UNIT, np.array([0, 1]))
    assert (result.num_steps, result.busy_s, result.duration_s) == (4 + 2, 6.0, 4.0)
    assert result.mean_running == pytest.approx((4 + 2) / 4)
    assert result.mean_kv_used_fraction == pytest.approx((1 + 2 + 3 + 4 + 1 + 2) / 4 / 20)
    assert result.peak_running == 1
    assert result.num_slots == 4
    assert (result.prefill_tokens_computed, result.decode_tokens) == (2, 3 + 1)
    assert result.finish_s.tolist() == [4, 2]
    assert result.itl_count.sum() == 3 + 1
    assert result.replica.tolist() == [0, 1]


def test_gaps_are_counted_where_they_belong():
    result = simulate(
        make([0], [1], [5]),
        VLLM,
        limits(),
        StepTimeTable(decode_s=np.full(9, 0.3), mixed_s=np.full(9, 0.3), head_s=np.zeros(9)),
    )
    (place,) = np.flatnonzero(result.itl_count)
    assert result.itl_count[place] == 4
    assert result.itl_gap_s[place] == pytest.approx(0.3, rel=1 / 64)


def test_bins_grow_by_less_than_two_percent():
    middles = bin_middles()
    assert (np.diff(middles) / middles[:-1]).max() < 1 / 63
    assert middles[-state.FIRST_OCTAVE * state.BINS_PER_OCTAVE] == pytest.approx(1.0, rel=1 / 64)
    with pytest.raises(ValueError, match="read-only"):
        middles[0] = 1


# -- what limits


@pytest.mark.parametrize(
    ("capacity", "output", "table", "binding"),
    [
        (limits(seqs=2), 50, UNIT, "max_num_seqs"),
        (limits(seqs=9, blocks=100), 50, UNIT, "kv cache"),
        (limits(seqs=99, budget=3), 2, UNIT, "token budget"),
        (limits(seqs=99), 60, UNIT, "compute"),  # nobody waits, and every second is full of steps
        (limits(seqs=99), 50, dataclasses.replace(UNIT, server_per_token_s=2.0), "api server"),
    ],
)
def test_what_limits(capacity, output, table, binding):
    n = 60
    requests = make([0.5 * k for k in range(n)], [3] * n, [output] * n)
    assert simulate(requests, VLLM, capacity, table).binding == binding


def test_nothing_limits_an_idle_replica():
    assert simulate(make([0, 100], [1, 1], [1, 1]), VLLM, limits(), UNIT).binding == "none"


# -- whether it keeps up


def verdict(n, waiting, *, gone=0, users=0, spread=100.0):
    """n requests over a time, of which the last `waiting` have not started when the last comes."""
    arrival = np.linspace(0.0, spread, n)
    admitted = arrival.copy()
    admitted[n - waiting :] = spread + 50.0
    admitted[0] = 0.0
    status = np.full(n, FINISHED)
    status[:gone] = ABANDONED
    jobs = {"arrival": arrival, "admitted": admitted, "status": status, "finish": admitted.copy()}
    requests = make(arrival.tolist(), [1] * n, [1] * n, closed_loop_users=users)
    return stability(requests, jobs, [make_machine(requests, VLLM, limits(), UNIT)])


@pytest.mark.parametrize(
    ("waiting", "word"),
    [
        # 10,000 requests: chance piles up 3 * 100; beyond, 1 % is 100 and 5 % is 500.
        (0, "stable"),
        (400, "stable"),
        (401, "backlogged"),
        (800, "backlogged"),
        (801, "overloaded"),
    ],
)
def test_how_many_may_wait_at_the_end(waiting, word):
    assert verdict(10_000, waiting)[0] == word


def test_the_capacity_is_what_finishes_in_the_last_three_quarters():
    # 100 a second for 100 s; whoever comes after 80 s is not served: 5,500 within the last 75 s.
    word, capacity, message = verdict(10_001, 2000)
    assert word == "overloaded"
    assert capacity == pytest.approx(5500 / 75, rel=0.001)
    assert message == "overloaded at 100 req/s, capacity is about 73.3 req/s"


def test_clients_who_left_are_named():
    assert "25% of clients leave" in verdict(10_000, 2000, gone=2500)[2]


def test_neither_a_closed_loop_nor_a_burst_is_ever_overloaded():
    assert verdict(10_000, 9000, users=5)[0] == "stable"
    assert verdict(10_000, 9000, spread=0.0)[0] == "stable"
    assert math.isnan(verdict(10_000, 0)[1])
