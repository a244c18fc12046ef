"""The queue of waiting requests, by hand."""

import numpy as np
import pytest

from planner.simulation.kernel import queue
from tests.simulation.cases import limits, make


def classes(bench, *priority):
    n = len(priority)
    return bench(make([0] * n, [1] * n, [1] * n, priority=np.array(priority)), limits())


@pytest.mark.parametrize(("prompt", "output", "never"), [(90, 10, False), (90, 11, True), (101, 1, True)])
def test_a_request_beyond_the_context_never_fits(bench, prompt, output, never):
    b = bench(make([0], [prompt], [output]), limits(max_len=100))
    assert b.do(queue.never_fits, job=0) == never


@pytest.mark.parametrize(
    ("name", "more", "blocks"),
    [
        ("vllm", {}, 3),  # 30 + 19 tokens are cached, the last one is not: 49 tokens of 20
        ("vllm", {"num_speculative_tokens": 12}, 4),  # the drafts of the last step take room too: 61
        ("tensorrt-llm", {}, 4),  # its output limit of 40 is reserved: 70
        ("orca", {}, 5),  # and the whole context here: 100
    ],
)
def test_what_a_request_needs_of_the_pool(bench, name, more, blocks):
    requests = make([0], [30], [20], limit=[40])
    for pool, never in ((blocks - 1, True), (blocks, False)):
        b = bench(requests, limits(max_len=100, blocks=pool, size=20), name=name, block_size=20, **more)
        assert b.do(queue.never_fits, job=0) == never
    # Two blocks more that every sequence holds, whatever its length.
    b = bench(requests, limits(max_len=100, blocks=blocks + 1, size=20, fixed=2), name=name, block_size=20, **more)
    assert b.do(queue.never_fits, job=0)


def test_first_come_first_served(bench):
    b = classes(bench, 0, 0, 0)
    for job in (1, 0, 2):
        b.do(queue.push_tail, job=job)
    assert b.waiting == [1, 0, 2]
    assert b.do(queue.last_of, highest=0) == 2


def test_a_preempted_request_goes_to_the_head(bench):
    b = classes(bench, 0, 0, 0)
    b.enqueue(0, 1)
    b.do(queue.push_head, job=2)
    assert b.waiting == [2, 0, 1]
    alone = classes(bench, 0, 0)
    alone.enqueue(0)
    alone.do(queue.push_head, job=1)
    assert alone.do(queue.last_of, highest=0) == 0


def test_classes_pass_one_another_and_keep_their_own_order(bench):
    # Priorities 7, -1, 7, 3 are the classes 2, 0, 2, 1.
    b = classes(bench, 7, -1, 7, 3, -1, 3)
    b.enqueue(0, 1, 2, 3, 4)
    assert b.waiting == [1, 4, 3, 0, 2]
    b.do(queue.push_head, job=5)  # the head of its class, not of the queue
    assert b.waiting == [1, 4, 5, 3, 0, 2]
    assert [b.do(queue.last_of, highest=k) for k in (-1, 0, 1, 2)] == [-1, 4, 3, 2]


@pytest.mark.parametrize("job", [0, 1, 2])
def test_a_request_leaves_from_anywhere(bench, job):
    b = classes(bench, 0, 0, 0)
    b.enqueue(0, 1, 2)
    b.do(queue.take_from_queue, before=job - 1, job=job)
    left = [k for k in range(3) if k != job]
    assert b.waiting == left
    assert b.do(queue.last_of, highest=0) == left[-1]
    b.do(queue.push_tail, job=job)
    assert b.waiting == [*left, job]


def test_the_last_of_a_class_leaves_no_trace(bench):
    b = classes(bench, 0, 1)
    b.enqueue(0, 1)
    b.do(queue.take_from_queue, before=0, job=1)
    assert b.do(queue.last_of, highest=1) == 0
    b.do(queue.take_from_queue, before=-1, job=0)
    assert b.waiting == []
    assert b.do(queue.last_of, highest=1) == -1


def test_a_new_head_is_worth_another_look(bench):
    # While the same request heads the queue and nothing has been freed, the scheduler need not look again.
    b = classes(bench, 1, 1, 0)
    b.enqueue(0)
    b.st.blocked = 1
    b.do(queue.push_tail, job=1)
    assert b.st.blocked
    b.do(queue.push_tail, job=2)  # class 0: in front
    assert not b.st.blocked


def test_whoever_gets_in_between_may_find_an_adapter(bench):
    # The queue up to request 0 has been passed over. Who goes to its end changes nothing, who goes before does.
    b = classes(bench, 1, 0, 1)
    b.enqueue(0)
    b.st.passed_over = 0
    b.do(queue.push_tail, job=2)
    assert b.st.passed_over == 0
    b.do(queue.push_tail, job=1)
    assert b.st.passed_over == -1


def test_an_adapter_fits_while_it_runs_or_a_slot_is_free(bench):
    b = bench(make([0] * 3, [1] * 3, [1] * 3, adapter=np.array([1, 0, -1])), limits(), max_loras=1)
    assert [b.do(queue.adapter_fits, job=k) for k in range(3)] == [True, True, True]
    b.groups[1].adapter_users, b.st.adapters = 1, 1
    assert [b.do(queue.adapter_fits, job=k) for k in range(3)] == [True, False, True]


def test_waiting_requests_are_counted_by_adapter(bench):
    # Adapter 1 runs: its requests and those for the base model need no new slot.
    b = bench(make([0] * 4, [1] * 4, [1] * 4, adapter=np.array([1, 0, 0, -1])), limits(), max_loras=1)
    b.groups[1].adapter_users = 1
    for job in range(4):
        b.do(queue.count_waiting, job=job, change=1)
    assert b.groups.adapter_waiting.tolist() == [2, 1]
    assert b.st.fitting == 2
    b.do(queue.count_waiting, job=1, change=-1)
    b.do(queue.count_waiting, job=3, change=-1)
    assert b.groups.adapter_waiting.tolist() == [1, 1]
    assert b.st.fitting == 1
