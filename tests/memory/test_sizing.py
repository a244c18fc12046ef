"""Memory plans against published start-up logs, and the laws that every plan keeps."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.units import GIB
from tests.memory.cases import GEMMA27, LLAMA, LLAMA70, QWEN7, gpu_that_shows, plan

# vLLM 0.19.0 logs on H100 (79.19 GiB), utilization 0.95, 8,192 tokens: weights, activation, pool, tokens, concurrency
# (llm-d-planner PR #205, commit d3121e0).
LOGS = [
    (LLAMA, 1, 14.99, 1.89, 58.11, 476_016, 58.11),
    (LLAMA, 2, 7.51, 1.89, 63.76, 1_044_688, 127.53),
    (LLAMA, 4, 3.77, 1.89, 67.44, 2_209_792, 269.75),
    (QWEN7, 4, 3.55, 2.21, 67.34, 5_043_280, 615.63),
    ("Qwen/Qwen3-30B-A3B", 1, 56.88, 2.68, 15.41, 168_288, 20.54),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 1, 29.43, 1.93, 43.61, 1_505_552, 183.78),
    ("codellama/CodeLlama-7b-hf", 1, 12.56, 0.77, 61.66, 126_256, 15.41),
    (GEMMA27, 1, 51.45, 3.99, 19.53, 36_560, 4.46),
    ("google/gemma-3-12b-it", 1, 23.31, 3.94, 47.72, 130_304, 15.88),
]


@pytest.mark.parametrize(("model", "tp", "weights", "activation", "pool", "tokens", "concurrency"), LOGS)
def test_start_up_log_is_predicted(
    model: str, tp: int, weights: float, activation: float, pool: float, tokens: int, concurrency: float
) -> None:
    made = plan(model, tp=tp, gpu_memory_utilization=0.95, max_num_seqs=1024, max_num_batched_tokens=8192)
    assert made.weights_bytes / GIB == pytest.approx(weights, rel=0.01)
    assert made.activation_bytes / GIB == pytest.approx(activation, rel=0.12)
    assert made.kv_pool_bytes / GIB == pytest.approx(pool, rel=0.02)
    assert made.kv_tokens == pytest.approx(tokens, rel=0.02)
    assert made.max_concurrency == pytest.approx(concurrency, rel=0.02)
    assert made.starts


def test_uniform_pool_is_tokens_times_bytes_per_token() -> None:
    made = plan(LLAMA)
    assert made.kv_tokens * made.kv_bytes_per_token == pytest.approx(made.kv_pool_bytes, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"length": 0}, "max_model_len"), ({"kv": "fp5"}, "kv_cache_dtype"), ({"weights": "fp5"}, "weight_dtype")],
)
def test_bad_input_names_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan(LLAMA, **change)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_more_memory_never_holds_less() -> None:
    pools = [plan(LLAMA, gpu=gpu_that_shows(size)).num_kv_blocks for size in (20, 24, 40, 80, 140)]
    assert pools == sorted(pools)


# vLLM 0.11.0 on H100 (79.18 GiB), utilization 0.9 (llm-d-planner, empirical-vllm-memory-results.md).
@pytest.mark.parametrize(
    ("model", "tp", "weights", "pool"),
    [
        ("openai/gpt-oss-20b", 1, 13.47, 50.28),
        ("Qwen/Qwen3-32B", 1, 61.03, 4.45),
        ("Qwen/Qwen3-32B", 2, 30.59, 34.49),
        ("Qwen/Qwen3-0.6B", 1, 1.12, 64.45),
        (LLAMA, 1, 14.99, 51.38),
    ],
)
def test_logs_of_the_sorting_sampler(model: str, tp: int, weights: float, pool: float) -> None:
    made = plan(model, tp=tp, version="0.11.0", length=16_000, block_size=128, gpu_memory_utilization=0.9)
    assert made.weights_bytes / GIB == pytest.approx(weights, rel=0.01)
    assert made.kv_pool_bytes / GIB == pytest.approx(pool, rel=0.02)


# The same laboratory: Llama-3.3-70B-FP8 has no room on one GPU (-1.44 GiB) and 32.00 GiB on each of two.
def test_fp8_70b_needs_two_gpus() -> None:
    one, two = (plan(LLAMA70, tp=tp, version="0.11.0", weights="fp8", gpu_memory_utilization=0.9) for tp in (1, 2))
    assert one.outcome == "refused_no_cache_blocks"
    assert one.kv_pool_bytes / GIB == pytest.approx(-1.44, abs=0.3)
    assert two.weights_bytes / GIB == pytest.approx(33.88, rel=0.01)
    assert two.kv_pool_bytes / GIB == pytest.approx(32.00, rel=0.01)


# vllm #10517: Llama-3.1-8B on an RTX 3090 (23.58 GiB) at 0.9: 3.81 GiB, 1.56 sequences of 20,000 tokens.
def test_first_engine_on_a_small_card() -> None:
    made = plan(LLAMA, gpu_that_shows(23.58, "RTX 3090"), version="0.6.4 (V0)", length=20_000)
    assert made.weights_bytes / GIB == pytest.approx(14.9888, rel=1e-4)
    assert made.kv_pool_bytes / GIB == pytest.approx(3.81, rel=0.08)
    assert made.max_concurrency == pytest.approx(1.56, rel=0.08)


# 50 GiB ÷ 131,072 B are 409,600 tokens; four ranks share them, each with a quarter of every token.
@pytest.mark.parametrize("tp", [1, 4])
def test_cpu_offload_keeps_more_tokens(tp: int) -> None:
    made = plan(LLAMA, tp=tp, kv_offload_gib=50)
    assert made.offloaded_kv_tokens == 409_600
    assert any("409,600 more tokens" in note for note in made.notes)
    assert made.kv_tokens == plan(LLAMA, tp=tp).kv_tokens


# Every family: whole blocks of the plan fill the pool but for less than one of them.
@pytest.mark.parametrize(
    "model",
    ["openai/gpt-oss-20b", "google/gemma-3-27b-it", "Qwen/Qwen3.5-27B", "ai21labs/AI21-Jamba-Mini-1.6",
     "deepseek-ai/DeepSeek-V2-Lite", "ibm-granite/granite-4.0-h-small", "LiquidAI/LFM2-8B-A1B",
     "meta-llama/Llama-3.2-11B-Vision-Instruct", "google/gemma-3n-E4B-it", "state-spaces/mamba-2.8b-hf",
     "nvidia/NVIDIA-Nemotron-Nano-9B-v2"],
)  # fmt: skip
def test_whole_blocks_fill_the_pool(model: str) -> None:
    for version in ("0.8.5", "0.19.0", "0.28.0"):
        made = plan(model, get_gpu("H200 SXM"), version=version, max_num_seqs=64)
        blocks = made.logged_kv_blocks
        assert blocks > 0
        assert blocks * made.block_bytes <= made.kv_pool_bytes < (blocks + 1) * made.block_bytes
        formula = next(item for item in made.formulas if item.name == "kv_blocks")
        assert formula.value == blocks


def test_a_pool_that_is_a_sum_has_no_band() -> None:
    engine = EngineSettings(family="llamacpp", name="llama.cpp", version="", block_size=1, max_num_seqs=1)
    made = plan_memory(get_model("Qwen/Qwen3-8B"), get_gpu("RTX 4090"), engine, Parallelism(), max_model_len=8192)
    assert made.kv_pool_error == 0
