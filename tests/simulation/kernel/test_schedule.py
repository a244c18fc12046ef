"""What a step holds, by hand, against the rules of the engines' schedulers."""

import numpy as np
import pytest

from planner.simulation.kernel import blocks, schedule, steps
from planner.simulation.state import BY_BUDGET, BY_KV, BY_LORA, BY_NOTHING, BY_SLOTS, PARTIAL
from tests.simulation.cases import limits, make


def chunks(b):
    """(request, tokens) of each chunk in the step."""
    return [(b.slots[b.slots[k].chunk_slot].job, b.slots[k].chunk_tokens) for k in range(b.st.chunks)]


def pass_step(b, decodes):
    b.do(steps.execute_step, decodes=decodes, gain=1, pad=0)
    b.st.server_free = b.st.clock
    if decodes:
        b.do(steps.decode_step_done, gain=1)
    b.do(steps.complete_chunks)


# -- vLLM V1: running first, then the queue, within one budget


def test_prompts_share_the_budget_that_decodes_leave(bench):
    # Budget 10: A and B decode, C takes the other 8 of its 12, D none. Next step: C's other 4, then 4 of D's 9.
    b = bench(make([0] * 4, [1, 1, 12, 9], [9] * 4), limits(budget=10))
    b.prefill(0, 1)
    b.enqueue(2, 3)
    assert b.do(schedule.schedule_step, gain=1) == 2
    assert chunks(b) == [(2, 8)]
    pass_step(b, 2)
    assert b.do(schedule.schedule_step, gain=1) == 2
    assert chunks(b) == [(2, 4), (3, 4)]


def test_drafted_tokens_count_against_the_budget(bench):
    # Three drafts a sequence: it takes 4 of the 10, the prompt of 12 the other 6.
    b = bench(make([0] * 2, [1, 12], [9] * 2), limits(budget=10), num_speculative_tokens=3, speculative_acceptance=0.5)
    b.prefill(0)
    b.enqueue(1)
    b.do(schedule.schedule_step, gain=1)
    assert chunks(b) == [(1, 6)]


def test_no_prompt_starts_in_a_step_that_preempts(bench):
    # 10 blocks of a token: A and B hold 5 each and want one more each. B goes; C would fit, but waits behind it.
    b = bench(make([0] * 3, [5, 5, 1], [9] * 3), limits(blocks=10))
    b.prefill(0, 1)
    b.enqueue(2)
    assert b.do(schedule.schedule_step, gain=1) == 1
    assert chunks(b) == []
    assert (b.waiting, b.st.reason) == ([1, 2], BY_KV)


@pytest.mark.parametrize(
    ("priority", "running", "chunk", "free"),
    [
        ([0, 0, 0], [0, 1], [], 1 + 6),  # the last admitted goes: C itself
        ([1, 1, 0], [0, 2], [(2, 2)], 1 + 4 - 2),  # the lowest class goes: B with its 3 blocks and the one just taken
    ],
)
def test_a_prompt_under_way_preempts_too(bench, priority, running, chunk, free):
    # A and B decode at 3 tokens each, 6 of C's 8 are in. 3 blocks are free: A and B take 2 of them, C wants 2.
    b = bench(make([0] * 3, [3, 3, 8], [9] * 3, priority=np.array(priority)), limits(budget=12, blocks=20))
    for job in range(3):
        b.prefill(job)
        b.rules.budget = 6
    assert (b.decoding, b.running) == ([0, 1], [0, 1, 2])
    b.rules.budget, b.st.free_blocks = 12, 3
    b.do(schedule.schedule_step, gain=1)
    assert (b.running, chunks(b), b.st.free_blocks) == (running, chunk, free)
    assert b.waiting == [k for k in range(3) if k not in running]


def test_a_chunk_takes_blocks_as_it_is_computed(bench):
    # Blocks of 4, budget 6: 6 tokens hold 2 blocks, the next 6 one more, since the second has room for two.
    b = bench(make([0], [20], [9]), limits(budget=6, blocks=9, size=4), block_size=4)
    free = []
    for _ in range(4):
        b.enqueue(*([0] if b.st.running == 0 else []))
        b.do(schedule.schedule_step, gain=1)
        free.append(b.st.free_blocks)
        pass_step(b, 0)
    assert free == [9 - 2, 9 - 3, 9 - 5, 9 - 5]


