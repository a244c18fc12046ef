"""Limits that an engine resolves from the device, by version."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.defaults import ollama_context_tokens
from planner.memory.sizing import plan_memory
from tests.memory.cases import LLAMA, plan
from tests.model.config.cases import calibrated


@pytest.mark.parametrize(("version", "expected"), [("0.19.1", 0.9), ("0.20.0", 0.92), ("", 0.92)])
def test_utilization_default_by_version(version: str, expected: float) -> None:
    assert plan(LLAMA, version=version).gpu_memory_utilization == expected


@pytest.mark.parametrize(
    ("gpu", "seqs", "tokens"), [("H100 SXM", 1024, 8192), ("A100 SXM 80GB", 256, 2048), ("L4", 256, 2048)]
)
def test_batch_defaults_by_device(gpu: str, seqs: int, tokens: int) -> None:
    made = plan("Qwen/Qwen3-0.6B", gpu=get_gpu(gpu))
    assert (made.max_num_seqs, made.max_num_batched_tokens) == (seqs, tokens)


# vLLM arg_utils.py get_batch_defaults: from 0.33 on GB10 keeps the limits of small devices whatever its memory.
@pytest.mark.parametrize(("version", "seqs", "tokens"), [("0.32.0", 1024, 8192), ("0.33.0", 256, 2048)])
def test_batch_defaults_of_gb10(version: str, seqs: int, tokens: int) -> None:
    made = plan("Qwen/Qwen3-0.6B", gpu=get_gpu("GB10"), version=version)
    assert (made.max_num_seqs, made.max_num_batched_tokens) == (seqs, tokens)


@pytest.mark.parametrize(("gpu", "expected"), [("T4", 4096), ("RTX 4090", 32_768), ("L40S", 32_768),
                                               ("A100 SXM 80GB", 131_072)])  # fmt: skip
def test_ollama_context_by_memory(gpu: str, expected: int) -> None:
    assert ollama_context_tokens(get_gpu(gpu), 131_072) == expected


# vLLM #51726 (v0.28): 16,384 tokens on devices of 160 GiB and more; #12369: at first by name, H100 and H200.
@pytest.mark.parametrize(
    ("gpu", "version", "expected"),
    [("B200", "0.27.1", 8192), ("B200", "0.28.0", 16_384), ("H200 SXM", "0.28.0", 8192), ("MI300X", "0.8.5", 2048),
     ("H100 SXM", "0.8.5", 8192), ("A100 SXM 80GB", "0.28.0", 2048), ("L40S", "0.19.0", 2048)],
)  # fmt: skip
def test_batch_by_device_and_version(gpu: str, version: str, expected: int) -> None:
    assert plan(LLAMA, get_gpu(gpu), version=version).max_num_batched_tokens == expected


# TensorRT-LLM's release notes: max_batch_size "is switched to 256 by default" in 0.11, "set to 2048" in 0.14.
@pytest.mark.parametrize(("version", "expected"), [("0.11.0", 256), ("0.13.0", 256), ("0.14.0", 2048), ("1.2", 2048)])
def test_sequences_of_tensorrt_llm(version: str, expected: int) -> None:
    assert plan(LLAMA, get_gpu("H200 SXM"), family="trtllm", version=version).max_num_seqs == expected


# vLLM EngineArgs.get_batch_defaults: the LLM class takes 16,384 tokens on large devices and 8,192 on others.
@pytest.mark.parametrize(("gpu", "expected"), [("H100 SXM", 16_384), ("A100 SXM 80GB", 8192), ("L40S", 8192)])
def test_batch_without_a_server(gpu: str, expected: int) -> None:
    assert plan(LLAMA, get_gpu(gpu), version="0.19.0", offline=True).max_num_batched_tokens == expected


# 4 layers × 2 × 4 heads × 128 × 1 or 2 bytes; TensorRT-LLM is told, llama.cpp has types of its own.
@pytest.mark.parametrize(
    ("engine", "weights", "asked", "expected"),
    [
        (EngineSettings(version="0.14.0"), "auto", "auto", 4096),
        (EngineSettings(version="0.13.0"), "auto", "auto", 8192),
        (EngineSettings(version="0.24.0"), "auto", "bf16", 8192),
        (EngineSettings(version="0.24.0"), "bf16", "auto", 8192),
        (EngineSettings(family="sglang", name="sglang", version="0.5"), "fp8", "auto", 4096),
        (EngineSettings(family="trtllm", name="trtllm", version=""), "auto", "auto", 8192),
    ],
)
def test_cache_type_of_the_checkpoint_is_followed(
    engine: EngineSettings, weights: str, asked: str, expected: int
) -> None:
    model = calibrated({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"})
    made = plan_memory(model, get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=4096, weight_dtype=weights,
                       kv_cache_dtype=asked)  # fmt: skip
    assert made.kv_bytes_per_token == expected
    assert any("calibrated" in note for note in made.notes) == (expected == 4096)
