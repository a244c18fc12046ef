"""Capacity in closed form where every step takes one second."""

import dataclasses

import numpy as np
import pytest

from planner import Scenario
from planner.answer.planning import replica_of, size
from planner.catalog.engines import get_engine
from planner.service.capacity import at_once, capacity, capacity_rps, repeated
from planner.service.replica import Replica
from planner.workload.offered import draw
from tests.service.cases import SLOTS, requests_of, toy
from tests.simulation.cases import UNIT, limits, make


def test_capacity_is_slots_over_the_steps_of_a_request():
    # Each slot makes a token a second, prompts ride along: 8 slots / 10 tokens = 0.8 requests a second.
    outputs = np.random.default_rng(1).integers(5, 16, 300)
    expected = SLOTS / outputs.mean()
    assert capacity_rps(toy(), requests_of(outputs)) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("count", [SLOTS // 2, SLOTS, 40])
def test_few_requests_show_the_capacity_that_many_would(count):
    # Fewer requests than slots are one batch, whose prompts and drain hide the rate: they are repeated.
    outputs = np.resize([6, 10, 14], count)
    assert capacity_rps(toy(), requests_of(outputs)) == pytest.approx(SLOTS / outputs.mean(), rel=0.05)


def test_capacity_does_not_depend_on_how_many_requests_are_drawn():
    found = []
    for count in (600, 20_000):
        scenario = Scenario(num_requests=count, lengths="constant", prompt_mean_tokens=800, output_mean_tokens=200)
        found.append(capacity_rps(replica_of(size(scenario)), draw(scenario)))
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_repeated_requests_keep_lengths_and_gaps():
    once = requests_of([3, 5, 7])
    many = repeated(once, 7)
    assert many.output_tokens.tolist() == [3, 5, 7] * 3
    assert np.diff(many.arrival_s) == pytest.approx(np.ones(8))
    assert repeated(once, 3) is once


def test_all_wait_from_the_start():
    queued = at_once(requests_of([3, 5, 7]))
    assert queued.arrival_s.tolist() == [0, 0, 0]
    assert queued.output_tokens.tolist() == [3, 5, 7]
    assert queued.closed_loop_users == 0


def test_the_slower_of_engine_and_api_server_sets_the_rate():
    outputs = np.full(300, 10)
    engine = SLOTS / 10
    for each in ((5.0, 0.0, 0.0), (0.0, 0.0, 0.5), (2.0, 0.1, 0.3), (0.0, 1.5, 0.0), (0.01, 0.0, 0.0)):
        names = ("server_per_request_s", "server_per_prompt_token_s", "server_per_token_s")
        table = dataclasses.replace(toy().step_time, **dict(zip(names, each, strict=True)))
        found = capacity_rps(dataclasses.replace(toy(), step_time=table), requests_of(outputs, prompt=4))
        per_request, per_prompt_token, per_token = each
        work = per_request + per_prompt_token * 4 + per_token * 10
        assert found == pytest.approx(min(engine, 1 / work), rel=0.02)


def test_requests_that_are_turned_away_count_as_offered():
    # Every third prompt is longer than the context of 4,096 tokens: 0.8 finished are two thirds of what is offered.
    prompts = np.tile([1, 1, 5000], 200)
    requests = dataclasses.replace(requests_of(np.full(600, 10)), prompt_tokens=prompts)
    assert capacity_rps(toy(), requests) == pytest.approx(SLOTS / 10 * 3 / 2, rel=0.02)


def test_nothing_is_served_where_nothing_fits():
    assert capacity_rps(toy(), requests_of(np.full(20, 10), prompt=5000)) == 0


def test_capacity_does_not_hang_on_how_long_clients_wait():
    # Two slots, 10 steps of 1 s each: 0.2 a second, whoever would have left or been turned away meanwhile.
    requests = make([0.1 * k for k in range(200)], [1] * 200, [10] * 200)
    for changes in (
        {"patience_s": 3.0},
        {"timeout_s": 12.0},
        {"max_queued_requests": 1},
        {"max_concurrent_requests": 2},
    ):
        engine = dataclasses.replace(get_engine("vllm"), **changes)
        replica = Replica(engine=engine, limits=limits(seqs=2 if "max_conc" not in str(changes) else 9), step_time=UNIT)
        assert capacity_rps(replica, requests) == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("count", [600, 3_000])
@pytest.mark.parametrize("max_loras", [1, 2, 8])
def test_adapters_that_take_turns_cost_no_capacity(count, max_loras):
    # Eight slots, answers of 10 tokens, a second a token: 0.8 a second for as long as one adapter has its turn. Turns
    # grow with the queue, so the drain at their ends weighs ever less; in a run this long it would still show.
    adapters = np.random.default_rng(2).integers(0, 8, count)
    requests = dataclasses.replace(requests_of(np.random.default_rng(1).integers(5, 16, count)), adapter=adapters)
    engine = dataclasses.replace(get_engine("vllm"), max_loras=max_loras)
    expected = SLOTS / requests.output_tokens.mean()
    assert capacity_rps(dataclasses.replace(toy(), engine=engine), requests) == pytest.approx(expected, rel=0.02)


def test_a_long_run_with_turns_comes_to_the_capacity():
    # What `without_turns` says at once, and the scheduler with its turns only in the limit, from below.
    def rate(count):
        adapters = np.arange(count) % 4
        requests = dataclasses.replace(requests_of(np.resize([5, 10, 15, 30], count)), adapter=adapters)
        engine = dataclasses.replace(get_engine("vllm"), max_loras=1)
        result = dataclasses.replace(toy(), engine=engine).run(at_once(requests))
        return count / result.duration_s, capacity_rps(dataclasses.replace(toy(), engine=engine), requests)

    short, long = rate(200), rate(20_000)
    assert short[0] < 0.9 * short[1]
    assert long[0] == pytest.approx(long[1], rel=0.01)


def test_adapters_without_a_slot_are_turned_away_all_the_same():
    # Every second request is for an adapter, and there is no LoRA: 0.8 finished are half of what is offered.
    requests = dataclasses.replace(requests_of(np.full(600, 10)), adapter=np.tile([-1, 0], 300))
    engine = dataclasses.replace(get_engine("vllm"), max_loras=0)
    found = capacity_rps(dataclasses.replace(toy(), engine=engine), requests)
    assert found == pytest.approx(SLOTS / 10 * 2, rel=0.02)


def test_the_interval_holds_what_other_requests_of_the_kind_would_say():
    # Geometric answers of 10 tokens on average on 8 slots: 0.8 a second in the long run.
    found = [capacity(toy(), requests_of(np.random.default_rng(seed).geometric(0.1, 3_000))) for seed in range(300)]
    holds = np.mean([abs(item.rps - 0.8) <= item.half_width_rps for item in found])
    assert 0.92 <= holds <= 0.98  # 95 %; two standard errors of 300 draws: 2.5 %
    # The rate of n requests is that of n independent answers: 1.96 x 0.95 / sqrt(n) of the mean, wider for 6 batches.
    assert np.mean([item.half_width_rps for item in found]) == pytest.approx(0.8 * 2.57 * 0.95 / 3_000**0.5, rel=0.15)


def test_requests_that_are_all_alike_leave_no_doubt():
    # Waves of eight: wherever the counting begins and ends, as many of each.
    for count in (300, 301, 305, 1_003):
        found = capacity(toy(), requests_of(np.full(count, 10)))
        assert (found.rps, found.half_width_rps) == (pytest.approx(0.8), 0.0)


def test_an_api_server_that_binds_is_as_uncertain_as_the_work_of_its_requests():
    # 1 s a token of the answer: the standard error of the mean answer.
    outputs = np.random.default_rng(3).geometric(0.1, 3_000)
    table = dataclasses.replace(toy().step_time, server_per_token_s=1.0)
    found = capacity(dataclasses.replace(toy(), step_time=table), requests_of(outputs))
    assert found.rps == pytest.approx(1 / outputs.mean())
    assert found.half_width_rps / found.rps == pytest.approx(1.96 * outputs.std() / outputs.mean() / 3_000**0.5)


def test_repeated_requests_tell_nothing_of_others_and_drawn_ones_do():
    few = requests_of(np.random.default_rng(4).geometric(0.1, 40))

    def more(count):
        assert count > 40
        return requests_of(np.random.default_rng(4).geometric(0.1, 5_000))

    assert np.isnan(capacity(toy(), few).half_width_rps)
    drawn = capacity(toy(), few, more)
    assert drawn == capacity(toy(), more(5_000))
    assert abs(drawn.rps - 0.8) < 2 * drawn.half_width_rps
