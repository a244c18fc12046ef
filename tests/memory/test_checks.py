"""Divisions that an engine refuses."""

import pytest

from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.memory.checks import division_error
from tests.memory.cases import LLAMA, QWEN7, plan


@pytest.mark.parametrize(
    ("model", "tp", "words"),
    [
        (QWEN7, 8, "Total number of attention heads (28) must be divisible by tensor parallel size (8)."),
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "not divisible by weight quantization block_n = 128"),
        ("Qwen/Qwen3-14B", 3, "Total number of attention heads (40)"),
    ],
)
def test_divisions_are_refused_in_the_engines_words(model: str, tp: int, words: str) -> None:
    made = plan(model, tp=tp)
    assert not made.starts
    assert words in made.refusal


def error(model: str, family: str = "vllm", weights: str = "auto", **sizes: object) -> str:
    return division_error(get_model(model), Parallelism(**sizes), weights, family)  # type: ignore[arg-type]


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32])
def test_powers_of_two_divide_32_heads(tp: int) -> None:
    # Llama 3.1 8B: 32 heads, 8 KV heads; beyond 8 GPUs a KV head is held twice.
    assert error(LLAMA, tensor_parallel_size=tp) == ""


def test_llamacpp_splits_by_layers_and_refuses_nothing() -> None:
    assert "28" in error(QWEN7, tensor_parallel_size=8)
    assert error(QWEN7, "llamacpp", tensor_parallel_size=8) == ""


def test_more_stages_than_layers() -> None:
    assert error(LLAMA, pipeline_parallel_size=32) == ""
    assert "number of layers (32)" in error(LLAMA, pipeline_parallel_size=33)


# Qwen2.5-7B: 28 heads, 4 KV heads; 7 divides the heads, but neither 4 nor 7 divides the other.
def test_kv_heads_and_ranks_divide_each_other() -> None:
    assert "KV heads (4)" in error(QWEN7, tensor_parallel_size=7)
    assert error(QWEN7, tensor_parallel_size=14) != ""
    assert error(QWEN7, tensor_parallel_size=28) == ""


# vLLM: tp_size ÷ KV heads ranks hold the same head, and only these can share its tokens.
def test_context_parallelism_shares_replicated_heads() -> None:
    assert error(QWEN7, tensor_parallel_size=28, decode_context_parallel_size=7) == ""
    assert "decode context parallel size" in error(LLAMA, tensor_parallel_size=8, decode_context_parallel_size=2)
    assert error("deepseek-ai/DeepSeek-V3", tensor_parallel_size=8, decode_context_parallel_size=8) == ""  # one latent
    assert "divisible by dcp_size=3" in error(
        "deepseek-ai/DeepSeek-V3", tensor_parallel_size=8, decode_context_parallel_size=3
    )


# Qwen3-235B: experts 1,536 wide; eighths of 192 are no whole blocks of 128, fourths of 384 are.
def test_block_quantised_experts_divide_by_whole_blocks() -> None:
    name = "Qwen/Qwen3-235B-A22B"
    assert error(name, weights="fp8_block", tensor_parallel_size=4) == ""
    assert "block_n = 128" in error(name, weights="fp8_block", tensor_parallel_size=8)
    assert error(name, weights="bf16", tensor_parallel_size=8) == ""
    assert error(name, weights="fp8_block", tensor_parallel_size=8, expert_parallel=True) == ""
