"""The API server's clock, by hand: 0.25 s to read a request, 0.125 s to send a token."""

import dataclasses
import math

import pytest

from planner.simulation.kernel import server
from tests.simulation.cases import UNIT, limits, make

TABLE = dataclasses.replace(UNIT, server_per_request_s=0.25, server_per_token_s=0.125)


def on_the_bench(bench, requests, **changes):
    b = bench(requests, limits(seqs=8), table=TABLE, **changes)
    b.st.sending = b.do(server.next_sending_s)
    return b


def test_requests_are_read_in_the_order_in_which_they_come(bench):
    b = on_the_bench(bench, make([1.0, 1.1, 5.0], [1] * 3, [1] * 3))
    # Nothing has been read: the first is there once it has come and been read.
    assert (b.st.sending, b.do(server.next_arrival_s)) == (1.0, 1.25)
    for reading_ends in (1.25, 1.5, 5.25):  # the second waits for the first, the third for nobody
        b.do(server.read_next)
        assert b.st.server_free == reading_ends
    assert b.jobs.waits_since.tolist() == [1.25, 1.5, 5.25]
    assert b.st.sending == math.inf
    assert b.do(server.next_arrival_s) == 1.25  # read, and not yet taken by the scheduler
    b.st.next = 3
    assert b.do(server.next_arrival_s) == math.inf


def test_longer_prompts_take_longer_to_tokenise(bench):
    # 0.25 s each and 0.0625 s a token of the prompt: 0.5, then 0.3125, then 2.25.
    table = dataclasses.replace(TABLE, server_per_prompt_token_s=0.0625)
    b = bench(make([1.0, 1.1, 5.0], [4, 1, 32], [1] * 3), limits(seqs=8), table=table)
    b.st.sending = b.do(server.next_sending_s)
    assert b.do(server.next_arrival_s) == 1.5
    for reading_ends in (1.5, 1.8125, 7.25):
        b.do(server.read_next)
        assert b.st.server_free == reading_ends


def test_users_of_a_closed_loop_send_when_they_are_ready(bench):
    # Three users, two seconds to think, six requests: three at once, the others after answers.
    b = on_the_bench(bench, make([0] * 6, [1] * 6, [1] * 6, closed_loop_users=3, think_time_s=2.0))
    for _ in range(3):
        b.do(server.read_next)
    assert (b.st.ready, b.st.sending) == (0, math.inf)  # nobody is left to ask
    for answered in (3.0, 4.5, 4.75):
        b.st.clock = b.st.server_free = answered
        b.do(server.ask_again)
        assert b.st.sending == 5.0
    for _ in range(3):
        b.do(server.read_next)
    assert b.jobs.arrival.tolist() == [0, 0, 0, 5.0, 6.5, 6.75]
    b.do(server.ask_again)
    assert b.st.sending == math.inf  # all requests have been sent


def test_who_asks_again_has_seen_the_answer(bench):
    # The step ends at 3, its last token is sent at 3.5: the user thinks from then on.
    b = on_the_bench(bench, make([0] * 2, [1] * 2, [1] * 2, closed_loop_users=1, think_time_s=2.0))
    b.do(server.read_next)
    b.st.clock, b.st.server_free = 3.0, 3.5
    b.do(server.ask_again)
    assert b.st.sending == 5.5


def test_an_open_loop_does_not_ask_again(bench):
    b = on_the_bench(bench, make([0] * 2, [1] * 2, [1] * 2))
    b.do(server.ask_again)
    assert b.st.ready == 0


@pytest.mark.parametrize(("free_at", "sent"), [(0.0, 10 + 0.375), (10.2, 10.2 + 0.375)])
def test_a_steps_tokens_are_sent_one_after_the_other(bench, free_at, sent):
    # Two sequences decode and a prompt is complete: three tokens, as soon as the server has nothing else to do.
    b = on_the_bench(bench, make([0], [1], [1]))
    b.st.clock, b.st.server_free, b.st.decoding = 10.0, free_at, 2
    b.do(server.send_tokens, gain=1, prompts=1)
    assert b.st.server_free == pytest.approx(sent)


def test_drafts_beyond_the_end_of_an_answer_are_not_sent(bench):
    # Four tokens a step: A wants 4 more, B 1, C 2. Of 12 tokens made, 0 + 3 + 2 are nobody's.
    b = on_the_bench(bench, make([0] * 3, [1] * 3, [5, 2, 3]), num_speculative_tokens=3, speculative_acceptance=1.0)
    b.prefill(0, 1, 2)
    b.st.token_clock += 4
    assert b.do(server.tokens_beyond_the_end, gain=4) == 5
    b.st.server_free = b.st.clock
    b.do(server.send_tokens, gain=4, prompts=0)
    assert b.st.server_free == b.st.clock + (12 - 5) * 0.125