@pytest.mark.parametrize(("threshold", "expected"), [(0, [(0, 8)]), (3, [(0, 3), (1, 3), (2, 2)])])
def test_a_long_prompt_gets_a_part_of_the_budget(bench, threshold, expected):
    b = bench(make([0] * 3, [9, 9, 9], [1] * 3), limits(budget=8), long_prefill_token_threshold=threshold)
    b.enqueue(0, 1, 2)
    b.do(schedule.schedule_step, gain=1)
    assert chunks(b) == expected


# -- why the head of the queue does not start


@pytest.mark.parametrize(
    ("capacity", "prompts", "started", "reason"),
    [
        (limits(seqs=2), [5, 5, 5], 2, BY_SLOTS),
        (limits(blocks=12), [5, 5, 5], 2, BY_KV),
        (limits(budget=10), [5, 5, 5], 2, BY_BUDGET),
        (limits(), [5, 5, 5], 3, BY_NOTHING),
    ],
)
def test_what_holds_the_queue_up(bench, capacity, prompts, started, reason):
    b = bench(make([0] * 3, prompts, [3] * 3), capacity)
    b.admit(0, 1, 2)
    assert (b.st.running, b.st.reason) == (started, reason)


@pytest.mark.parametrize(("fixed", "started"), [(0, 2), (1, 2), (2, 1)])
def test_blocks_that_a_sequence_holds_whatever_its_length(bench, fixed, started):
    b = bench(make([0] * 2, [5, 5], [1] * 2), limits(blocks=12, fixed=fixed))
    b.admit(0, 1)
    assert b.st.running == started
    assert b.st.free_blocks == 12 - started * (5 + fixed)


def test_a_whole_prompt_must_fit_though_its_first_chunk_would(bench):
    # scheduler_reserve_full_isl: 8 blocks are free, the chunk takes 4, the prompt 9.
    b = bench(make([0], [9], [1]), limits(budget=4, blocks=10))
    b.st.free_blocks = 8
    b.admit(0)
    assert (b.st.running, b.st.reason) == (0, BY_KV)
    b.st.free_blocks = 9
    b.do(schedule.admit_all, budget=4)
    assert (b.st.running, b.st.free_blocks) == (1, 9 - 4)


def test_without_chunks_a_prompt_waits_for_a_step_that_holds_it(bench):
    b = bench(make([0] * 2, [6, 6], [3] * 2), limits(budget=8), name="vllm-no-chunked-prefill", family="generic")
    b.admit(0, 1)
    assert (b.running, b.st.reason, b.st.blocked) == ([0], BY_BUDGET, 0)  # the next step is another matter


def test_requests_whose_adapter_has_no_slot_are_passed_over(bench):
    b = bench(make([0] * 4, [1] * 4, [3] * 4, adapter=np.array([0, 1, 0, -1])), limits(), max_loras=1)
    for job in range(4):
        b.do(schedule.count_waiting, job=job, change=1)
    b.admit(0, 1, 2, 3)
    assert (b.running, b.waiting, b.st.reason) == ([0, 2, 3], [1], BY_LORA)
    assert (b.st.adapters, b.groups[0].adapter_users) == (1, 2)


def test_the_first_whose_adapter_has_a_slot(bench):
    # Adapters 1, 1, 2 and none wait; adapter 0 has the only slot. The base model needs none.
    b = bench(make([0] * 4, [1] * 4, [3] * 4, adapter=np.array([1, 1, 2, -1])), limits(), max_loras=1)
    b.groups[0].adapter_users, b.st.adapters = 1, 1
    b.enqueue(0, 1, 2)
    assert b.do(schedule.first_with_adapter)[1] == -1  # none of the three
    b.enqueue(3)
    b.st.fitting = 1
    assert b.do(schedule.first_with_adapter) == (2, 3)
    assert b.st.passed_over == 2  # the next look goes on from there
    b.groups[0].adapter_users, b.st.adapters, b.st.passed_over = 0, 0, -1
    assert b.do(schedule.first_with_adapter) == (-1, 0)


