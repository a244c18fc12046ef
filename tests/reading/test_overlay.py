"""Predicted beside actual, and reasons found by trying them on the model."""

import pytest

from planner.answer import size
from planner.reading import read
from planner.reading.overlay import overlay, overlay_text
from planner.scenario import Scenario
from planner.units import GIB


def log_of(scenario: Scenario, *, said: str) -> str:
    """Lines that vLLM would print if it behaved as our sizing says, beside a command that leaves a setting out."""
    memory = size(scenario, explain=False).memory
    return "\n".join(
        (
            said,
            "GPU 0: NVIDIA H100 80GB HBM3",
            f"Model loading took {memory.weights_bytes / GIB:.4f} GiB and 3.1 seconds",
            f"Available KV cache memory: {memory.kv_pool_bytes / GIB:.2f} GiB",
            f"GPU KV cache size: {memory.kv_tokens:,} tokens",
        )
    )


def test_what_our_sizing_says_compares_without_error():
    scenario = Scenario(model="Qwen/Qwen3-8B", max_model_len=8192)
    found = overlay(read(log_of(scenario, said="vllm serve Qwen/Qwen3-8B --max-model-len 8192")))
    assert {row.name for row in found.rows} == {"weights_gib_per_gpu", "available_kv_gib", "kv_tokens"}
    assert found.error < 0.001
    assert found.reasons == ()


@pytest.mark.parametrize(("field", "value"), [("kv_cache_dtype", "fp8"), ("gpu_memory_utilization", 0.8)])
def test_a_setting_that_the_log_leaves_out_is_found(field, value):
    scenario = Scenario(model="Qwen/Qwen3-8B", max_model_len=8192, **{field: value})
    found = overlay(read(log_of(scenario, said="vllm serve Qwen/Qwen3-8B --max-model-len 8192")))
    assert found.error > 0.05
    best = found.reasons[0]
    assert best.field == field
    assert best.value == pytest.approx(value, abs=0.1) if isinstance(value, float) else best.value == value
    assert best.error < 0.02
    assert best.label in overlay_text(found)


def test_a_stated_setting_is_no_reason():
    scenario = Scenario(model="Qwen/Qwen3-8B", max_model_len=8192, gpu_memory_utilization=0.8)
    said = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --gpu-memory-utilization 0.8"
    assert overlay(read(log_of(scenario, said=said))).error < 0.001


def test_a_board_that_the_log_does_not_name_is_found():
    said = "vllm serve Qwen/Qwen3-8B --max-model-len 8192"
    text = log_of(Scenario(model="Qwen/Qwen3-8B", max_model_len=8192, gpu="L40S"), said=said)
    found = overlay(read(text.replace("GPU 0: NVIDIA H100 80GB HBM3\n", "")))
    assert ("gpu", "L40S") in {(reason.field, reason.value) for reason in found.reasons}


def test_an_engine_that_cannot_start_says_so():
    text = """vllm serve meta-llama/Llama-3.3-70B-Instruct
============ Serving Benchmark Result ============
Successful requests: 10
Maximum request concurrency: 2
Total input tokens: 10240
Total generated tokens: 1280
Mean TTFT (ms): 100.0
"""
    found = overlay(read(text))
    assert "out of memory" in found.refusal.lower()
    assert found.rows == ()
    assert found.refusal in overlay_text(found)


def test_a_board_on_which_it_would_not_start_explains_nothing():
    text = (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 2048\n"
        "Loading model weights took 131.5 GB\nGPU KV cache size: 60,000 tokens"
    )
    for reason in overlay(read(text)).reasons:
        assert size(reason.scenario, explain=False).memory.kv_tokens > 0
