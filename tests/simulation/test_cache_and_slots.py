"""Prefix cache, LoRA slots and impatient clients: a few requests with steps of 1 s, worked out on paper."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.inputs.traffic import Arrivals, Lengths, Traffic
from planner.simulation.autoscaling import Failure, simulate_service
from planner.simulation.disaggregation import Pool, simulate_disaggregated
from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED, REJECTED
from planner.simulation.router import simulate_fleet
from planner.workload.drawing import draw_adapters, draw_requests
from tests.simulation.cases import UNIT, limits, make

TRAFFIC = Traffic(arrivals=Arrivals(rate_rps=2.0), prompt_tokens=Lengths(mean=50), output_tokens=Lengths(mean=10))


def run(name, requests, capacity, **changes):
    return simulate(requests, dataclasses.replace(get_engine(name), **changes), capacity, UNIT)


def grouped(arrival, prompt, output, group, prefix, **more):
    return make(arrival, prompt, output, prefix_group=np.array(group), prefix_tokens=np.array(prefix), **more)


# -- prefix cache


@pytest.mark.parametrize(("name", "hits"), [("vllm", 2), ("sglang", 1), ("tensorrt-llm", 1)])
def test_whole_blocks_are_found_again(name, hits):
    # Blocks of 4: of 6 common tokens one whole block. vLLM offers it as soon as it is scheduled, within the same
    # step; the others once the prompt has been computed, at 1.
    requests = grouped([0, 0, 5], [8, 8, 8], [1, 1, 1], [0] * 3, [6] * 3)
    result = run(name, requests, limits(blocks=100, size=4), block_size=4)
    assert result.prefix_tokens_hit == 4 * hits
    assert result.prefill_tokens_computed == 24 - 4 * hits


def test_the_last_token_of_a_prompt_is_always_computed():
    # Two equal prompts of two whole blocks: the second finds one, since its last token must be computed.
    result = run("vllm", grouped([0, 5], [8, 8], [1, 1], [0, 0], [8, 8]), limits(blocks=100, size=4))
    assert result.prefix_tokens_hit == 4


@pytest.mark.parametrize(("pool", "found"), [(6, 8), (5, 4), (4, 0)])
def test_the_least_recently_used_blocks_go_first_tails_before_heads(pool, found):
    # Blocks of 4. A (9 tokens, 8 common) ends at 1 and gives back its third, second, first block behind those
    # never used. B takes 4 blocks: of 6 the 3 unused and A's third; of 5 also A's second; of 4 all.
    # C looks for A's two blocks at 5.
    requests = grouped([0, 2, 5], [9, 16, 9], [1, 1, 1], [0, -1, 0], [8, 0, 8])
    result = run("vllm", requests, limits(blocks=pool, size=4))
    assert result.finish_s.tolist() == [1, 3, 6]
    assert result.prefix_tokens_hit == found


def test_a_hit_makes_blocks_recent_again():
    # Blocks of 4, pool of 6. A (group 0) and B (group 1) leave 2 + 2 blocks, A's are older; C hits A's and gives
    # them back at 5. D takes 4: two that nobody looks for and both of B. A's text is found by E, B's not by F.
    requests = grouped(
        [0, 2, 4, 6, 8, 10],
        [8, 8, 9, 16, 9, 9],
        [1] * 6,
        [0, 1, 0, -1, 0, 1],
        [8, 8, 8, 0, 8, 8],
    )
    result = run("vllm", requests, limits(blocks=6, size=4))
    # C finds 8 tokens and E 8, F none: 0 + 0 + 8 + 0 + 8 + 0
    assert result.prefix_tokens_hit == 16


def test_a_conversation_reuses_what_was_said():
    # Blocks of 4. Turn 1: 6 in, 3 out, 8 tokens in the cache. Turn 2 repeats 9 and adds 3: two blocks found, 4
    # computed; its 2 tokens out make 13, three whole blocks. Turn 3 repeats 14 and adds 2.
    requests = grouped([0, 5, 10], [6, 12, 16], [3, 2, 1], [0] * 3, [0, 9, 14])
    result = run("vllm", requests, limits(blocks=100, size=4))
    assert result.prefill_tokens_computed == 6 + 4 + 4
    assert result.finish_s.tolist() == [3, 7, 11]


def test_kv_of_one_adapter_is_of_no_use_to_another():
    requests = grouped([0, 5, 10], [8, 8, 8], [1] * 3, [0] * 3, [6] * 3, adapter=np.array([0, 1, 0]))
    result = run("vllm", requests, limits(blocks=100, size=4), max_loras=2)
    assert result.prefix_tokens_hit == 4


def test_shared_blocks_are_held_once():
    # Blocks of 4: 16 common tokens and 1 own, 5 requests: 4 + 5 blocks; the sixth waits although none has ended.
    requests = grouped([0] * 6, [17] * 6, [3] * 6, [0] * 6, [16] * 6)
    result = run("vllm", requests, limits(seqs=10, blocks=9, size=4))
    assert result.admitted_s.tolist() == [0] * 5 + [3]
    assert result.binding == "kv cache"


# -- LoRA slots


@pytest.mark.parametrize(("slots", "finish"), [(1, [2, 3, 1, 1]), (2, [2, 1, 1, 1])])
def test_a_request_without_a_slot_is_passed_over(slots, finish):
    # Adapters 0, 1, 0, none. One slot: B is passed over until A, whose adapter is in the batch, ends at 2.
    requests = make([0] * 4, [1] * 4, [2, 1, 1, 1], adapter=np.array([0, 1, 0, -1]))
    result = run("vllm", requests, limits(), max_loras=slots)
    assert result.finish_s.tolist() == finish
    if slots == 1:
        assert result.binding == "lora slots"
        assert result.blocked_s["lora slots"] == 2
    assert run("sglang", requests, limits(), max_loras=slots).first_token_s[1] >= 1


def test_those_passed_over_keep_their_place():
    # One slot: A (0) runs to 2; B (1), C (2), D (1) wait. At 2 B takes the slot and D joins it; C goes last.
    requests = make([0] * 4, [1] * 4, [2, 2, 1, 1], adapter=np.array([0, 1, 2, 1]))
    assert run("vllm", requests, limits(), max_loras=1).finish_s.tolist() == [2, 4, 5, 3]


def test_without_lora_a_request_for_an_adapter_is_rejected():
    requests = make([0] * 2, [1] * 2, [1] * 2, adapter=np.array([0, -1]))
    assert run("vllm", requests, limits()).status.tolist() == [REJECTED, FINISHED]


def test_a_preempted_sequence_gives_up_its_slot():
    # 8 blocks, one slot, B has the adapter. 2-3: B is preempted; C of another adapter comes later and waits behind
    # it; A ends at 4, then B takes the slot again (to 6), then C.
    requests = make([0, 0, 2.5], [3, 3, 1], [4, 4, 1], adapter=np.array([-1, 0, 1]))
    result = run("vllm", requests, limits(blocks=8), max_loras=1)
    assert result.num_preemptions.tolist() == [0, 1, 0]
    assert result.finish_s.tolist() == [4, 6, 7]


def test_adapters_are_drawn_by_zipf_and_leave_other_draws_alone():
    with_adapters = dataclasses.replace(TRAFFIC, num_lora_adapters=4, lora_popularity=1.0)
    plain, drawn = draw_requests(TRAFFIC, 20_000, 5), draw_requests(with_adapters, 20_000, 5)
    assert plain.adapter is None
    for name in ("arrival_s", "prompt_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(drawn, name))
    share = np.bincount(drawn.adapter, minlength=4) / 20_000
    expected = np.array([1, 1 / 2, 1 / 3, 1 / 4]) / (25 / 12)
    assert (abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)).all()
    alike = draw_adapters(dataclasses.replace(with_adapters, lora_popularity=0.0), 20_000, 5)
    assert abs(np.bincount(alike) / 20_000 - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / 20_000)


def test_fleets_services_and_pools_carry_the_adapter():
    n = 40
    requests = make(
        [0.1 * k for k in range(n)], [2] * n, [3] * n, adapter=np.arange(n) % 4, prefix_group=np.full(n, -1)
    )
    open_engine, shut = (dataclasses.replace(get_engine("vllm"), max_loras=k) for k in (1, 0))
    results = {}
    for engine in (open_engine, shut):
        pool = Pool(engine=engine, limits=limits(), step_time=UNIT, num_replicas=2)
        results[engine.max_loras] = [
            simulate_fleet(requests, engine, limits(), UNIT, num_replicas=2),
            simulate_fleet(requests, engine, limits(), UNIT, num_replicas=2, router="least_outstanding"),
            simulate_service(requests, engine, limits(), UNIT, num_replicas=2, failure=Failure(time_s=2.0)).result,
            simulate_disaggregated(requests, pool, pool, kv_bytes_per_token=1, link_bytes_per_s=1e9).service,
        ]
    for result in results[1]:
        assert (result.status == FINISHED).all()
        assert result.blocked_s["lora slots"] > 0
    for result in results[0]:
        assert (result.status == REJECTED).all()
    # both pools see it: the second alone would take all four adapters at once
    pool = Pool(engine=open_engine, limits=limits(), step_time=UNIT)
    second = simulate_disaggregated(requests, pool, pool, kv_bytes_per_token=1, link_bytes_per_s=1e9).decode
    assert second is not None
    assert second.blocked_s["lora slots"] > 0


# -- patience


def test_a_client_without_patience_leaves_the_queue():
    result = run("one-at-a-time", make([0, 0, 4.5], [1, 1, 1], [5, 1, 1]), limits(), patience_s=2.0)
    assert result.status.tolist() == [FINISHED, ABANDONED, FINISHED]
    assert result.finish_s[2] == 6


def test_a_client_without_patience_leaves_while_its_prompt_is_computed():
    # 4 tokens a step. A's 12 need 3 s, more than its 1.5: gone at 2 with 8 computed. 2-3: B, 1.5 s after it came.
    result = run("vllm", make([0, 1.5, 1.6], [12, 4, 4], [1, 2, 1]), limits(budget=4), patience_s=1.5)
    assert result.status.tolist() == [ABANDONED, FINISHED, ABANDONED]
    assert np.isnan(result.first_token_s[0])
    assert result.finish_s[1] == 4
    assert result.prefill_tokens_computed == 8 + 4 + 3  # C's chunk of 3-4 beside B's token: cut short too


def test_a_client_waits_so_long_for_its_whole_answer():
    # One slot. A wants 10 tokens and 3.5 s are over at 4; B runs 4-6, 3 s after it came; C would end at 8, 4 s after.
    result = run("vllm", make([0, 3, 4], [1, 1, 1], [10, 2, 2]), limits(seqs=1), timeout_s=3.5)
    assert result.status.tolist() == [ABANDONED, FINISHED, ABANDONED]
    assert result.first_token_s[:2].tolist() == [1, 5]
    assert result.finish_s[1] == 6
    assert np.isnan(result.finish_s[[0, 2]]).all()


def test_an_aborted_sequence_frees_its_blocks():
    # 8 blocks: A grows to 8 until it is cut off at 4; B's 5 fit from then on. Left alone A ends at 5.
    requests = make([0, 1.5], [4, 5], [5, 1])
    assert run("vllm", requests, limits(blocks=8)).finish_s.tolist() == [5, 6]
    cut = run("vllm", requests, limits(blocks=8), timeout_s=3.5)
    assert cut.status.tolist() == [ABANDONED, FINISHED]
    assert cut.finish_s[1] == 5


def test_a_static_batch_computes_for_clients_who_are_gone():
    # 0-4: A and B in one batch, B's 2 tokens in time, A's 4 too late; C starts when the batch ends, not before.
    requests = make([0, 0, 2.5], [1, 1, 1], [4, 2, 1])
    result = run("static", requests, limits(seqs=2), timeout_s=2.9, batch_timeout_s=0.0)
    assert result.status.tolist() == [ABANDONED, FINISHED, FINISHED]
    assert result.finish_s[1:].tolist() == [2, 5]


def test_users_of_a_closed_loop_ask_again_after_giving_up():
    # One user, 5 tokens each, 3.5 s: gives up at 4, thinks 1 s, asks at 5, gives up at 9.
    requests = make([0, 0], [1, 1], [5, 5], closed_loop_users=1, think_time_s=1.0)
    result = run("vllm", requests, limits(), timeout_s=3.5)
    assert result.status.tolist() == [ABANDONED, ABANDONED]
    assert result.arrival_s.tolist() == [0, 5]


def test_clients_who_left_a_replica_before_it_failed_do_not_ask_again():
    # One slot each. A runs on the first replica, C leaves its queue at 3; it fails at 4: A alone asks again.
    requests = make([0, 0.1, 0.2], [1, 1, 1], [6, 9, 1])
    engine = dataclasses.replace(get_engine("vllm"), patience_s=2.5)
    run = simulate_service(requests, engine, limits(seqs=1), UNIT, num_replicas=2, failure=Failure(time_s=4.0))
    assert run.num_retried == 1
    assert run.result.status[2] == ABANDONED