def test_a_request_takes_what_it_found(bench):
    # Of 5 blocks of a text that nobody holds it takes 3: two are left in the queue of free ones.
    requests = make([0] * 2, [30] * 2, [3] * 2, prefix_group=np.zeros(2, dtype=int), prefix_tokens=np.full(2, 20))
    b = bench(requests, limits(blocks=100, size=4), block_size=4)
    b.do(blocks.add_run, group=0, job=-1, low=0, high=5)
    b.groups[0].cached = 5
    b.do(schedule.take_cached, job=0, shared=3, kept=0)
    assert [(low, high) for _, low, high in b.free_runs] == [(3, 5)]
    assert (b.groups[0].users, b.groups[0].top, b.groups[0].at_top, b.st.shared_twice) == (1, 3, 1, 0)
    b.do(schedule.take_cached, job=1, shared=5, kept=0)
    assert b.free_runs == []
    assert (b.groups[0].users, b.groups[0].top, b.groups[0].at_top, b.st.shared_twice) == (2, 5, 1, 3)
    b.do(schedule.take_cached, job=1, shared=5, kept=0)
    assert (b.groups[0].users, b.groups[0].top, b.groups[0].at_top, b.st.shared_twice) == (3, 5, 2, 8)


@pytest.mark.parametrize(
    ("held", "free", "starts"), [(0, 8, True), (0, 7, False), (3, 5, True), (3, 4, False), (5, 3, True)]
)
def test_cached_blocks_that_nobody_holds_are_taken_from_the_free_ones(bench, held, free, starts):
    # 30 tokens in blocks of 4 are 8; 5 are in the cache, of which others hold some: 3 new ones and the rest of the 5.
    requests = make([0], [30], [3], prefix_group=np.array([0]), prefix_tokens=np.array([20]))
    b = bench(requests, limits(blocks=100, size=4), block_size=4)
    b.groups[0].cached = 5
    b.groups[0].top = held
    b.st.free_blocks = free - (5 - held)  # and those of the run
    b.do(blocks.add_run, group=0, job=-1, low=held, high=5)
    b.admit(0)
    assert b.st.running == starts
    assert b.st.free_blocks == (0 if starts else free)


def test_own_blocks_of_before_count_as_free_until_they_are_taken(bench):
    # 8 blocks in all: the 4 that it left when it was preempted, and 4 more.
    for free, starts in ((8, True), (7, False)):
        b = bench(make([0], [30], [3]), limits(blocks=100, size=4), block_size=4)
        b.st.free_blocks = free - 4
        b.jobs[0].own = b.do(blocks.add_run, group=-1, job=0, low=0, high=4)
        b.jobs[0].preemptions, b.jobs[0].waits_since = 1, 0.0
        b.admit(0)
        assert b.st.running == starts


def test_a_resumed_request_computes_what_it_had_said(bench):
    b = bench(make([0], [10], [30]), limits(blocks=100))
    b.jobs[0].made, b.jobs[0].preemptions = 7, 1
    b.admit(0)
    assert chunks(b) == [(0, 17)]


def test_without_slots_it_is_the_slots_that_hold_the_queue_up(bench):
    # The second prompt uses up the budget and the last slot at once.
    b = bench(make([0] * 3, [5, 5, 5], [3] * 3), limits(seqs=2, budget=10))
    b.admit(0, 1, 2)
    assert (b.st.running, b.st.reason) == (2, BY_SLOTS)


@pytest.mark.parametrize(("kept", "dead"), [(4, 100), (0, 100 + 4)])
def test_own_blocks_are_taken_or_given_up(bench, kept, dead):
    # 100 unused blocks, 4 that request 0 left when it was preempted, one of request 1.
    b = bench(make([0] * 2, [30] * 2, [3] * 2), limits(blocks=100, size=4), block_size=4)
    b.jobs[0].own = b.do(blocks.add_run, group=-1, job=0, low=0, high=4)
    b.jobs[1].own = b.do(blocks.add_run, group=-1, job=1, low=0, high=1)
    assert b.free_runs == [(100, 0, 4), (0, 0, 1)]
    b.do(schedule.take_cached, job=0, shared=0, kept=kept)
    assert b.free_runs == [(dead, 0, 1)]
    assert b.jobs[0].own == 0


def test_kv_that_comes_along_need_not_be_computed(bench):
    # Disaggregated: 9 of 10 tokens are there. Once preempted they are lost.
    b = bench(make([0], [10], [5], kv_ready_tokens=np.array([9])), limits(blocks=100))
    b.enqueue(0)
    assert b.do(schedule.admit_first, budget=100) == 1
    assert b.st.free_blocks == 100 - 10
    again = bench(make([0], [10], [5], kv_ready_tokens=np.array([9])), limits(blocks=100))
    again.jobs[0].preemptions = 1
    again.enqueue(0)
    assert again.do(schedule.admit_first, budget=100) == 10


