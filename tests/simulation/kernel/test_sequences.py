"""Running sequences by hand: where their end is filed, who is preempted or retracted, what is left of them."""

import dataclasses

import numpy as np
import pytest

from planner.simulation.kernel import sequences
from planner.simulation.records import ABANDONED, FINISHED
from planner.simulation.state import DECODES, NO_SLOT
from tests.simulation.cases import UNIT, limits, make


def decoding(bench, prompt, output, capacity=None, **more):
    b = bench(make([0] * len(prompt), prompt, output), capacity or limits(seqs=8, blocks=100), **more)
    return b, b.prefill(*range(len(prompt)))


def test_a_sequence_is_filed_under_its_last_token(bench):
    # The prompt makes the first of A's 4 tokens and of B's 2: 3 and 1 to come, on a clock that stands at 0.
    b, (first, second) = decoding(bench, [5, 3], [4, 2])
    assert (b.calendar[3].due, b.calendar[1].due) == (first, second)
    assert (b.st.decoding, b.st.kv_tokens) == (2, 5 + 3)
    assert [b.slots[k].kind for k in (first, second)] == [DECODES, DECODES]
    b.decode(1)
    assert b.running == [0]
    assert b.jobs.status[1] == FINISHED
    b.decode(2)
    assert b.running == []
    assert b.jobs.finish.tolist() == [4.0, 2.0]
    assert (b.st.kv_tokens, b.st.decoding, b.st.free_blocks) == (0, 0, 100)


@pytest.mark.parametrize("length", [3, 8, 9])
def test_the_window_forgets_a_sequence_that_stops(bench, length):
    table = dataclasses.replace(UNIT, window_tokens=8)
    b, slots = decoding(bench, [length, 6], [20, 20], table=table)
    b.decode(1)
    b.do(sequences.stop_decoding, slot=slots[0])
    assert (b.st.window_tokens, b.st.window_growing) == (7, 1)  # the other one alone
    b.decode(3)
    assert (b.st.window_tokens, b.st.window_growing) == (8, 0)


def test_tokens_made_count_the_prompts_own(bench):
    b, (slot,) = decoding(bench, [5], [9])
    assert b.do(sequences.tokens_made, slot=slot) == 1
    b.decode(3)
    assert b.do(sequences.tokens_made, slot=slot) == 4


def test_a_slot_is_given_back_from_the_middle_of_the_list(bench):
    b, slots = decoding(bench, [1] * 3, [9] * 3)
    free = b.st.free_slots
    b.do(sequences.take_out, slot=slots[1], keep=False)
    assert b.running == [0, 2]
    assert b.st.free_slots == free + 1
    assert b.slots[free].spare == slots[1]
    assert b.calendar[8].due in (slots[0], slots[2])
    b.do(sequences.take_out, slot=slots[0], keep=False)
    b.do(sequences.take_out, slot=slots[2], keep=False)
    assert (b.st.run_first, b.st.run_last, b.calendar[8].due) == (NO_SLOT, NO_SLOT, NO_SLOT)


def test_a_prompt_that_is_cut_short_leaves_nothing(bench):
    # 20 of its 30 tokens are computed, the others under way.
    b = bench(make([0], [30], [9]), limits(budget=20, blocks=100))
    (slot,) = b.prefill(0)
    assert (b.st.partials, b.st.partial_tokens, b.st.free_blocks) == (1, 20, 80)
    b.do(sequences.take_out, slot=slot, keep=False)
    assert (b.st.partials, b.st.partial_tokens, b.st.free_blocks) == (0, 0, 100)


def test_a_preempted_sequence_remembers_what_it_said(bench):
    b, slots = decoding(bench, [5, 4], [9, 9])
    b.decode(3)
    b.do(sequences.preempt, slot=slots[1])
    assert b.waiting == [1]
    assert (b.jobs[1].made, b.jobs[1].preemptions, b.jobs[1].waits_since) == (4, 1, 4.0)
    assert b.jobs[1].last_token == 4.0
    assert b.running == [0]
    assert b.st.free_blocks == 100 - 8


def test_the_last_admitted_goes_first(bench):
    b, slots = decoding(bench, [1] * 3, [9] * 3)
    assert b.do(sequences.choose_victim, asking=NO_SLOT) == slots[2]


@pytest.mark.parametrize(
    ("priority", "arrival", "victim"),
    [
        ([0, 5, 0], [0, 0, 0], 1),  # the lowest class
        ([5, 5, 0], [0, 1, 2], 1),  # in it the last to arrive
        ([5, 5, 5], [0, 0, 0], 2),  # at the same moment the last admitted
    ],
)
def test_with_classes_the_last_to_arrive_of_the_lowest_goes(bench, priority, arrival, victim):
    requests = make(arrival, [1] * 3, [9] * 3, priority=np.array(priority))
    b = bench(requests, limits(blocks=100))
    slots = b.prefill(0, 1, 2)
    if len(set(priority)) == 1:
        b.rules.classes = 2  # as if another class waited
    assert b.do(sequences.choose_victim, asking=NO_SLOT) == slots[victim]


def test_it_is_the_arrival_that_counts_not_the_admission(bench):
    # A was preempted and admitted again behind B, but it came first.
    b = bench(make([0] * 3, [1] * 3, [9] * 3, priority=np.array([5, 5, 0])), limits(blocks=100))
    slots = b.prefill(1, 0, 2)
    b.jobs[0].arrival, b.jobs[1].arrival = 1.0, 2.0
    assert b.do(sequences.choose_victim, asking=NO_SLOT) == slots[0]


