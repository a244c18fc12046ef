"""Three to nine requests per engine with steps of 1 s, worked out on paper."""

from __future__ import annotations

import dataclasses

import numpy as np

from planner.catalog.engine_catalog import get_engine
from planner.simulation import simulate
from planner.simulation.records import REJECTED
from tests.simulation.cases import UNIT, limits, make


def run(name, requests, capacity, **changes):
    return simulate(requests, dataclasses.replace(get_engine(name), **changes), capacity, UNIT)


def test_vllm_fills_the_token_budget_and_splits_a_prompt():
    # 0-1: A 6, B 2 of 5 | 1-2: A decodes, B's other 3, C 2 | 2-3: A, B decode
    result = run("vllm", make([0, 0, 0], [6, 5, 2], [3, 2, 1]), limits(budget=8))
    assert result.first_token_s.tolist() == [1, 2, 2]
    assert result.finish_s.tolist() == [3, 3, 2]
    assert result.admitted_s.tolist() == [0, 0, 1]
    assert result.num_steps == 3


def test_without_chunks_a_prompt_waits_until_it_fits_whole():
    # 0-1: A 6 (B's 5 exceed what is left) | 1-2: A decodes, B 5, C 2 | 2-3: A, B decode
    result = run("vllm-no-chunked-prefill", make([0, 0, 0], [6, 5, 2], [3, 2, 1]), limits(budget=8), family="generic")
    assert result.admitted_s.tolist() == [0, 1, 1]
    assert result.finish_s.tolist() == [3, 3, 2]


def test_vllm_without_chunks_raises_its_budget_to_the_context():
    result = run("vllm-no-chunked-prefill", make([0, 0], [6, 5], [1, 1]), limits(budget=8, max_len=20))
    assert result.finish_s.tolist() == [1, 1]


def test_the_head_of_the_queue_blocks_those_behind_it():
    # A holds 6 of 10 blocks and grows by one a step; B (5) does not fit until A ends at 3; C (1) would, but waits.
    result = run("vllm", make([0, 0, 0], [6, 5, 1], [3, 1, 1]), limits(blocks=10))
    assert result.finish_s.tolist() == [3, 4, 4]


def test_vllm_preempts_the_last_and_computes_it_anew():
    # 0-1: both prompts, 6 of 8 blocks | 1-2: both grow, 8 of 8 | 2-3: B goes, A grows | 3-4: A ends
    # 4-5: B computes 3 + 2 tokens again and makes its third | 5-6: its fourth
    result = run("vllm", make([0, 0], [3, 3], [4, 4]), limits(blocks=8))
    assert result.num_preemptions.tolist() == [0, 1]
    assert result.first_token_s.tolist() == [1, 1]
    assert result.finish_s.tolist() == [4, 6]
    assert result.max_itl_s.tolist() == [1, 3]
    assert result.prefill_tokens_computed == 6 + 5


def test_prefix_cache_hits_whole_blocks_of_earlier_requests():
    # Blocks of 4: 6 shared tokens give one whole block to every request after the first has been computed.
    requests = make(
        [0, 0, 5],
        [8, 8, 8],
        [1, 1, 1],
        prefix_group=np.zeros(3, dtype=np.int64),
        prefix_tokens=np.full(3, 6, dtype=np.int64),
    )
    result = run("vllm", requests, limits(blocks=100, size=4))
    assert result.prefix_tokens_hit == 4
    assert result.prefill_tokens_computed == 8 + 8 + 4


def test_sglang_computes_prompts_before_it_decodes():
    # 0-1: A's prompt | 1-2: B's prompt alone | 2-3: both decode, B ends | 3-4: A ends
    result = run("sglang", make([0, 0.5], [2, 2], [3, 2]), limits())
    assert result.first_token_s.tolist() == [1, 2]
    assert result.finish_s.tolist() == [4, 3]
    assert result.max_itl_s.tolist() == [2, 1]


def test_sglang_retracts_the_fewest_output_tokens_then_the_longest_prompt():
    # Ratio 0, 17 blocks of 1 token. 0-1: A's 5 | 1-2: B's 3, 9 left | four decode steps take 8, both have 5 tokens.
    # 6-7: one block for two sequences; equal outputs, so A goes, whose prompt is longer; B ends at 9.
    # 9-10: A computes 5 + 5 tokens anew and makes its sixth; it ends at 12.
    result = run(
        "sglang", make([0, 0.5], [5, 3], [8, 8]), limits(blocks=17), new_token_ratio=0.0, min_new_token_ratio=0.0
    )
    assert result.num_preemptions.tolist() == [1, 0]
    assert result.finish_s.tolist() == [12, 9]


def test_tensorrt_llm_reserves_the_output_limit():
    # 10 blocks; each may need 2 + 4: one at a time although each makes a single token.
    requests = make([0, 0], [2, 2], [1, 1], limit=[4, 4])
    assert run("tensorrt-llm", requests, limits(blocks=10)).finish_s.tolist() == [1, 2]
    assert run("tensorrt-llm-max-utilization", requests, limits(blocks=10)).finish_s.tolist() == [1, 1]


