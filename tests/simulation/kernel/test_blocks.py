"""Blocks of the KV cache by hand: how many are held, which can be found again, which are overwritten first."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner.simulation.kernel import blocks, sequences
from tests.simulation.cases import limits, make


@pytest.mark.parametrize(("tokens", "count"), [(0, 0), (1, 1), (16, 1), (17, 2), (4096, 256)])
def test_a_block_that_is_begun_is_taken(tokens, count):
    assert blocks.blocks_for.py_func(SimpleNamespace(block_size=16), tokens) == count


@pytest.mark.parametrize("gain", [1, 2, 3, 17])
@pytest.mark.parametrize("clock", [0, 5, 40])
def test_what_all_sequences_need_for_their_next_tokens(bench, clock, gain):
    lengths = [16, 17, 31, 32, 47, 160]
    b = bench(make([0], [1], [9]), limits(size=16), block_size=16)
    b.st.token_clock = clock
    for length in lengths:  # a sequence is filed under the clock at which its block is full
        b.calendar[(clock - length) % 16].growth += 1
    expected = sum(math.ceil((length + gain) / 16) - math.ceil(length / 16) for length in lengths)
    assert b.do(blocks.blocks_to_grow, gain=gain) == expected


def test_an_engine_that_reserves_everything_never_grows(bench):
    b = bench(make([0], [1], [9]), limits(), name="orca")
    b.calendar.growth[:] = 5
    assert b.do(blocks.blocks_to_grow, gain=3) == 0


@pytest.mark.parametrize(("name", "count"), [("tensorrt-llm", 3 + 2), ("orca", 7 + 2)])
def test_reserved_at_admission(bench, name, count):
    # Blocks of 16: prompt 20 and limit 28 are 48 tokens, the context 100; two more for each sequence.
    b = bench(make([0], [20], [9], limit=[28]), limits(max_len=100, size=16, fixed=2), name=name, block_size=16)
    assert b.do(blocks.reserved_blocks, job=0) == count


# -- the queue of free blocks


def pool_of_ten(bench):
    """10 blocks of a token: 4 were never used, request 0 has just given back its 3 and request 1 its 2."""
    b = bench(make([0] * 3, [3, 2, 1], [2] * 3), limits(blocks=10))
    b.st.free_blocks = 4
    b.jobs[0].own = b.do(blocks.add_run, group=-1, job=0, low=0, high=3)
    b.jobs[1].own = b.do(blocks.add_run, group=-1, job=1, low=0, high=2)
    assert b.st.free_blocks == 9
    return b


def take(b, count):
    b.st.free_blocks -= count
    b.st.allocated += count
    b.do(blocks.settle)


def test_unused_blocks_are_taken_first_then_the_oldest_from_their_end(bench):
    b = pool_of_ten(bench)
    assert b.free_runs == [(4, 0, 3), (0, 0, 2)]
    take(b, 3)
    assert b.free_runs == [(1, 0, 3), (0, 0, 2)]
    take(b, 2)  # the last unused one, and the third block of request 0
    assert b.free_runs == [(0, 0, 2), (0, 0, 2)]
    take(b, 3)  # its other two, and the second of request 1
    assert b.free_runs == [(0, 0, 1)]
    assert b.jobs.own[:2].tolist() == [0, b.st.oldest_run]
    take(b, 1)
    assert b.free_runs == []
    assert (b.st.free_blocks, b.st.queued) == (0, 0)


def test_a_preempted_request_takes_its_own_blocks_out_of_the_middle(bench):
    b = pool_of_ten(bench)
    b.do(blocks.hit_own, job=0)
    assert b.free_runs == [(4, 0, 2)]  # the unused ones now stand before request 1's
    assert b.jobs[0].own == 0
    assert b.st.queued == 6


def test_blocks_that_nobody_looks_for_keep_their_place(bench):
    b = pool_of_ten(bench)
    b.do(blocks.forget_own, job=0)
    assert b.free_runs == [(4 + 3, 0, 2)]
    b.do(blocks.forget_own, job=1)
    assert b.free_runs == []
    assert b.st.free_blocks == 9


def test_the_number_of_a_run_is_used_again(bench):
    b = pool_of_ten(bench)
    gone = int(b.jobs[0].own)
    b.do(blocks.drop_run, run=gone)
    assert b.do(blocks.add_run, group=-1, job=2, low=0, high=1) == gone
    assert b.do(blocks.add_run, group=-1, job=0, low=0, high=1) == 3


def test_a_request_finds_its_own_blocks_only_where_it_goes_on(bench):
    # Its own are the third and fourth of its text; the first two are those of its group, if they are still there.
    b = bench(
        make([0], [40], [9], prefix_group=np.array([0]), prefix_tokens=np.array([20])),
        limits(blocks=10, size=10),
        block_size=10,
    )
    b.jobs[0].own = b.do(blocks.add_run, group=-1, job=0, low=2, high=4)
    for cached, found in ((0, (0, 0)), (1, (1, 0)), (2, (2, 2)), (9, (2, 2))):
        b.groups[0].cached = cached
        assert b.do(blocks.find_cached, job=0, known=45) == found
    b.jobs[0].own = 0
    assert b.do(blocks.find_cached, job=0, known=45) == (2, 0)
    assert b.do(blocks.find_cached, job=0, known=20) == (1, 0)  # the last token is always computed


# -- the text of a prefix group


def group_of_three(bench):
    """Blocks of 4, 16 common tokens: three prompts of 17 are in the cache once the first has been scheduled."""
    requests = make([0] * 3, [17] * 3, [5] * 3, prefix_group=np.zeros(3, dtype=int), prefix_tokens=np.full(3, 16))
    b = bench(requests, limits(blocks=30, size=4), block_size=4)
    return b, b.admit(0, 1, 2)


def test_a_text_is_published_block_by_block_and_held_once(bench):
    b, slots = group_of_three(bench)
    group = b.groups[0]
    assert (group.cached, group.users, group.top, group.at_top) == (4, 3, 4, 3)
    # 4 + 3 blocks, not 3 x 5; each holds a single one of its own.
    assert b.st.free_blocks == 30 - 7
    assert [int(b.slots[slot].held) for slot in slots] == [1, 1, 1]
    assert b.st.shared_twice == 2 * 4
    assert b.st.hit_tokens == 2 * 16


def test_only_who_goes_on_where_the_text_ends_adds_to_it(bench):
    requests = make([0] * 2, [30] * 2, [5] * 2, prefix_group=np.zeros(2, dtype=int), prefix_tokens=np.full(2, 28))
    b = bench(requests, limits(blocks=30, size=4, budget=10), block_size=4)
    (slot, _) = b.admit(0, 1)
    assert b.groups[0].cached == 2  # 10 tokens fill two blocks
    assert (b.slots[slot].shared, b.slots[slot].held) == (2, 1)  # three blocks, one of them its own
    b.groups[0].cached = 5  # others have gone further
    b.do(blocks.publish, slot=slot, tokens=20)
    assert (b.groups[0].cached, b.slots[slot].shared) == (5, 2)
    b.groups[0].cached = 2
    b.slots[slot].held += 5  # the blocks of 20 more tokens
    b.do(blocks.publish, slot=slot, tokens=30)
    assert b.groups[0].cached == 7  # no request asks for more than 28 tokens
    assert (b.slots[slot].shared, b.slots[slot].held) == (7, 1)


def test_a_text_is_free_once_the_last_who_holds_it_lets_go(bench):
    b, slots = group_of_three(bench)
    free = int(b.st.free_blocks)
    for slot in slots[:2]:
        b.do(blocks.release_blocks, slot=slot, keep=False)
        free += 1
        assert b.st.free_blocks == free
        assert b.free_runs == []
    b.do(blocks.release_blocks, slot=slots[2], keep=False)
    assert b.st.free_blocks == 30
    assert [(low, high) for _, low, high in b.free_runs] == [(0, 4)]
    assert (b.groups[0].users, b.groups[0].top, b.st.shared_twice) == (0, 0, 0)


def test_only_what_nobody_else_holds_becomes_free(bench):
    # Conversations: the second holds 2 of the 4 blocks that the first holds.
    requests = make([0] * 2, [17, 9], [5] * 2, prefix_group=np.zeros(2, dtype=int), prefix_tokens=np.array([16, 8]))
    b = bench(requests, limits(blocks=30, size=4), block_size=4)
    first, second = b.admit(0, 1)
    assert b.st.free_blocks == 30 - 5 - 1
    b.do(blocks.release_blocks, slot=first, keep=False)
    assert [(low, high) for _, low, high in b.free_runs] == [(2, 4)]
    assert (b.groups[0].top, b.groups[0].at_top) == (2, 1)
    assert b.st.free_blocks == 30 - 3
    b.do(blocks.release_blocks, slot=second, keep=False)
    assert b.st.free_blocks == 30


def test_those_who_hold_most_of_a_text_are_counted(bench):
    # Five requests hold 4, 3, 3, 2 and 3 blocks of the text.
    prefix = np.array([16, 12, 12, 8, 12])
    requests = make([0] * 5, (prefix + 1).tolist(), [5] * 5, prefix_group=np.zeros(5, dtype=int), prefix_tokens=prefix)
    b = bench(requests, limits(seqs=8, blocks=30, size=4), block_size=4)
    slots = b.admit(0, 1, 2, 3, 4)
    group = b.groups[0]
    assert (group.top, group.at_top, b.st.shared_twice) == (4, 1, 3 + 3 + 2 + 3)
    b.do(blocks.release_blocks, slot=slots[0], keep=False)
    b.do(sequences.unlink_running, slot=slots[0])
    assert (group.top, group.at_top, b.st.shared_twice) == (3, 3, 3 + 3 + 2 + 3 - 3)
    for k in (1, 4):
        b.do(blocks.release_blocks, slot=slots[k], keep=False)
        b.do(sequences.unlink_running, slot=slots[k])
    assert (group.top, group.at_top, group.users) == (3, 1, 2)
    b.do(blocks.release_blocks, slot=slots[2], keep=False)
    assert (group.top, group.at_top) == (2, 1)
    assert [(low, high) for _, low, high in b.free_runs] == [(3, 4), (2, 3)]


def test_a_sequence_that_decodes_gives_back_what_it_holds_and_what_was_taken_ahead(bench):
    # Blocks of 4, two of them shared; 17 + 2 tokens fill 5 blocks, so it holds 3 of its own, and 2 more whatever its
    # length. Two tokens ahead begin a sixth.
    requests = make([0], [17], [9], prefix_group=np.array([0]), prefix_tokens=np.array([8]))
    b = bench(requests, limits(blocks=30, size=4, fixed=2), block_size=4)
    (slot,) = b.prefill(0)
    b.decode(2)
    assert b.st.free_blocks == 30 - 5 - 2
    b.st.free_blocks -= 1
    b.st.ahead = 2
    b.do(blocks.release_blocks, slot=slot, keep=False)
    assert b.st.free_blocks == 30


def test_drafts_beyond_the_end_are_not_written(bench):
    # Blocks of 4, prompt 6 and 3 tokens to make: the last token made is not cached, so 8 tokens fill two blocks,
    # although drafting went on to 12.
    b = bench(make([0], [6], [3]), limits(blocks=30, size=4), block_size=4)
    (slot,) = b.prefill(0)
    b.slots[slot].offset += 6
    b.st.free_blocks -= 1
    b.do(blocks.release_blocks, slot=slot, keep=True)
    assert [(low, high) for _, low, high in b.free_runs] == [(0, 2)]


def test_a_hit_takes_the_leading_blocks_out_of_the_queue(bench):
    b, slots = group_of_three(bench)
    for slot in slots:
        b.do(blocks.release_blocks, slot=slot, keep=False)
    ((dead, low, high),) = b.free_runs
    b.do(blocks.hit_text, group=0, shared=0)
    assert b.free_runs == [(dead, 0, 4)]
    b.do(blocks.hit_text, group=0, shared=3)
    assert b.free_runs == [(dead, 3, 4)]
    b.do(blocks.hit_text, group=0, shared=3)
    assert b.free_runs == [(dead, 3, 4)]
    b.do(blocks.hit_text, group=0, shared=4)
    assert b.free_runs == []
    assert b.groups[0].cached == 4  # in use now, and still in the cache
    assert (low, high) == (0, 4)


@pytest.mark.parametrize(("name", "kept"), [("vllm", 2), ("sglang", 1)])
def test_what_a_preempted_sequence_leaves_behind(bench, name, kept):
    # Blocks of 4, prompt 6: at 10 tokens two blocks are full, of which the prompt fills one. SGLang's cache keeps
    # only prompts here.
    b = bench(make([0], [6], [9]), limits(blocks=30, size=4), name=name, block_size=4)
    (slot,) = b.prefill(0)
    b.decode(4)
    assert b.st.free_blocks == 30 - 3
    b.do(blocks.release_blocks, slot=slot, keep=True)
    assert b.st.free_blocks == 30
    assert [(low, high) for _, low, high in b.free_runs] == [(0, kept)]


def test_a_static_batch_gives_its_memory_back_as_a_whole(bench):
    b = bench(make([0], [6], [9]), limits(blocks=30), name="static")
    b.st.free_blocks = 11
    b.do(blocks.release_blocks, slot=0, keep=False)
    assert b.st.free_blocks == 11