def test_a_prompt_whose_chunk_is_in_the_step_stays(bench):
    # B (class 1) is a prompt under way: when another asks, A (class 0) goes; when B itself does, B.
    b = bench(make([0] * 2, [1, 50], [9] * 2, priority=np.array([0, 1])), limits(budget=10, blocks=100))
    decodes, partial = b.prefill(0, 1)
    assert b.do(sequences.choose_victim, asking=decodes) == decodes
    assert b.do(sequences.choose_victim, asking=partial) == partial


def test_growing_takes_blocks_and_preempts_until_they_fit(bench):
    # 10 blocks of a token, 3 + 3 + 3 taken: three wanted, one free. Without C two are wanted and four free.
    b, _ = decoding(bench, [3] * 3, [9] * 3, limits(blocks=10))
    assert b.do(sequences.grow_all, gain=1)
    assert b.running == [0, 1]
    assert b.waiting == [2]
    assert b.st.free_blocks == 10 - 6 - 2
    b.do(sequences.grow_all, gain=1)
    assert b.running == [0, 1]


def test_finished_together_in_the_order_of_admission(bench):
    # The calendar links the latest first; with a prefix cache the order in which blocks are freed matters.
    requests = make([0] * 3, [4] * 3, [3] * 3, prefix_group=np.array([0, 1, 2]), prefix_tokens=np.full(3, 4))
    b = bench(requests, limits(blocks=100))
    b.prefill(0, 1, 2)
    b.decode(2)
    assert b.jobs.finish.tolist() == [3.0] * 3
    order, run = [], b.st.oldest_run
    while run:
        order.append(b.runs[run].group)
        run = b.runs[run].after
    assert order == [0, 1, 2]


def test_answers_are_filed_in_the_order_in_which_they_end(bench):
    b, _ = decoding(bench, [1] * 3, [4, 2, 2])
    b.decode(3)
    assert b.st.unsent == 3
    filed, job = [], b.st.unsent_first
    while job >= 0:
        filed.append(job)
        job = b.jobs[job].after
    assert filed[-1] == 0
    assert sorted(filed[:2]) == [1, 2]


@pytest.mark.parametrize(("timeout_s", "status"), [(2.5, ABANDONED), (3.0, FINISHED)])
def test_an_answer_that_comes_too_late_is_nobodys(bench, timeout_s, status):
    b, _ = decoding(bench, [1], [3], timeout_s=timeout_s)
    b.decode(2)
    assert b.jobs[0].status == status
    assert np.isnan(b.jobs[0].finish) == (status == ABANDONED)
    assert (b.st.done, b.st.running) == (1, 0)


def test_an_adapter_keeps_its_slot_while_anybody_uses_it(bench):
    b = bench(make([0] * 2, [1] * 2, [3, 2], adapter=np.array([4, 4])), limits(), max_loras=1)
    b.do(sequences.count_waiting, job=0, change=1)
    b.do(sequences.count_waiting, job=1, change=1)
    b.prefill(0, 1)
    assert (b.st.adapters, b.groups[4].adapter_users) == (1, 2)
    b.decode(1)
    assert (b.st.adapters, b.groups[4].adapter_users) == (1, 1)
    b.decode(1)
    assert (b.st.adapters, b.groups[4].adapter_users) == (0, 0)


# -- SGLang retracts


def retracting(bench, prompt, made, blocks):
    """Sequences that decode, of which each has `made` tokens out."""
    b, slots = decoding(bench, prompt, [200] * len(prompt), limits(seqs=8, budget=5000, blocks=5000), name="sglang")
    for slot, count in zip(slots, made, strict=True):
        more = count - 1
        b.slots[slot].offset += more
        b.st.kv_tokens += more
        b.st.free_blocks -= more
    b.st.free_blocks -= 5000 - blocks
    return b


def test_the_fewest_tokens_go_first_then_the_longest_prompt(bench):
    # Each that goes gives back its blocks; 20 steps of those that stay must fit, 20 tokens of a block each.
    # B has the fewest out. C and D have as many as one another: D's prompt is longer.
    b = retracting(bench, [10, 10, 10, 15], [9, 2, 5, 5], blocks=62)
    assert b.st.free_blocks == 0  # 45 tokens of prompts and 8 + 1 + 4 + 4 behind them
    b.do(sequences.retract, gain=1)
    # Without B 11 are free, and 60 wanted; without D 11 + 19 = 30 are free, and 40 wanted; without C 44, 20 wanted.
    assert b.waiting == [1, 3, 2]
    assert b.running == [0]
    # A's 9 tokens and 20 steps, of the 200 that it may make
    assert b.st.ratio == (9 + 20) / 200


def test_no_more_go_than_must(bench):
    # Three that want a block each, none is free. C goes and leaves 50: 20 steps of two are 40.
    b = retracting(bench, [10, 10, 45], [9, 9, 6], blocks=10 + 8 + 10 + 8 + 45 + 5)
    b.do(sequences.retract, gain=1)
    assert b.running == [0, 1]
    assert b.st.free_blocks == 50


def test_one_sequence_always_stays(bench):
    b = retracting(bench, [10, 10], [30, 3], blocks=51)
    b.do(sequences.retract, gain=1)
    assert b.running == [0]
    b.do(sequences.retract, gain=1)
    assert b.running == [0]


def test_a_retracted_request_queues_at_the_end(bench):
    b = retracting(bench, [10, 10], [30, 3], blocks=51)
    b.jobs[0].limit = 1  # whatever is waiting
    b.do(sequences.retract, gain=1)
    assert b.waiting == [1]
    assert not b.st.retracting
    assert b.st.ratio == 1.0  # never above one