def test_tgi_lets_decoding_go_on_for_twenty_steps():
    # Eight run from 0-1; one more waits: 1 < 0.3 x 8, so 20 decode steps pass before its prompt at 21-22.
    result = run("tgi", make([0] * 8 + [0.5], [1] * 9, [30] * 8 + [1]), limits(seqs=16))
    assert result.first_token_s[-1] == 22
    assert result.max_itl_s[0] == 2  # the prompt came between two decode steps


def test_tgi_turns_away_beyond_its_concurrency():
    result = run("tgi", make([0, 0, 0], [1, 1, 1], [2, 2, 2]), limits(), max_concurrent_requests=2)
    assert (result.status == REJECTED).tolist() == [False, False, True]


def test_orca_reserves_the_longest_context():
    # 16 blocks, 8 per sequence whatever it needs: the third request waits for a place. Paged would run all three.
    requests = make([0, 0, 0], [2, 2, 2], [2, 2, 2])
    capacity = limits(blocks=16, max_len=8)
    assert run("orca", requests, capacity).finish_s.tolist() == [2, 2, 4]
    assert run("reserve-max", requests, capacity).finish_s.tolist() == [2, 2, 4]
    assert run("paged", requests, capacity).finish_s.tolist() == [2, 2, 2]


def test_a_static_batch_ends_with_its_longest_answer():
    # 0-1: prompts of A and B, B ends | A ends at 3 | 3-4: C's prompt | C ends at 5
    result = run("fastertransformer", make([0, 0, 0], [2, 1, 1], [3, 1, 2]), limits(seqs=2))
    assert result.finish_s.tolist() == [3, 1, 5]
    assert result.prefill_tokens_computed == 2 * 2 + 1  # padded to the longest prompt


def test_a_static_batch_waits_for_company_or_its_timeout():
    requests = make([0, 5], [1, 1], [1, 1])
    assert run("fastertransformer", requests, limits(seqs=2)).finish_s.tolist() == [6, 6]
    assert run("fastertransformer-timeout", requests, limits(seqs=2), batch_timeout_s=2.0).finish_s.tolist() == [3, 6]
    assert run("static", requests, limits(seqs=2), batch_timeout_s=2.0).finish_s.tolist() == [3, 6]


def test_one_at_a_time_is_one_after_the_other():
    result = run("one-at-a-time", make([0, 0, 0], [5, 1, 1], [2, 3, 1]), limits())
    assert result.finish_s.tolist() == [2, 5, 6]


def test_ollama_has_one_slot_and_a_queue_limit():
    result = run("ollama", make([0, 0, 0], [1, 1, 1], [2, 2, 2]), limits(), max_queued_requests=1)
    assert (result.status == REJECTED).tolist() == [False, False, True]
    assert result.finish_s[:2].tolist() == [2, 4]


def test_llama_cpp_shares_slots_and_keeps_the_rest_waiting():
    result = run("llama.cpp", make([0, 0, 0], [1, 1, 1], [2, 2, 2]), limits(seqs=2))
    assert result.finish_s.tolist() == [2, 2, 4]


def test_speculation_makes_the_expected_tokens_per_step():
    # Two drafts, always accepted: 3 tokens a step. 1 from the prompt, 6 more in two steps.
    result = run("vllm", make([0], [1], [7]), limits(blocks=100), num_speculative_tokens=2, speculative_acceptance=1.0)
    assert result.finish_s.tolist() == [3]


def test_a_client_without_patience_leaves():
    result = run("one-at-a-time", make([0, 0, 4.5], [1, 1, 1], [5, 1, 1]), limits(), patience_s=2.0)
    assert result.status.tolist() == [0, 3, 0]
    assert result.finish_s[2] == 6


def test_a_closed_loop_asks_again_after_thinking():
    # One user: 0-2 served, thinks 3, asks at 5, served until 7.
    requests = make([0, 0], [1, 1], [2, 2], closed_loop_users=1, think_time_s=3.0)
    result = run("vllm", requests, limits())
    assert result.arrival_s.tolist() == [0, 5]
    assert result.finish_s.tolist() == [2, 7]


def test_priority_classes_pass_the_queue_and_are_evicted_last():
    # One slot: A runs; C (class 0) passes B (class 1).
    requests = make([0, 0.5, 0.6], [1, 1, 1], [2, 1, 1], priority=np.array([1, 1, 0]))
    assert run("vllm", requests, limits(seqs=1)).finish_s.tolist() == [2, 4, 3]
    # 8 blocks: A (class 1) and B (class 0) fill them at 2; A goes although it came first.
    requests = make([0, 0], [3, 3], [4, 4], priority=np.array([1, 0]))
    result = run("vllm", requests, limits(blocks=8))
    assert result.num_preemptions.tolist() == [1, 0]
    assert result.finish_s.tolist() == [6, 4]
