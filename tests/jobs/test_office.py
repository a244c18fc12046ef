"""Work of many sessions: shared, bounded, and ended when nobody waits."""

import os
import subprocess
import threading
import time

import pytest

from planner.dashboard.tasks import AIM_CPU_S, FLEET_RUNS, MOST_REQUESTS, answered, most_simulated, plan_task
from planner.errors import InvalidInput, require_int
from planner.jobs.office import Office, Task, TooLong
from planner.jobs.worker import GIVE_UP, SESSION_PRIORITY
from planner.scenario.scenario import Scenario

FOR_EVER_S = 3600.0
PATIENCE_S = 120.0  # of the test itself, far less than FOR_EVER_S


@pytest.fixture(scope="module")
def office():
    opened = Office(num_workers=2, most_kept_bytes=300_000, spare_after_s=0.1)
    yield opened
    opened.close()


def ask(office, function, *arguments, cpu_s=FOR_EVER_S, **more):
    with office.join(Task(function, (arguments,), cpu_s, **more)) as job:
        assert job.done.wait(PATIENCE_S)
    return job.result()


class _Unreadable:
    """Becomes an error where it is read."""

    def __reduce__(self):
        return divmod, (1, 0)

    def __call__(self):
        raise AssertionError


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_who_asks_the_same_shares_one_computation(office):
    before, found = office.num_computed, []
    task = Task(os.getpid, ((),), FOR_EVER_S)
    with office.join(Task(time.sleep, ((0.2,),), FOR_EVER_S)):  # so that they meet
        threads = [threading.Thread(target=lambda: found.append(ask(office, *[task.function]))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert found[0] != os.getpid()  # a process of its own
    assert ask(office, os.getpid) == found[0]
    until(lambda: office.num_running == 0)
    assert office.num_computed - before == 2


def test_a_task_that_nobody_waits_for_is_ended(office):
    with office.join(Task(time.sleep, ((FOR_EVER_S,),), FOR_EVER_S)):
        until(lambda: office.num_running == 1)
    until(lambda: office.num_running == 0)
    assert ask(office, sum, (1, 2)) == 3


def pids(office):
    """Processes of the workers, once all have loaded."""
    until(lambda: all(worker._process is not None and worker._loaded.is_set() for worker in office._workers))
    return {worker._process.pid for worker in office._workers}


@pytest.mark.skipif(GIVE_UP is None, reason="no such signal")
def test_a_process_gives_up_its_task_and_stays(office):
    ask(office, sum, (1, 1))
    until(lambda: len(office._workers) == office.num_workers)  # a spare one is hired while nothing is to do
    before = pids(office)
    for more in range(3):
        with office.join(Task(time.sleep, ((FOR_EVER_S + more,),), FOR_EVER_S)):
            until(lambda: office.num_running == 1)
        until(lambda: office.num_running == 0)
    assert pids(office) == before
    assert ask(office, os.getpid, cpu_s=FOR_EVER_S + 1) in before


def test_a_job_that_cannot_be_read_ends_its_process_and_is_told(office):
    with pytest.raises(RuntimeError, match="ended with code"):
        ask(office, _Unreadable())
    assert ask(office, sum, (3, 4)) == 7


def test_a_superseded_task_is_never_begun(office):
    with (
        office.join(Task(time.sleep, ((FOR_EVER_S,),), FOR_EVER_S)),
        office.join(Task(time.sleep, ((FOR_EVER_S + 1,),), FOR_EVER_S)),
    ):
        until(lambda: office.num_running == 2)
        before = office.num_computed
        with office.join(Task(sum, (((4, 5),),), FOR_EVER_S)) as job:
            assert not job.running
    until(lambda: office.num_computed == before + 2)  # the two that were under way
    assert ask(office, sum, (6, 7)) == 13
    assert not job.done.is_set()
    assert office.num_computed == before + 3


def test_slow_tasks_leave_a_worker_to_the_others(office):
    with (
        office.join(Task(time.sleep, ((FOR_EVER_S,),), FOR_EVER_S, slow=True)),
        office.join(Task(time.sleep, ((FOR_EVER_S + 1,),), FOR_EVER_S, slow=True)),
    ):
        assert ask(office, sum, (1, 3)) == 4
        assert office.num_running == 1


def behind(function, *arguments, rank=0):
    return Task(function, (arguments,), FOR_EVER_S, rank=rank, background=True)


def priority():
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.skipif(not hasattr(os, "setpriority"), reason="no priorities")
def test_the_background_takes_what_time_is_left_and_none_of_the_others_processes():
    office = Office(num_workers=1, num_background=1, idle_s=0.2)
    try:
        with office.join(behind(time.sleep, FOR_EVER_S)):
            until(lambda: office.num_running == 1)
            with office.join(behind(sum, (1, 2))) as waits:
                assert ask(office, os.getpriority, os.PRIO_PROCESS, 0) == priority()
                assert not waits.running
        until(lambda: office.num_running == 0)
        with office.join(behind(os.getpriority, os.PRIO_PROCESS, 0)) as job:
            assert job.done.wait(PATIENCE_S)
        assert job.result() == 19
        if SESSION_PRIORITY.exists():
            with office.join(behind(SESSION_PRIORITY.read_text)) as job:
                assert job.done.wait(PATIENCE_S)
            assert job.result().split()[-1] == "19"
            assert ask(office, SESSION_PRIORITY.read_text) == SESSION_PRIORITY.read_text()
        until(lambda: len(office._workers) == 1)  # the idle one has ended, the other stays
        assert ask(office, sum, (3, 4)) == 7
    finally:
        office.close()


def test_the_background_takes_the_lowest_rank_first_and_keeps_nothing():
    office = Office(num_workers=1, num_background=1)
    ended, names, finish = [], {}, office.finish

    def noted(job):  # by the office: threads that wait may wake in any order
        ended.append(names.get(job.task))
        finish(job)

    office.finish = noted
    names[behind(divmod, 9, 2)] = "old"
    names[behind(divmod, 9, 4, rank=-1)] = "new"
    try:
        with office.join(behind(time.sleep, FOR_EVER_S, rank=-2)):
            until(lambda: office.num_running == 1)
            threads = [threading.Thread(target=_wait_for, args=(office, task)) for task in names]
            for thread in threads:
                thread.start()
            until(lambda: len(office._open) == 3)
        for thread in threads:
            thread.join(PATIENCE_S)
        assert [name for name in ended if name] == ["new", "old"]
        assert office.kept_bytes == 0
    finally:
        office.close()


def _wait_for(office, task):
    with office.join(task) as job:
        assert job.done.wait(PATIENCE_S)


def test_what_takes_too_long_is_tried_with_less(office):
    task = Task(sum, ((range(10**12),), (range(10),)), 0.2)
    with office.join(task) as job:
        assert job.done.wait(PATIENCE_S)
    assert job.result() == 45
    with pytest.raises(TooLong):
        ask(office, sum, range(10**13), cpu_s=0.2)


def test_results_are_kept_up_to_a_size(office):
    for size in range(100_000, 110_000, 1000):
        assert len(ask(office, bytes, size)) == size
    assert 0 < office.kept_bytes <= 300_000
    before = office.num_computed
    ask(office, bytes, 109_000)
    assert office.num_computed == before  # the latest is kept
    ask(office, bytes, 100_000)
    assert office.num_computed == before + 1  # the oldest was let go


def test_results_that_nobody_asks_for_go_also_while_nothing_is_computed():
    office = Office(num_workers=1, spare_after_s=0.05, kept_s=0.5)
    try:
        for size in (100_000, 200_000, 300_000):
            ask(office, bytes, size)
        until(lambda: office.kept_bytes < 400_000)  # the latest alone stays
        assert office.kept_bytes > 250_000
    finally:
        office.close()


def test_errors_cross_over_and_a_dead_process_is_replaced(office):
    with pytest.raises(InvalidInput, match="users = 0"):
        ask(office, require_int, "users", 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        ask(office, divmod, 1, 0)
    with pytest.raises(RuntimeError, match="code 3"):
        ask(office, os._exit, 3)
    assert ask(office, sum, (2, 3)) == 5


def test_a_process_that_cannot_be_started_is_told_and_tried_again(monkeypatch):
    opened, full = Office(num_workers=1), True
    start = subprocess.Popen

    def no_memory(*arguments, **more):
        if full:
            raise OSError(12, "Cannot allocate memory")
        return start(*arguments, **more)

    monkeypatch.setattr(subprocess, "Popen", no_memory)
    try:
        with pytest.raises(RuntimeError, match="Cannot allocate memory"):
            ask(opened, sum, (2, 3))
        full = False
        assert ask(opened, sum, (2, 3)) == 5
    finally:
        opened.close()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_requests": 2_000_000},
        {"num_requests": 2_000_000, "max_num_batched_tokens": 1},
        {"num_requests": 2_000_000, "lengths": "constant", "output_mean_tokens": 100_000, "max_model_len": 131_072},
    ],
)
def test_a_page_simulates_what_it_can_answer_with(changes):
    scenario = Scenario(**changes)
    most = most_simulated(scenario)
    assert 20 <= most <= MOST_REQUESTS
    assert answered(scenario).num_requests == min(scenario.num_requests, most)
    # Tokens that the longest runs of a fleet take at the speed measured: the estimate stays within the time.
    output = min(scenario.traffic.output_tokens.mean, scenario.max_model_len)
    assert most == 20 or most * FLEET_RUNS * output * 4e-8 <= AIM_CPU_S
    budgets = [budget for _, budget in plan_task(scenario).tries]
    assert budgets == sorted(set(budgets), reverse=True)
    assert budgets[0] == most
    if not changes:
        assert answered(scenario) == scenario
