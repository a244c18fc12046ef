"""Reading published start-up logs and predicting them; rows here are cited cases."""

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.memory_names import find_model_key, weight_dtype_of
from planner.accuracy.memory_rows import first_integer, gpu_of, parallelism_of, read_case
from planner.catalog.model_catalog import get_model
from planner.sizing.runtime import visible_memory_bytes
from planner.units import GIB

# llm-d-planner PR #205, commit d3121e0: vLLM 0.19.0, H100 79.19 GiB, utilization 0.95.
ROW = {
    "id": "a", "engine": "vllm", "version": "0.19.0", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100",
    "gpu_mem_gib": "79.19", "n_gpus": "1", "tp": "1", "pp": "1", "dtype": "bfloat16", "weight_quant": "none",
    "kv_cache_dtype": "auto", "block_size": "16", "max_model_len": "8192", "max_num_seqs": "1024",
    "gpu_memory_utilization": "0.95", "max_num_batched_tokens": "8192", "enforce_eager": "False",
    "weights_gib_per_gpu": "14.99", "available_kv_gib": "58.11", "kv_tokens": "476016", "max_concurrency": "58.11",
}  # fmt: skip


def test_row_is_predicted() -> None:
    predicted, skipped = predict(pd.DataFrame([ROW]))
    row = predicted.iloc[0]
    assert skipped == {}
    assert row.pred_weights_gib_per_gpu == pytest.approx(14.99, rel=0.001)
    assert row.pred_available_kv_gib == pytest.approx(58.11, rel=0.01)
    assert row.pred_kv_tokens == pytest.approx(476_016, rel=0.01)
    assert row.pred_outcome == "started"


def test_measured_columns_are_not_read() -> None:
    blind = {
        key: value for key, value in ROW.items() if key not in ("weights_gib_per_gpu", "available_kv_gib", "kv_tokens")
    }
    left, _ = predict(pd.DataFrame([ROW]))
    right, _ = predict(pd.DataFrame([blind | {"kv_tokens": "1", "weights_gib_per_gpu": "99"}]))
    pd.testing.assert_frame_equal(left, right)


def test_row_without_a_known_model_is_skipped_with_its_reason() -> None:
    predicted, skipped = predict(pd.DataFrame([ROW, ROW | {"id": "b", "model": "something private"}]))
    assert list(predicted.id) == ["a"]
    assert "something private" in skipped["b"]


def test_row_without_a_gpu_predicts_weights_only() -> None:
    predicted, _ = predict(pd.DataFrame([ROW | {"gpu": "", "gpu_mem_gib": ""}]))
    assert predicted.pred_weights_gib_per_gpu[0] > 0
    assert pd.isna(predicted.pred_kv_tokens[0])


@pytest.mark.parametrize(
    ("published", "key"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "meta-llama/Llama-3.1-70B-Instruct"),
        ("unsloth/Qwen3-8B-GGUF Q4_K_M", "Qwen/Qwen3-8B"),
        ("cyankiwi/gemma-4-31B-it-AWQ-4bit", "google/gemma-4-31B-it"),
        ("TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "deepseek-ai/DeepSeek-V4-Flash"),
        ("gemma3:4b", "google/gemma-3-4b-it"),
        ("DeepSeek-R1 AWQ/GPTQ 4-bit", "deepseek-ai/DeepSeek-R1"),
        ("something private", None),
    ],
)
def test_published_names_are_found(published: str, key: str | None) -> None:
    found = find_model_key(published)
    if key is None or found is None:
        assert found == key
    else:
        assert get_model(found).num_parameters == get_model(key).num_parameters


@pytest.mark.parametrize(
    ("column", "name", "expected"),
    [
        ("none", "x", "auto"),
        ("compressed-tensors", "x-quantized.w8a8", "int8"),
        ("compressed-tensors", "x-FP8-dynamic", "fp8"),
        ("gptq_marlin", "x-quantized.w4a16", "int4_g128"),
        ("awq int4", "x", "awq_int4"),
        ("", "x-NVFP4", "nvfp4"),
        ("gguf q8_0", "x", "gguf_q8_0"),
        ("", "x", "auto"),
    ],
)
def test_weight_scheme_is_read(column: str, name: str, expected: str) -> None:
    model = get_model("meta-llama/Llama-3.1-8B-Instruct")
    assert weight_dtype_of({"weight_quant": column, "model": name}, model) == expected


@pytest.mark.parametrize(
    ("name", "memory", "visible_gib"),
    [
        ("H100", "79.18", 79.18),
        ("80GB-class (79.22GiB; H100)", "", 79.22),
        ("RTX 3090", "24", 23.6),
        ("H200", "141 GB", 139.8),
    ],
)
def test_memory_that_the_engine_saw(name: str, memory: str, visible_gib: float) -> None:
    gpu, known = gpu_of(name, memory)
    assert known
    assert visible_memory_bytes(gpu) / GIB == pytest.approx(visible_gib, abs=0.15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8192 (default)", 8192),
        ("1M", 1_000_000),
        ("~525000", 525_000),
        ("(default V0: =max_model_len)", None),
        ("", None),
    ],
)
def test_numbers_in_cells(text: str, expected: int | None) -> None:
    assert first_integer(text) == expected


def test_parallelism_in_words() -> None:
    data = parallelism_of({"tp": "1", "dp_ep": "DP8+EP8"})
    assert (data.attention_data_parallel_size, data.expert_parallel) == (8, True)
    inside = parallelism_of({"tp": "8", "dp_ep": "DP attention 8 (log tags DP0..DP7/TP0..TP7)"})
    assert (inside.tensor_parallel_size, inside.attention_data_parallel_size) == (1, 8)


def test_settings_in_flags_are_read() -> None:
    case = read_case(ROW | {"block_size": "", "other_flags": "--block-size=128 --kv-cache-dtype fp8 MTP 3 tokens",
                            "kv_cache_dtype": "", "enforce_eager": "True"})  # fmt: skip
    assert case.engine.block_size == 128
    assert case.kv_cache_dtype == "fp8"
    assert case.engine.num_speculative_tokens == 3
    assert not case.engine.cuda_graphs
