"""Every engine preset on a few requests with steps of 1 s, worked out on paper."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.simulation.machine import simulate
from planner.simulation.records import REJECTED
from tests.simulation.cases import UNIT, limits, make


def run(name, requests, capacity, **changes):
    return simulate(requests, dataclasses.replace(get_engine(name), **changes), capacity, UNIT)


@pytest.mark.parametrize("name", ["vllm", "vllm-0.19"])
def test_vllm_fills_the_token_budget_and_splits_a_prompt(name):
    # 0-1: A 6, B 2 of 5 | 1-2: A decodes, B's other 3, C 2 | 2-3: A, B decode
    result = run(name, make([0, 0, 0], [6, 5, 2], [3, 2, 1]), limits(budget=8))
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
    # 13 tokens of prompts fit 20: all in 0-1.
    result = run("vllm-no-chunked-prefill", make([0, 0, 0], [6, 5, 2], [3, 2, 1]), limits(budget=8, max_len=20))
    assert result.finish_s.tolist() == [3, 2, 1]


def test_a_long_prefill_threshold_lets_short_prompts_in():
    # At most 3 tokens of a prompt per step, 8 in all. 0-1: A 3 of 7, B 3 of 4, C 2 (ends) | 1-2: A 3, B 1
    # 2-3: A's last, B's second token; both end
    requests = make([0, 0, 0], [7, 4, 2], [1, 2, 1])
    result = run("vllm", requests, limits(budget=8), long_prefill_token_threshold=3)
    assert result.first_token_s.tolist() == [3, 2, 1]
    assert result.finish_s.tolist() == [3, 3, 1]
    # without: 0-1: A 7, B 1 of 4 | 1-2: B 3, C 2
    assert run("vllm", requests, limits(budget=8)).first_token_s.tolist() == [1, 2, 2]


def test_a_long_prefill_threshold_splits_prompts_even_without_chunked_prefill():
    # vllm/v1/core/sched/scheduler.py cuts the tokens at the threshold before it asks whether prompts may be chunked.
    # The budget is the context of 20. 0-1: A 3 of 7, B 3 of 4, C 2 | 1-2: A 3, B 1 | 2-3: A's last, B's second token
    requests = make([0, 0, 0], [7, 4, 2], [1, 2, 1])
    engine, capacity = {"long_prefill_token_threshold": 3}, limits(budget=8, max_len=20)
    assert run("vllm-no-chunked-prefill", requests, capacity, **engine).first_token_s.tolist() == [3, 2, 1]
    # vLLM's first core splits prompts only with chunked prefill.
    first_core = run("vllm-no-chunked-prefill", requests, capacity, version="0.6.6", **engine)
    assert first_core.first_token_s.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "version", "seconds"), [("vllm", "0.11.0", 3), ("vllm", "0.6.6", 4), ("sglang", "", 4)]
)
def test_vllm_computes_a_chunk_of_one_token_as_a_decode(name, version, seconds):
    # A step that decodes takes 1 s, one with a prompt 2 s; 9 tokens of a prompt come in steps of 8 and 1. vLLM's V1
    # sorts by query length (reorder_batch_to_split_decodes_and_prefills) and has a CUDA graph for queries of one token.
    table = dataclasses.replace(UNIT, mixed_s=2 * UNIT.mixed_s)
    engine = dataclasses.replace(get_engine(name), version=version, enable_prefix_caching=False)
    result = simulate(make([0], [9], [1]), engine, limits(budget=8), table)
    assert result.first_token_s.tolist() == [seconds]


def test_the_head_of_the_queue_blocks_those_behind_it():
    # A holds 6 of 10 blocks and grows by one a step; B (5) does not fit until A ends at 3; C (1) would, but waits.
    result = run("vllm", make([0, 0, 0], [6, 5, 1], [3, 1, 1]), limits(blocks=10))
    assert result.finish_s.tolist() == [3, 4, 4]


@pytest.mark.parametrize("name", ["vllm", "vllm-no-chunked-prefill", "tensorrt-llm-max-utilization", "paged"])
@pytest.mark.parametrize(("caching", "computed_again"), [(False, 5 + 3), (True, 2 + 3)])
def test_the_last_is_preempted_and_computed_anew_first(name, caching, computed_again):
    # 8 blocks of a token. 0-1: three prompts of 2 | 1-2: three blocks wanted, 2 free: C goes | 2-3: A, B at 4 + 4
    # 3-4: B goes, before C in the queue; A makes its fourth token and ends
    # 4-5: B computes 2 + 3 tokens and makes its fourth, C computes 2 + 1 and makes its second | 5-7: C's last two
    # With a prefix cache B finds the first 3 of the 4 blocks that it gave back: A took the last at 3-4. Those of
    # C were taken by A and B at 2-3.
    requests = make([0, 0, 0], [2, 2, 2], [4, 4, 4])
    result = run(name, requests, limits(blocks=8), enable_prefix_caching=caching)
    assert result.num_preemptions.tolist() == [0, 1, 1]
    assert result.finish_s.tolist() == [4, 5, 7]
    assert result.first_token_s.tolist() == [1, 1, 1]
    assert result.max_itl_s.tolist() == [1, 2, 4 - 1 + 1]
    assert result.prefill_tokens_computed == 6 + computed_again


@pytest.mark.parametrize(
    ("name", "changes", "first", "finish"),
    [
        # 0-1: A | 1-2: A decodes, the step was filled at 0 | 2-3: A, and B, who was there at 1 | 3-4: A, B, C end;
        # C came at 1.5 and is seen at 2
        ("vllm", {}, [1, 3, 4], [4, 4, 4]),
        ("tensorrt-llm", {}, [1, 3, 4], [4, 4, 4]),
        # 0-1: A | 1-2: A decodes | 2-3: B's prompt alone | 3-4: C's | 4-5: A, B | 5-6: A ends
        ("sglang", {}, [1, 3, 4], [6, 5, 4]),
        # 0-1: A | 1-2: A, B | 2-3: A, B, C; all but A end | 3-4: A ends
        ("vllm", {"async_scheduling": False}, [1, 2, 3], [4, 3, 3]),
    ],
)
def test_a_step_is_filled_while_the_one_before_it_runs(name, changes, first, finish):
    result = run(name, make([0, 0.5, 1.5], [2, 2, 1], [4, 2, 1]), limits(), **changes)
    assert result.first_token_s.tolist() == first
    assert result.finish_s.tolist() == finish


def test_who_comes_while_a_step_is_launched_is_in_the_next():
    # Launching A's prompt takes until 0.6: B, who came at 0.5, is in the step 1-2. Decode steps are launched at once.
    table = dataclasses.replace(UNIT, launch_s=0.6)
    result = simulate(make([0, 0.5, 2.5], [2, 2, 1], [5, 2, 1]), get_engine("vllm"), limits(), table)
    # 1-2: A, B's prompt, launched until 1.6 | 2-3: A, B ends; filled at 1.6 | 3-4: A, filled at 2 | 4-5: A, C
    assert result.first_token_s.tolist() == [1, 2, 5]
    assert result.finish_s.tolist() == [5, 3, 5]


def test_sglang_computes_prompts_before_it_decodes():
    # 0-1: A's prompt | 1-2: B's prompt alone | 2-3: C's | 3-4: A, B decode, B ends | 4-5: A ends
    result = run("sglang", make([0, 0.5, 1.5], [2, 2, 1], [3, 2, 1]), limits(), async_scheduling=False)
    assert result.first_token_s.tolist() == [1, 2, 3]
    assert result.finish_s.tolist() == [5, 4, 3]
    assert result.max_itl_s.tolist() == [3, 2, 0]


@pytest.mark.parametrize(("ratio", "first"), [(0.5, [1, 2, 10]), (0.9, [1, 9, 9])])
def test_sglang_sets_a_share_of_the_remaining_outputs_aside(ratio, first):
    # 22 tokens; A and B 4 in, 8 out, C 6 in, 1 out. 0-1: A. At 1 it has 7 to come.
    # Half of them: B's 12 < 18 - 3.5, it runs 1-2. C's 7 are not below 14 - 7: it waits until both end at 9.
    # Nine tenths: 12 > 18 - 6.3, B waits until A ends at 8 and C with it; then 7 < 18 - 8.
    requests = make([0, 0.5, 1.5], [4, 4, 6], [8, 8, 1])
    share = {"new_token_ratio": ratio, "min_new_token_ratio": ratio}
    result = run("sglang", requests, limits(blocks=22), async_scheduling=False, **share)
    assert result.first_token_s.tolist() == first


def test_sglang_retracts_the_fewest_output_tokens_then_the_longest_prompt():
    # Ratio 0, 13 blocks of a token. 0-1: A's 4 | 1-2: B's 2 | 2-3: both decode | 3-4: C's prompt, it ends
    # 4-6: both decode, 1 block left | 6-7: two wanted; both have 4 tokens out, so A goes, whose prompt is longer
    # 7-8: B ends | 8-9: A finds its prompt in the cache, computes its 4 tokens out and makes the fifth | 9-10: ends
    requests = make([0, 0.5, 2.5], [4, 2, 1], [6, 6, 1])
    nothing = {"new_token_ratio": 0.0, "min_new_token_ratio": 0.0}
    result = run("sglang", requests, limits(blocks=13), async_scheduling=False, **nothing)
    assert result.num_preemptions.tolist() == [1, 0, 0]
    assert result.finish_s.tolist() == [10, 8, 4]
    assert result.prefill_tokens_computed == 4 + 2 + 1 + 4
    assert result.prefix_tokens_hit == 4


def test_tensorrt_llm_reserves_the_output_limit():
    # 12 blocks; each may need 2 + 4: two at a time although each makes a single token.
    requests = make([0, 0, 0], [2, 2, 2], [1, 1, 1], limit=[4, 4, 4])
    assert run("tensorrt-llm", requests, limits(blocks=12)).finish_s.tolist() == [1, 1, 2]
    assert run("tensorrt-llm-max-utilization", requests, limits(blocks=12)).finish_s.tolist() == [1, 1, 1]


def test_tgi_pauses_decoding_once_enough_wait():
    # 0-1: A, B | 1-2: they decode | 2-3: C alone, 1 >= 0.3 x 2 | 3-6: A, B decode
    result = run("tgi", make([0, 0, 1.5], [1, 1, 1], [5, 5, 1]), limits())
    assert result.finish_s.tolist() == [6, 6, 3]
    assert result.max_itl_s.tolist() == [2, 2, 0]


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
    requests = make([0, 0.05, 5], [1, 1, 1], [1, 2, 1])
    assert run("fastertransformer", requests, limits(seqs=3)).finish_s.tolist() == [6, 7, 6]
    # the oldest has waited 0.1 s: two start; the last request waits for nobody
    timed = run("fastertransformer-timeout", requests, limits(seqs=3))
    assert timed.finish_s.tolist() == pytest.approx([1.1, 2.1, 6])
    assert run("static", requests, limits(seqs=3)).finish_s.tolist() == [2, 3, 6]  # after 1 s


def test_one_at_a_time_is_one_after_the_other():
    result = run("one-at-a-time", make([0, 0, 0], [5, 1, 1], [2, 3, 1]), limits())
    assert result.finish_s.tolist() == [2, 5, 6]


def test_ollama_turns_away_beyond_512_waiting():
    # One slot: the first runs, 512 wait, two are told that the server is busy.
    requests = make([0] * 515, [1] * 515, [1] * 515)
    result = run("ollama", requests, limits())
    assert (result.status == REJECTED).tolist() == [False] * 513 + [True] * 2
    assert result.finish_s[:513].tolist() == list(range(1, 514))
    # Once the model is loaded requests pass that queue by and wait without a limit.
    loaded = run("ollama-loaded", requests, limits())
    assert loaded.finish_s.tolist() == list(range(1, 516))


def test_ollama_has_one_slot_and_a_queue_limit():
    # 0-1, 1-2: A | B and C wait, D is rejected | E comes when B runs and one waits
    requests = make([0, 0, 0, 0, 2.5], [1] * 5, [2] * 5)
    result = run("ollama", requests, limits(), max_queued_requests=2)
    assert (result.status == REJECTED).tolist() == [False, False, False, True, False]
    assert result.finish_s[[0, 1, 2, 4]].tolist() == [2, 4, 6, 8]


def test_llama_cpp_shares_slots_and_keeps_the_rest_waiting():
    result = run("llama.cpp", make([0, 0, 0], [1, 1, 1], [2, 2, 2]), limits(seqs=2))
    assert result.finish_s.tolist() == [2, 2, 4]


def test_speculation_makes_the_expected_tokens_per_step():
    # Two drafts, always accepted: 3 tokens a step. 1 from the prompt, 6 more in two steps.
    result = run("vllm", make([0], [1], [7]), limits(blocks=100), num_speculative_tokens=2, speculative_acceptance=1.0)
    assert result.finish_s.tolist() == [3]


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
