"""Steps by hand: what they compute, what comes out of them, and when a run of them must stop."""

import math

import numpy as np
import pytest

from planner.simulation.kernel import schedule, server, steps
from planner.simulation.kernel.timing import gap_bin
from planner.simulation.records import FINISHED
from planner.simulation.state import BY_KV, BY_SLOTS
from planner.step_time.step_table import StepTimeTable
from tests.simulation.cases import limits, make

# A step of n tokens takes n s, with prompts 2 n s, each row of its head 0.25 s, a pair of tokens in a prompt 1 ms.
TABLE = StepTimeTable(
    decode_s=np.arange(100.0), mixed_s=2 * np.arange(100.0), head_s=0.25 * np.arange(100.0), prefill_pair_s=0.001
)


def decoding(bench, prompt, output, capacity=None, **more):
    b = bench(make([0] * len(prompt), prompt, output), capacity or limits(seqs=8, blocks=100), **more)
    b.prefill(*range(len(prompt)))
    b.st.read = b.st.next = b.st.fed
    b.st.sending = b.do(server.next_sending_s)
    return b


def run(b, until=math.inf):
    return b.do(steps.decode_run, until=until)


def test_a_step_with_prompts_and_decodes(bench):
    # Two decode, 8 of the 10 tokens of a prompt beside them: 10 tokens, 2 rows, 8 tokens see 1 to 8.
    b = bench(make([0] * 3, [1, 1, 10], [9] * 3), limits(seqs=8, budget=10), table=TABLE)
    b.prefill(0, 1)
    b.admit(2)
    b.slots[0].chunk_tokens = 8
    begin = b.st.clock
    assert b.do(steps.execute_step, decodes=2, gain=1, pad=0) == 0
    assert b.st.clock - begin == pytest.approx(2 * 10 + 2 * 0.25 + 0.001 * 36)
    # the last two tokens of the prompt complete it: one more row
    b.do(steps.complete_chunks)
    b.do(schedule.add_chunk, slot=b.jobs[2].place - 1, tokens=2)
    begin = b.st.clock
    assert b.do(steps.execute_step, decodes=2, gain=1, pad=0) == 1
    assert b.st.clock - begin == pytest.approx(2 * 4 + 3 * 0.25 + 0.001 * (9 + 10))


@pytest.mark.parametrize(("name", "seconds"), [("vllm", 3), ("generic", 2 * 3 + 3 * 0.25 + 0.001 * 9)])
def test_a_chunk_of_one_token_is_a_decode_in_vllm(bench, name, seconds):
    b = bench(make([0] * 3, [1, 1, 9], [9] * 3), limits(seqs=8, budget=10), table=TABLE, family=name)
    b.prefill(0, 1)
    b.admit(2)
    b.slots[0].chunk_tokens = 8
    b.do(steps.execute_step, decodes=2, gain=1, pad=0)
    b.do(steps.complete_chunks)
    b.do(schedule.add_chunk, slot=b.jobs[2].place - 1, tokens=1)
    begin = b.st.clock
    assert b.do(steps.execute_step, decodes=2, gain=1, pad=0) == 1
    assert b.st.clock - begin == pytest.approx(seconds)


def test_a_static_batch_pays_for_its_longest_prompt(bench):
    # Prompts of 2 and 5 as two of 5: 10 tokens, 15 pairs each.
    b = bench(make([0] * 2, [2, 5], [9] * 2), limits(seqs=2), name="static", table=TABLE)
    b.st.read = b.st.next = b.st.fed
    b.st.sending = b.do(server.next_sending_s)
    b.enqueue(0, 1)
    assert b.do(steps.form_batch) == -1
    assert (b.st.batch, b.st.batch_pad, b.st.batch_kv) == (2, 5, 10)
    assert b.do(steps.execute_step, decodes=0, gain=1, pad=5) == 2
    assert b.st.clock == pytest.approx(2 * 10 + 2 * 0.25 + 0.001 * 30)
    assert b.st.prefill_tokens == 10