def test_waiting_is_summed_up_when_a_request_starts(bench):
    b = bench(make([1, 2], [1] * 2, [3] * 2), limits())
    b.st.clock = 5.0
    b.admit(0, 1)
    assert b.st.waiting_area == 4 + 3
    assert b.jobs.admitted.tolist() == [5.0, 5.0]


def test_a_request_takes_a_slot_behind_all_others(bench):
    b = bench(make([0] * 2, [7, 5], [3] * 2), limits())
    first, second = b.admit(0, 1)
    assert b.running == [0, 1]
    assert [b.slots[k].turn for k in (first, second)] == [0, 1]
    assert [b.slots[k].kind for k in (first, second)] == [PARTIAL] * 2
    assert [b.slots[k].known for k in (first, second)] == [7, 5]
    assert b.st.partials == 2


# -- engines that reserve


@pytest.mark.parametrize(("name", "held"), [("tensorrt-llm", 5 + 20), ("orca", 50), ("vllm", 5)])
def test_what_is_held_from_admission(bench, name, held):
    b = bench(make([0], [5], [3], limit=[20]), limits(max_len=50, blocks=100), name=name)
    b.admit(0)
    assert b.st.free_blocks == 100 - held


# -- SGLang


def sglang(bench, prompt, limit, blocks, *, ratio):
    requests = make([0] * len(prompt), prompt, [1] * len(prompt), limit=limit)
    changes = {"new_token_ratio": ratio, "min_new_token_ratio": ratio}
    return bench(requests, limits(blocks=blocks, max_len=20_000, budget=20_000), name="sglang", **changes)


def test_a_share_of_all_remaining_outputs_is_set_aside(bench):
    # 100 and 6,000 tokens to come, of the latter 4,096 at most; half of them.
    b = sglang(bench, [10, 10], [100, 6000], 20_000, ratio=0.5)
    b.admit(0, 1)
    b.do(schedule.reserve_running)
    assert b.st.reserved_tokens == (100 + 4096) / 2


@pytest.mark.parametrize(("blocks", "started"), [(10 + 40 + 10 + 60, 1), (10 + 40 + 10 + 60 + 1, 2)])
def test_prompt_and_output_must_fit_into_what_is_left(bench, blocks, started):
    # B needs its prompt of 10 and 60 tokens in a pool of which A holds 10 and 40 more are set aside: not all of it.
    b = sglang(bench, [10, 10], [40, 60], blocks, ratio=1.0)
    b.admit(0, 1)
    assert b.st.running == started


def test_prompts_run_before_decodes(bench):
    b = bench(make([0] * 2, [5, 7], [9] * 2), limits(), name="sglang")
    b.prefill(0)
    b.enqueue(1)
    assert b.do(schedule.schedule_step, gain=1) == 0
    assert chunks(b) == [(1, 7)]
    pass_step(b, 0)
    assert b.do(schedule.schedule_step, gain=1) == 2


def test_a_queue_that_may_not_start_leaves_a_decode_step(bench):
    b = bench(make([0] * 2, [5, 7], [9] * 2), limits(seqs=1), name="sglang")
    b.prefill(0)
    b.enqueue(1)
    assert b.do(schedule.schedule_step, gain=1) == -1  # tried and blocked: look again
    assert b.st.blocked
    assert b.do(schedule.schedule_step, gain=1) == 1


# -- TGI


@pytest.mark.parametrize(
    ("waiting", "running", "since", "more", "start"),
    [
        (3, 10, 0, 0, True),  # 3 of 10 are the ratio of 0.3
        (2, 10, 0, 0, False),
        (2, 10, 20, 0, True),  # 20 decode steps have passed
        (2, 10, 19, 0, False),
        (2, 10, 19, 1, True),
        (0, 10, 99, 0, False),
    ],
)
def test_decoding_pauses_once_enough_wait(bench, waiting, running, since, more, start):
    b = bench(make([0], [1], [1]), limits(), name="tgi")
    b.st.waiting, b.st.running, b.st.decoding, b.st.steps_since_prefill = waiting, running, running, since
    assert b.do(schedule.prompts_may_start, more=more) == start
    b.st.blocked = 1
    assert not b.do(schedule.prompts_may_start, more=more)
