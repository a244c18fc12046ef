"""Predicted beside actual, and reasons found by trying them on the model."""

import pytest

from planner.answer import size
from planner.catalog import get_gpu
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


# A published log of vLLM 0.20.2 (nvidia/Gemma-4-26B-A4B-NVFP4, WSL) names no GPU: a TPU of as much memory captures no
# CUDA graphs.
def test_a_log_with_cuda_graphs_is_of_a_gpu():
    log = """non-default args: {'model': 'nvidia/Gemma-4-26B-A4B-NVFP4', 'max_model_len': 256000, \
'quantization': 'modelopt', 'gpu_memory_utilization': 0.85, 'kv_cache_dtype': 'fp8_e4m3', \
'max_num_batched_tokens': 16384, 'max_num_seqs': 2}
Initializing a V1 LLM engine (v0.20.2) with config: model='nvidia/Gemma-4-26B-A4B-NVFP4', dtype=torch.bfloat16
Model loading took 17.89 GiB memory and 352.087376 seconds
Estimated CUDA graph memory: 0.26 GiB total
Available KV cache memory: 4.58 GiB
GPU KV cache size: 286,007 tokens"""
    reasons = overlay(read(log)).reasons
    assert reasons[0].field == "gpu"
    assert get_gpu(reasons[0].value).vendor == "NVIDIA"
    assert get_gpu(reasons[0].value).memory_gb == pytest.approx(32, rel=0.02)