def test_a_prompt_that_ends_gives_the_first_token(bench):
    b = bench(make([0] * 2, [4, 4], [1, 3]), limits())
    b.admit(0, 1)
    b.do(steps.execute_step, decodes=0, gain=1, pad=0)
    b.st.server_free = 1.5  # sent half a second later
    b.do(steps.complete_chunks)
    assert b.jobs.first_token.tolist() == [1.5, 1.5]
    assert b.jobs[0].status == FINISHED
    assert b.decoding == [1]
    assert (b.st.partials, b.st.chunks, b.st.partial_tokens) == (0, 0, 0)


def test_a_resumed_request_goes_on_where_it_was(bench):
    # Preempted with 3 tokens out, the last at 2.0; its fourth comes at 7.5: that is its longest gap.
    b = bench(make([0], [4], [9]), limits())
    b.jobs[0].made, b.jobs[0].last_token, b.jobs[0].preemptions, b.jobs[0].max_gap = 3, 2.0, 1, 1.0
    b.jobs[0].first_token = 0.5
    (slot,) = b.admit(0)
    assert b.slots[slot].known == 4 + 3
    b.do(steps.execute_step, decodes=0, gain=1, pad=0)
    b.st.server_free = 7.5
    b.do(steps.complete_chunks)
    assert (b.jobs[0].max_gap, b.jobs[0].first_token) == (5.5, 0.5)
    assert b.tallies[b.st.gaps_from + gap_bin.py_func(5.5)] == 1
    assert b.calendar[5].due == slot  # 9 - 4 tokens are still to come


def test_sglangs_ratio_falls_in_600_steps(bench):
    # From 0.7 to 0.1 in equal parts, then no further.
    b = bench(make([0], [1], [900]), limits(), name="sglang", new_token_ratio=0.7, min_new_token_ratio=0.1)
    for step in range(1, 700):
        b.do(steps.decode_step_done, gain=1)
        assert b.st.ratio == pytest.approx(max(0.1, 0.7 - step * 0.001))
    assert b.st.steps_since_prefill == 699


# -- runs of steps that only decode


def test_a_run_stops_when_a_sequence_ends(bench):
    # A and B have 3 and 5 tokens to come: the run makes 3, of which the last is not sent yet.
    b = decoding(bench, [1, 1], [4, 6])
    assert run(b) == 1
    assert (b.st.token_clock, b.st.clock, b.st.server_free) == (3, 1 + 3, 3.0)


def test_a_run_equals_its_single_steps(bench):
    one, many = decoding(bench, [3, 1], [9, 9], table=TABLE), decoding(bench, [3, 1], [9, 9], table=TABLE)
    run(many)
    many.st.server_free = many.st.clock
    many.do(steps.decode_step_done, gain=1)
    for _ in range(8):
        one.do(steps.execute_step, decodes=2, gain=1, pad=0)
        one.st.server_free = one.st.clock
        one.do(steps.decode_step_done, gain=1)
    for name in ("clock", "busy_s", "kv_tokens", "running_area", "written_area", "decode_tokens", "emissions", "steps"):
        assert getattr(one.st, name) == getattr(many.st, name), name
    np.testing.assert_array_equal(one.tallies[:1000], many.tallies[:1000])


def test_a_run_stops_before_a_block_is_missing(bench):
    # 3 blocks of a token are free: three steps of one sequence.
    b = decoding(bench, [5], [9], limits(blocks=8))
    assert run(b) == 0
    assert (b.st.token_clock, b.st.free_blocks) == (3, 0)


@pytest.mark.parametrize(("until", "made"), [(3.0, 2), (3.5, 3)])
def test_a_run_stops_at_the_first_step_that_ends_no_earlier(bench, until, made):
    b = decoding(bench, [5], [99])
    run(b, until)
    assert b.st.token_clock == made


