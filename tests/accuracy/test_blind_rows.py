"""A measured figure never enters its own prediction: rows that exercise every reader, with what was measured spoilt."""

from collections.abc import Iterator, Mapping

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.memory_gpus import DEVICES
from planner.accuracy.memory_rows import SETTINGS, read_case
from planner.accuracy.names import MODELS, SCHEMES
from planner.accuracy.scoring import SERVING_QUANTITIES
from planner.accuracy.serving_rows import SETTINGS as SERVING
from planner.tables import read_table

#: columns of a memory file that say what was measured, or were worked out from it
MEASURED = (
    "weights_gib_per_gpu", "activation_peak_gib", "non_torch_gib", "cuda_graph_gib", "available_kv_gib", "kv_tokens",
    "gpu_blocks", "max_concurrency", "kv_needed_gib_for_max_len", "est_max_model_len", "outcome", "outcome_detail",
    "evidence", "model_basis", "arch_class", "checks", "derived_kv_bytes_per_token_per_gpu", "title",
)  # fmt: skip
#: remarks of people who saw the figures, which must not be read as settings
REMARKS = (
    " Treat utilization as 0.95. Available KV shrank 10.55->5.59 GiB when max_model_len grew. 80 GB-class implied by "
    "67.7 GiB of weights. 35.1 KiB/token, so the cache is fp8. GPU KV cache size: 1,234 tokens, 5.00x, 3.21 GiB free."
)
ROWS = (
    {"engine": "vllm", "version": "0.19.0", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100",
     "gpu_mem_gib": "79.19", "tp": "1", "weight_quant": "none", "block_size": "16", "max_model_len": "8192",
     "max_num_seqs": "1024", "gpu_memory_utilization": "0.95", "max_num_batched_tokens": "8192"},
    {"engine": "vllm", "version": "0.10.x", "model": "Qwen/Qwen3-30B-A3B FP8", "kv_cache_dtype": "fp8",
     "max_model_len": "100000"},  # no GPU: what its budget held must not choose one
    {"engine": "vllm", "model": "Qwen/Qwen3.8-27B", "gpu": "RTX 5090", "gpu_mem_gib": "32", "date": "2026-08-18",
     "other_flags": "MTP num_speculative_tokens=2"},  # weights that do not fit: no scheme may be guessed
    {"engine": "vllm", "version": "0.24.0", "model": "Qwen/Qwen3.6-27B", "gpu": "H100", "max_model_len": "32768"},
    {"engine": "vllm", "version": "0.20.0", "model": "google/gemma-4-31B-it", "gpu": "A100", "weight_quant": "awq"},
    {"engine": "vllm", "version": "0.6.4 (V0)", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "RTX 3090",
     "gpu_mem_gib": "23.58", "max_model_len": "29000"},
    {"engine": "sglang", "version": "0.5.9", "model": "Qwen/Qwen3.5-9B", "gpu": "RTX 4090", "tp": "2",
     "other_flags": "MTP 3, --mamba-ssm-dtype bfloat16 --mem-fraction-static 0.8"},
    {"engine": "sglang", "model": "deepseek-ai/DeepSeek-V3", "gpu": "H200", "tp": "8", "dp_ep": "DP attention 8"},
    {"engine": "ollama", "model": "gemma3:4b", "gpu": "RTX 5080 16GB"},
    {"engine": "llama.cpp", "model": "unsloth/Qwen3-8B-GGUF Q4_K_M", "gpu": "RTX 4060", "n_gpus": "2",
     "max_model_len": "16384 (2 slots x 8192)"},
    {"engine": "tensorrt-llm", "version": "1.1.0rc3", "model": "openai/gpt-oss-120b", "gpu": "GB10 (DGX Spark)"},
    {"engine": "vllm", "version": "0.25.0", "model": "unsloth/gemma-4-26b-a4b-it", "gpu": "H100 MIG 3g.40gb",
     "other_flags": "--enable-lora --max-loras 4 --limit-mm-per-prompt {\"image\":0}"},
    {"engine": "vllm", "version": "0.19.0", "model": "RedHatAI/Qwen3-30B-A3B-NVFP4", "gpu": "", "gpu_mem_gib": "80",
     "weight_quant": "compressed-tensors", "other_flags": "--speculative-model Qwen/Qwen3-0.6B"},
    {"engine": "vllm", "model": "MiniMaxAI/MiniMax-M2.7", "gpu": "A100 SXM 80GB", "n_gpus": "4", "date": "2026-06"},
)  # fmt: skip


class Watched(Mapping[str, str]):
    """A row that remembers which of its columns were read."""

    def __init__(self, row: Mapping[str, str]) -> None:
        self.row, self.read = row, set[str]()

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return self.row[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.row)

    def __len__(self) -> int:
        return len(self.row)


def spoilt(kind: str) -> pd.DataFrame:
    """The rows with another value in every measured column."""
    worth = {"figures": "0.001", "huge": "99999", "words": "refused_no_cache_blocks CUDA out of memory", "blank": ""}
    rows = [dict(row) | dict.fromkeys(MEASURED, worth[kind]) for row in ROWS]
    if kind == "words":
        rows = [row | {"notes": row.get("notes", "") + REMARKS} for row in rows]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("kind", ["figures", "huge", "words"])
def test_nothing_measured_moves_a_prediction(kind: str) -> None:
    without, skipped = predict(spoilt("blank"))
    others, also_skipped = predict(spoilt(kind))
    assert skipped == also_skipped
    assert not skipped  # a row that is not predicted would prove nothing
    pd.testing.assert_frame_equal(without, others)


def test_no_measured_column_is_even_looked_at() -> None:
    for row in ROWS:
        watched = Watched({**dict.fromkeys(MEASURED, "1"), **row})
        read_case(watched)
        assert "model" in watched.read
        assert not watched.read & set(MEASURED)


def test_no_pattern_of_serving_rows_reads_a_measured_column() -> None:
    measured = {*SERVING_QUANTITIES, "ttft_ms_p99", "tpot_ms_p99", "itl_ms_p99"}
    for line in read_table(SERVING):
        conditions = (each.partition(":")[0] for each in line["when"].split(" & "))
        assert not {*line["columns"].split("+"), *conditions} & measured


def test_no_table_names_a_measured_column() -> None:
    for table in (SETTINGS, DEVICES, MODELS, SCHEMES):
        for line in read_table(table):
            read = {*line["columns"].split("+"), line["when"].partition(":")[0]}
            assert not read & set(MEASURED)
