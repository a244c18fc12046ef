"""The API server as a station beside the engine: traces by hand, closed forms, and Little's law on the records."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.inputs.engine import EngineSettings
from planner.inputs.traffic import Arrivals, Lengths, ServiceLevel, Traffic
from planner.service.capacity import capacity_rps
from planner.service.metrics import measure
from planner.service.replica import Replica
from planner.simulation.api_server import server_s
from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED
from planner.simulation.router import ROUTERS, simulate_fleet
from planner.step_time.step_table import StepTimeTable
from planner.workload.drawing import draw_requests
from tests.simulation.cases import UNIT, limits, make

ROOMY = limits(seqs=64, budget=4096, max_len=4096, blocks=4096, size=16)


def served(per_request_s=0.0, per_token_s=0.0, step_s=1.0, **more):
    steps = np.full(4097, step_s)
    return StepTimeTable(
        decode_s=steps,
        mixed_s=steps,
        head_s=np.zeros(4097),
        server_per_request_s=per_request_s,
        server_per_token_s=per_token_s,
        **more,
    )


def run(requests, table, *, capacity=ROOMY, name="vllm", **changes):
    return simulate(requests, dataclasses.replace(get_engine(name), **changes), capacity, table)


def test_three_requests_by_hand():
    # 0.25 s to read a request, 0.125 s to send a token, steps of 1 s. Read: A until 0.25, B until 0.5.
    # 0.25-1.25: A's prompt, sent until 1.375. 1.25-2.25: A decodes, B's prompt. C is sent at 1.3 and read from 1.375
    # to 1.625. At 2.25 two tokens: sent until 2.5. 2.25-3.25: C's prompt, sent until 3.375.
    result = run(make([0, 0, 1.3], [1, 1, 1], [2, 1, 1]), served(0.25, 0.125), async_scheduling=False)
    assert result.admitted_s.tolist() == [0.25, 1.25, 2.25]
    assert result.first_token_s.tolist() == [1.375, 2.5, 3.375]
    assert result.finish_s.tolist() == [2.5, 2.5, 3.375]
    assert result.max_itl_s.tolist() == [1.125, 0, 0]
    assert result.num_steps == 3  # the engine never waits for the server
    assert result.busy_s == 3.0


def test_tokens_wait_behind_a_request_that_came_before_them():
    # C comes at 2.2 and is read until 2.45; the tokens of the step that ends at 2.25 follow, until 2.7.
    result = run(make([0, 0, 2.2], [1, 1, 1], [2, 1, 1]), served(0.25, 0.125), async_scheduling=False)
    assert result.finish_s[:2] == pytest.approx([2.7, 2.7])
    assert result.admitted_s[2] == 2.45


def test_a_request_that_comes_as_a_step_ends_is_read_after_its_tokens():
    # The step ends at 1.25; B comes then. A's token is sent until 1.375, B is read until 1.625.
    result = run(make([0, 1.25], [1, 1], [1, 1]), served(0.25, 0.125))
    assert result.finish_s[0] == 1.375
    assert result.admitted_s[1] == 1.625


def test_a_user_asks_again_once_it_has_seen_the_answer():
    # Read 0.25, step 1, sent 0.125, think 0.5: a round of 1.875 s.
    requests = make([0, 0, 0], [1, 1, 1], [1, 1, 1], closed_loop_users=1, think_time_s=0.5)
    result = run(requests, served(0.25, 0.125))
    assert result.arrival_s.tolist() == [0, 1.875, 3.75]
    assert result.finish_s.tolist() == [1.375, 3.25, 5.125]


def test_a_long_prompt_is_tokenised_before_the_scheduler_sees_it():
    # 0.25 s and 0.5 s for each of 2 tokens, a step of 1 s, 0.125 s to send: the first token at 2.375.
    result = run(make([0], [2], [1]), served(0.25, 0.125, server_per_prompt_token_s=0.5))
    assert result.admitted_s[0] == 1.25
    assert result.first_token_s[0] == 2.375


def test_a_burst_reaches_the_scheduler_one_by_one():
    result = run(make([0] * 20, [1] * 20, [1] * 20), served(0.25, step_s=0.01))
    assert result.admitted_s == pytest.approx(0.25 * np.arange(1, 21))


def test_an_engine_with_several_tokens_a_step_sends_only_those_asked_for():
    # Two tokens a step, an answer of 4: the prompt's, 2, and 1 of the last 2. 0.125 s each, from the end of each step.
    result = run(make([0], [1], [4]), served(0.0, 0.125), num_speculative_tokens=1, speculative_acceptance=1.0)
    assert result.first_token_s[0] == 1.125
    assert result.finish_s[0] == 3.125


def test_tokens_in_groups_cost_a_part_of_the_work():
    # Four tokens a message: a token costs 0.125 / 4, and the first is sent at once.
    result = run(make([0], [1], [3]), served(0.25, 0.125), stream_interval_tokens=4)
    assert result.first_token_s[0] == 1.25 + 0.125 / 4
    assert result.finish_s[0] == 3.25 + 0.125 / 4


def test_patience_ends_when_the_client_has_seen_its_token():
    # The token is computed at 1 s and sent at 3: a client with 2 s of patience is gone, one with 3 s is not.
    requests = make([0], [1], [1])
    assert run(requests, served(0.0, 2.0), patience_s=2.0).status.tolist() == [ABANDONED]
    assert run(requests, served(0.0, 2.0), patience_s=3.0).status.tolist() == [FINISHED]
    assert run(requests, served(0.0, 2.0), timeout_s=2.5).status.tolist() == [ABANDONED]
    # A fixed latency in front counts as well.
    assert run(requests, served(request_overhead_s=0.5), patience_s=1.25).status.tolist() == [ABANDONED]
    assert run(requests, served(request_overhead_s=0.5), patience_s=1.5).status.tolist() == [FINISHED]


def test_a_scheduler_that_looks_at_its_inbox_now_and_then():
    # 0-1: A's prompt. B comes at 1.5. Every step: its prompt at 2-3. Every fourth decode step: after those at 2, 3, 4
    # and 5 s, at 5-6.
    requests, at_once = make([0, 1.5], [2, 2], [10, 1]), {"name": "sglang", "async_scheduling": False}
    assert run(requests, UNIT, **at_once).first_token_s.tolist() == [1, 3]
    assert run(requests, UNIT, **at_once, receive_interval_steps=4).first_token_s.tolist() == [1, 6]
    # With nothing to run it looks at once.
    alone = make([0, 20.5], [2, 2], [3, 1])
    assert run(alone, UNIT, name="sglang", receive_interval_steps=4).first_token_s.tolist() == [1, 21.5]


@pytest.mark.parametrize("name", ["stream_interval_tokens", "receive_interval_steps"])
def test_an_interval_is_a_whole_number_from_one(name):
    with pytest.raises(ValueError, match=name):
        EngineSettings(**{name: 0})


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_reading_is_an_m_d_1_queue(rho):
    # Wq = s rho / (2 (1 - rho)) with a service of s = 1 s; the engine takes a microsecond.
    n = 100_000
    traffic = Traffic(
        arrivals=Arrivals(rate_rps=rho),
        prompt_tokens=Lengths(kind="constant", mean=1),
        output_tokens=Lengths(kind="constant", mean=1),
    )
    result = simulate(draw_requests(traffic, n, 3), get_engine("vllm"), ROOMY, served(1.0, step_s=1e-6))
    wait = measure(result, ServiceLevel()).wait_s  # until the scheduler takes it up, its own reading included
    assert wait.mean - 1.0 == pytest.approx(rho / (2 * (1 - rho)), abs=2 * wait.mean_half_width + 1e-5)


def poisson(rate, n=3000, output=20):
    rng = np.random.default_rng(11)
    return make(np.cumsum(rng.exponential(1 / rate, n)), [10] * n, rng.integers(1, 2 * output, n).tolist())


@pytest.mark.parametrize("router", ROUTERS)
def test_one_replica_behind_a_router_is_the_replica(router):
    # Its server must read what the router hands over in the middle of a step before that step's tokens.
    table = served(0.004, 0.0003, step_s=0.02)
    alone = simulate(poisson(30), get_engine("vllm"), ROOMY, table)
    fleet = simulate_fleet(poisson(30), get_engine("vllm"), ROOMY, table, num_replicas=1, router=router)
    np.testing.assert_array_equal(alone.finish_s, fleet.finish_s)
    assert alone.duration_s == fleet.duration_s


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "static", "one-at-a-time"])
@pytest.mark.parametrize(("per_request_s", "per_token_s"), [(0.0, 0.0), (0.004, 0.0001), (0.2, 0.0), (0.0, 0.01)])
@pytest.mark.parametrize("think_s", [0.0, 1.5])
def test_every_user_is_always_somewhere(name, per_request_s, per_token_s, think_s):
    # Little's law on the records: at any time as many requests are under way, or thought about, as there are users.
    users, n = 40, 2000
    requests = dataclasses.replace(
        poisson(1.0, n), arrival_s=np.zeros(n), closed_loop_users=users, think_time_s=think_s
    )
    result = run(requests, served(per_request_s, per_token_s, step_s=0.01), name=name)
    assert (result.status == FINISHED).all()
    end = np.sort(result.finish_s + think_s)
    for time in np.linspace(0.01, result.arrival_s[-1] * 0.999, 200):
        assert (result.arrival_s <= time).sum() - (end <= time).sum() == users
    span = float(result.finish_s.max() - result.arrival_s[0])
    work = per_request_s * n + per_token_s * float(result.output_tokens.sum())
    assert work <= span * (1 + 1e-9)  # nobody does more than a second's work in a second


def test_no_work_changes_nothing_whatever_the_messages_hold():
    requests = poisson(200)
    plain = simulate(requests, get_engine("vllm"), ROOMY, served(step_s=0.01))
    groups = run(requests, served(step_s=0.01), stream_interval_tokens=7)
    np.testing.assert_array_equal(plain.finish_s, groups.finish_s)
    # and without a server the clocks of engine and client are one: the last answer is seen as the last step ends
    assert plain.finish_s.max() == plain.arrival_s[0] + plain.duration_s


def test_work_per_request_by_hand():
    # 6 ms per request, 3 µs per token of 1,000 of its prompt and 60 µs per message; 200 tokens: 21 ms, with 4 tokens in
    # a message 12 ms.
    table, engine = served(0.006, 60e-6, server_per_prompt_token_s=3e-6), EngineSettings()
    assert server_s(table, engine, 1000, 200) == pytest.approx(0.021)
    assert server_s(table, dataclasses.replace(engine, stream_interval_tokens=4), 1000, 200) == pytest.approx(0.012)


@pytest.mark.parametrize(("per_request_s", "per_token_s", "expected"), [(0.05, 0.0, 20.0), (0.01, 0.0005, 50.0)])
def test_the_server_bounds_the_capacity(per_request_s, per_token_s, expected):
    # Engine alone: 64 sequences of 20 steps of 10 ms = 320 req/s. A server of 50 ms, or of 10 + 20 x 0.5 ms a request.
    table = served(per_request_s, per_token_s, step_s=0.01)
    replica = Replica(engine=get_engine("vllm"), limits=ROOMY, step_time=table)
    requests = make(np.arange(2000) * 0.1, [10] * 2000, [20] * 2000)
    assert capacity_rps(replica, requests) == pytest.approx(expected)
    # and the loop reaches it, with users enough, but does not pass it
    users = dataclasses.replace(requests, closed_loop_users=256)
    metrics = measure(replica.run(users), ServiceLevel())
    assert metrics.requests_per_s == pytest.approx(expected, rel=0.01)
    assert metrics.binding == "api server"


def test_an_overload_of_the_server_is_an_overload():
    replica = Replica(engine=get_engine("vllm"), limits=ROOMY, step_time=served(0.05, step_s=0.01))
    late = replica.run(make(np.arange(4000) / 25, [10] * 4000, [20] * 4000))
    assert late.verdict == "overloaded"
    # At 25 req/s reading falls behind by a quarter: what comes at t is read at 1.25 t, and its tokens wait as long
    # again, behind what came meanwhile. So 25 / 1.25² = 16 a second are answered while requests keep coming.
    assert late.capacity_rps == pytest.approx(16.0, rel=0.01)
    assert late.finish_s.max() == pytest.approx(4000 * 0.05, rel=0.01)


def gaps_of(result):
    """Gaps that clients see, by length."""
    seen = np.flatnonzero(result.itl_count)
    return {float(result.itl_gap_s[k].round(1)): int(result.itl_count[k]) for k in seen}


@pytest.mark.parametrize("name", ["vllm", "sglang", "static"])
@pytest.mark.parametrize("tokens", [1, 2, 4, 5, 6, 21, 22, 23])
@pytest.mark.parametrize("interval", [1, 2, 5, 30])
def test_a_client_sees_messages_not_tokens(name, tokens, interval):
    # Steps of 1 s. The first token goes at once, then every `interval` tokens, and what is left with the last one.
    whole, rest = divmod(tokens - 1, interval)
    requests = make([0.0] * 3, [1] * 3, [tokens] * 3)
    result = run(requests, served(), name=name, stream_interval_tokens=interval, batch_timeout_s=0.0)
    expected = {float(interval): 3 * whole} if whole else {}
    if rest:
        expected[float(rest)] = expected.get(float(rest), 0) + 3
    assert {round(gap): count for gap, count in gaps_of(result).items()} == expected
    assert result.max_itl_s.tolist() == [float(interval if whole else rest)] * 3
    plain = run(requests, served(), name=name, batch_timeout_s=0.0)
    np.testing.assert_array_equal(result.finish_s, plain.finish_s)  # and the engine does the same work
    np.testing.assert_array_equal(result.first_token_s, plain.first_token_s)


def test_messages_of_several_tokens_a_step():
    # Four tokens a step, messages from 6 tokens: the first, then 8 after two steps each, and the last 3 of 20.
    result = run(
        make([0], [1], [20]),
        served(),
        num_speculative_tokens=3,
        speculative_acceptance=1.0,
        stream_interval_tokens=6,
    )
    assert {round(gap): count for gap, count in gaps_of(result).items()} == {1: 1, 2: 2}


def test_a_preempted_answer_goes_on_with_the_message_it_had_begun():
    # Blocks for 12 tokens. Both prompts of 2 run at 0-1 s, a token a second after that. At 5 s each holds 6, and B
    # makes way for A's last two tokens (6 and 7 s). It has had 5: its 7 are computed and the 6th comes at 8 s, the 7th
    # at 9 s.
    capacity = limits(seqs=2, budget=100, max_len=100, blocks=12)
    requests = make([0, 0], [2, 2], [7, 7])
    result = run(requests, UNIT, capacity=capacity, stream_interval_tokens=3)
    assert result.num_preemptions.tolist() == [0, 1]
    assert result.finish_s.tolist() == [7, 9]
    # A: tokens 1, 4, 7 at 1, 4, 7 s. B: the 1st and 4th at 1 and 4 s, the 5th waits for the 7th, at 9 s.
    assert result.max_itl_s.tolist() == [3, 5]