@pytest.mark.parametrize(("ahead", "end"), [(False, 5.0), (True, 6.0)])
def test_a_run_stops_when_a_request_has_been_read(bench, ahead, end):
    # B has been read at 4.2, the prompt took until 1: the step that ends at 5 is the last, or, where the step from 5
    # to 6 was filled at 4, the one after it.
    b = decoding(bench, [5], [99])
    again = bench(make([0, 4.2], [5, 1], [99, 1]), limits(blocks=200), async_scheduling=ahead)
    again.prefill(0)
    again.st.next, again.st.read = 1, 2
    again.jobs[1].waits_since = 4.2
    again.st.sending = math.inf
    run(again)
    assert again.st.clock == end
    run(b, until=50.0)
    assert b.st.clock == 50.0


def test_a_run_stops_when_a_client_leaves(bench):
    b = decoding(bench, [5], [99], limits(blocks=200), timeout_s=6.5)
    run(b)
    assert b.st.clock == 7.0


# -- static batches


@pytest.mark.parametrize(
    ("waiting", "clock", "answer"),
    [
        ([0, 1], 0.25, -1.0),  # full
        ([0], 0.25, 0.5),  # the next request comes at 0.5
        ([0], 2.0, -1.0),  # the oldest has waited for its second
    ],
)
def test_when_a_static_batch_starts(bench, waiting, clock, answer):
    b = bench(make([0, 0, 0.5, 9], [1] * 4, [1] * 4), limits(seqs=2), name="static", batch_timeout_s=1.0)
    b.enqueue(*waiting)
    b.st.clock, b.st.next, b.st.read = clock, 2, 2
    b.st.sending = b.do(server.next_sending_s)
    assert b.do(steps.form_batch) == answer
    assert b.running == (waiting if answer < 0 else [])


def test_the_last_requests_wait_for_nobody(bench):
    b = bench(make([0] * 2, [1] * 2, [1] * 2), limits(seqs=2), name="static", batch_timeout_s=None)
    b.st.next = b.st.read = 2
    b.st.sending = math.inf
    b.enqueue(0)
    assert b.do(steps.form_batch) == -1
    assert b.st.reason == BY_KV  # what came, not the number of slots, ends the batch


def test_memory_limits_a_static_batch(bench):
    # Each may need 2 + 8 tokens: of 25 blocks two.
    b = bench(make([0] * 3, [2] * 3, [1] * 3, limit=[8] * 3), limits(seqs=3, blocks=25, max_len=30), name="static")
    b.rules.reserve_output = 1
    b.enqueue(0, 1, 2)
    assert b.do(steps.form_batch) == -1
    assert (b.running, b.waiting, b.st.free_blocks, b.st.reason) == ([0, 1], [2], 5, BY_KV)


def test_a_full_static_batch(bench):
    b = bench(make([0] * 3, [2] * 3, [1] * 3), limits(seqs=2), name="static")
    b.enqueue(0, 1, 2)
    b.do(steps.form_batch)
    assert (b.running, b.st.reason) == ([0, 1], BY_SLOTS)


@pytest.mark.parametrize(
    ("name", "state", "sure"),
    [
        ("vllm", {"decoding": 2}, True),
        ("vllm", {"decoding": 0}, False),
        ("vllm", {"decoding": 2, "partials": 1}, False),
        ("vllm", {"decoding": 2, "waiting": 1}, False),
        ("vllm", {"decoding": 2, "waiting": 1, "blocked": 1}, True),
        ("sglang", {"decoding": 2, "waiting": 1}, False),
        ("tgi", {"decoding": 9, "running": 9, "waiting": 1}, True),  # too few wait to pause decoding
        ("static", {"decoding": 2, "waiting": 1}, True),
    ],
)
def test_when_a_step_surely_holds_no_prompt(bench, name, state, sure):
    b = bench(make([0], [1], [1]), limits(), name=name)
    for field, value in state.items():
        setattr(b.st, field, value)
    assert b.do(steps.decodes_only) == sure
