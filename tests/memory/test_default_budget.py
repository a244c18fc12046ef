"""vLLM's default of tokens per step on large GPUs: where it takes KV cache, the plan says what the flag would give."""

import dataclasses

import pytest

from planner.catalog.engines import get_engine
from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.memory.default_budget import SMALLER
from planner.memory.sizing import plan_memory

VLLM, GEMMA = get_engine("vllm"), "google/gemma-3-27b-it"


def memory_of(gib, model=GEMMA, engine=VLLM, length=131_072, gpu="H200 SXM"):
    board = dataclasses.replace(get_gpu(gpu), memory_gib=gib)
    return plan_memory(get_model(model), board, engine, Parallelism(), max_model_len=length)


@pytest.mark.parametrize("tokens", SMALLER)
def test_the_thresholds_are_those_of_the_defaults(tokens):
    fewer, sequences, gib = SMALLER[tokens]
    below, at = memory_of(gib - 0.01), memory_of(gib)
    assert (below.max_num_batched_tokens, at.max_num_batched_tokens) == (fewer, tokens)
    assert below.max_num_seqs == (sequences or at.max_num_seqs)


def told(memory):
    return [note for note in memory.notes if "--max-num-batched-tokens" in note]


@pytest.mark.parametrize(
    ("length", "below", "above", "tokens", "flags"),
    [
        (8192, 69.5, 71.0, 8192, {"max_num_batched_tokens": 2048, "max_num_seqs": 256}),
        (131_072, 159.0, 161.0, 16_384, {"max_num_batched_tokens": 8192}),
    ],
)
def test_more_memory_with_less_cache_says_why_and_what_helps(length, below, above, tokens, flags):
    small, large = memory_of(below, length=length), memory_of(above, length=length)
    assert large.kv_tokens < small.kv_tokens
    set_by_hand = memory_of(above, engine=dataclasses.replace(VLLM, **flags), length=length)
    assert set_by_hand.kv_tokens > small.kv_tokens
    (note,) = told(large)
    said = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in flags.items())
    assert f"{tokens:,} tokens a step" in note
    assert f"With {said} the KV cache holds {set_by_hand.kv_tokens:,} tokens instead of {large.kv_tokens:,};" in note


@pytest.mark.parametrize(
    "given",
    [
        {"gib": 69.5},  # 2,048 is the default there
        {"gib": 71.0, "engine": dataclasses.replace(VLLM, max_num_batched_tokens=8192)},  # the user's own choice
        {"gib": 141.0, "model": "meta-llama/Llama-3.1-8B-Instruct"},  # no windows: 1 % of the cache
        {"gib": 141.0, "engine": get_engine("sglang")},
        {"gib": 80.0, "gpu": "A100 80GB SXM"},  # vLLM counts it as small
        {"gib": 60.0, "engine": dataclasses.replace(VLLM, offline=True)},  # 8,192 by the LLM class, not by the GPU
    ],
)
def test_nothing_is_said_elsewhere(given):
    assert not told(memory_of(**given))
