"""Reading published start-up logs and predicting them; rows here are cited cases."""

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.memory_rows import read_case
from planner.errors import InvalidInput
from planner.scenario import Scenario
from planner.units import GIB
from tests.accuracy.published_rows import START_UP as ROW


def test_parallelism_in_words() -> None:
    data = case(model="Qwen/Qwen3-30B-A3B", tp="1", dp_ep="DP8+EP8")
    assert (data.attention_data_parallel_size, data.expert_parallel) == (8, True)
    words = "DP attention 8 (log tags DP0..DP7/TP0..TP7)"
    inside = case(model="deepseek-ai/DeepSeek-V3", engine="sglang", tp="8", dp_ep=words, block_size="")
    assert (inside.tensor_parallel_size, inside.attention_data_parallel_size) == (1, 8)
    copies = case(dp_ep="DP2")  # of a model without experts: replicas
    assert (copies.attention_data_parallel_size, copies.num_replicas) == (1, 2)
    beside = case(tp="", n_gpus="4", model="Qwen/Qwen3-32B")
    assert beside.tensor_parallel_size == 4


def test_settings_in_flags_are_read() -> None:
    read = case(block_size="", other_flags="--block-size=128 --kv-cache-dtype fp8 MTP 3 tokens", kv_cache_dtype="",
                enforce_eager="True")  # fmt: skip
    assert read.block_size == 128
    assert read.kv_cache_dtype == "fp8"
    assert read.num_speculative_tokens == 3
    assert read.enforce_eager
    assert not read.plain_awq
    assert case(other_flags="--quantization awq").plain_awq
    assert not case(other_flags="--quantization awq_marlin").plain_awq


def case(**columns: str) -> Scenario:
    return read_case(ROW | columns).scenario


# The message that vLLM prints before it loads weights; what others hold is a condition of the start.
def test_free_memory_before_the_start_is_read() -> None:
    text = (
        "Free memory on device cuda:1 (60.87/79.19 GiB) on startup is less than desired GPU memory utilization (0.95)"
    )
    assert case(notes=text).occupied_gib == pytest.approx(79.19 - 60.87)
    assert case(outcome_detail=text).occupied_gib == 0
    predicted, _ = predict(pd.DataFrame([ROW | {"notes": text}]))
    assert predicted.pred_outcome[0] == "refused_free_memory"


def test_lora_offload_and_draft_flags_are_read() -> None:
    flags = "--enable-lora --max-loras 4 --max-lora-rank=64 --kv-offloading-size 50 --speculative-model Qwen/Qwen3-0.6B"
    read = case(other_flags=flags, model="Qwen/Qwen3-32B", max_num_seqs="", max_num_batched_tokens="")
    assert (read.engine_settings.max_loras, read.max_lora_rank, read.kv_offload_gib) == (4, 64, 50)
    assert read.draft_shape is not None
    assert read.draft_shape.name == "Qwen/Qwen3-0.6B"


# An EAGLE head is one layer, however much its name says of the model that it drafts for.
@pytest.mark.parametrize(
    "words", ["DFlash speculative draft", "--speculative-draft-model-path lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B"]
)
def test_a_draft_of_unknown_shape_is_said(words: str) -> None:
    with pytest.raises(InvalidInput, match="draft_model"):
        case(notes=words)


def test_flags_stand_in_for_empty_columns() -> None:
    flags = "--tensor-parallel-size 4 --gpu-memory-utilization 0.85 --max-model-len 4096 --language-model-only"
    read = case(tp="", gpu_memory_utilization="", max_model_len="", other_flags=flags,
                model="google/gemma-3-27b-it")  # fmt: skip
    assert read.tensor_parallel_size == 4
    assert read.gpu_memory_utilization == 0.85
    assert read.max_model_len == 4096
    assert read.model_shape.vision_parameters == 0


def test_slots_of_ollama_and_its_defaults() -> None:
    read = case(engine="ollama", model="gemma3:4b", gpu="RTX 4090", gpu_mem_gib="24", max_model_len="", weight_quant="",
                max_num_seqs="", gpu_memory_utilization="")  # fmt: skip
    assert read.max_model_len == 32_768
    assert read.weight_dtype == "gguf_q4_k_m"
    slots = case(engine="llama.cpp", max_model_len="32768 total (4 slots x 8192)", max_num_seqs="")
    assert (slots.max_num_seqs, slots.max_model_len) == (4, 8192)


def test_longest_context_is_predicted_for_every_row() -> None:
    predicted, _ = predict(pd.DataFrame([ROW, ROW | {"gpu": "", "gpu_mem_gib": ""}]))
    assert (predicted.pred_est_max_model_len == 8192).all()


# Uploads to PyPI: 0.19.0 on 3 April 2026, 0.28.0 on 26 August 2026; 0.6.4 on 15 November, 0.6.5 on 18 December 2024.
@pytest.mark.parametrize(
    ("version", "date", "expected"),
    [
        ("0.11.0", "2026-04-20", "0.11.0"),
        ("", "2026-04-07", "0.19.0"),
        ("main 2026-08", "2026-09-30", "0.28.0"),
        ("", "2024-12-14", "0.6.4"),
        ("", "", ""),
        ("0.1.dev9876+gabc123", "2026-04-10", "0.19.0"),
        ("25.12-py3", "2026-04-10", "0.11.2"),
        ("main 2026-05", "2026-06-20", "0.21.0"),
    ],
)
def test_version_by_date(version: str, date: str, expected: str) -> None:
    assert case(version=version, date=date).engine_version == expected


@pytest.mark.parametrize(
    ("notes", "tokens"),
    [
        ("no MTP", 0),
        ("MTP off", 0),
        ("mtp 2", 2),
        ('{"method":"mtp","num_speculative_tokens":4}', 4),
        ("--spec-draft-n-max 3", 3),
        ("MTP", 1),
    ],
)
def test_drafted_tokens_in_words(notes: str, tokens: int) -> None:
    assert case(model="Qwen/Qwen3.8-27B", notes=notes).num_speculative_tokens == tokens


def test_settings_in_words_of_a_log() -> None:
    assert case(notes="LLM(model=...)").offline
    assert case(notes="--no-async-scheduling").async_scheduling == "off"
    shared = case(engine="llama.cpp", other_flags="-np 4 kv_unified=true", max_num_seqs="")
    assert shared.engine_settings.kv_unified
    assert shared.max_num_seqs == 4
    split = case(engine="llama.cpp", tp="", pp="", n_gpus="2", max_num_seqs="1")
    assert (split.tensor_parallel_size, split.pipeline_parallel_size) == (1, 2)


# vLLM from 0.20 on raises where max_num_seqs exceeds the state blocks, its own default of 1,024 included (#38270,
# #49064: it is not lowered); eager mode captures no graphs and does not check.
def test_hybrid_rows_that_leave_the_batch_open() -> None:
    row = ROW | {"model": "Qwen/Qwen3.6-27B", "gpu": "H100", "version": "0.24.0", "gpu_memory_utilization": "0.9",
                 "max_num_seqs": "", "max_model_len": "32768", "max_num_batched_tokens": "2048"}  # fmt: skip
    rows = [row, row | {"max_num_seqs": "1024"}, row | {"enforce_eager": "True"}, row | {"version": "0.19.0"},
            row | {"max_num_seqs": "64"}]  # fmt: skip
    predicted, _ = predict(pd.DataFrame(rows))
    assert list(predicted.pred_outcome) == ["refused_mamba_blocks"] * 2 + ["started"] * 3


def test_state_dtype_of_a_flag() -> None:
    read = case(model="Qwen/Qwen3.8-27B", other_flags="--mamba-ssm-cache-dtype bfloat16")
    assert {x.mixer.state_element_bytes for x in read.model_shape.layer_kinds if x.mixer.is_state} == {2}


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        ("--mm-encoder-tp-mode data", True),
        ("--mm-encoder-tp-mode=data", True),
        ('--mm-encoder-tp-mode "data"', True),
        ("--mm-enable-dp-encoder", True),
        ("--mm-encoder-tp-mode weights", False),
    ],
)
def test_vision_tower_of_a_flag(flags: str, whole: bool) -> None:
    assert case(model="Qwen/Qwen2.5-VL-7B-Instruct", other_flags=flags).encoder_data_parallel is whole


@pytest.mark.parametrize(
    ("flags", "vision", "videos"),
    [
        ("--language-model-only", False, False),
        ("--limit-mm-per-prompt image=0,audio=0,video=0 (text-only mode)", False, False),
        ("""--limit-mm-per-prompt '{"image": 2, "video": 0}'""", True, False),
        ("limit_mm_per_prompt {'image':1,'video':0}", True, False),
        ("""--limit-mm-per-prompt '{"image":0,"video":0}'""", False, False),
        ("""--limit-mm-per-prompt {"video": 0, "image": 0}""", False, False),
        ("""--limit-mm-per-prompt {"image":0}""", True, True),  # videos still need the tower
        ("limit_mm_per_prompt {'image':1}, video unbound", True, True),
    ],
)
def test_media_of_a_flag(flags: str, vision: bool, videos: bool) -> None:
    model = case(model="Qwen/Qwen2.5-VL-7B-Instruct", other_flags=flags).model_shape
    assert (model.vision_parameters > 0) is vision
    assert (model.vision_tower is not None and model.vision_tower.videos_as_images) is videos


def test_adapter_slots_in_words() -> None:
    read = case(model="Qwen/Qwen3-4B", other_flags="--enable-lora, 64 adapter slots, rank 16")
    assert (read.engine_settings.max_loras, read.max_lora_rank) == (64, 16)


# SGLang logs K and V of a hybrid apart from its states (Qwen3.5-9B: 2.50 + 2.50 GB beside a Mamba cache of 4.48).
def test_available_cache_of_hybrids_in_sglang_is_that_of_keys_and_values() -> None:
    row = ROW | {"engine": "sglang", "version": "0.5.9", "model": "Qwen/Qwen3.5-9B", "gpu": "RTX 4090", "tp": "2",
                 "gpu_mem_gib": "24", "n_gpus": "2", "gpu_memory_utilization": "0.8", "max_num_seqs": ""}  # fmt: skip
    predicted, _ = predict(pd.DataFrame([row]))
    per_token = 8 * 2 * 2 * 256 * 2  # 8 layers, keys and values, 2 of 4 heads on each GPU, 16 bits
    assert predicted.pred_available_kv_gib[0] * GIB == pytest.approx(predicted.pred_kv_tokens[0] * per_token, rel=1e-4)


def test_prefix_caching_that_is_off_in_words() -> None:
    on = case(model="moonshotai/Kimi-K3", notes="prefix caching on (default)")
    off = case(model="moonshotai/Kimi-K3", notes="prefix caching off; cudagraph PIECEWISE")
    assert on.engine_settings.enable_prefix_caching and on.engine_settings.cache_state_prefixes
    assert not off.engine_settings.enable_prefix_caching and not off.engine_settings.cache_state_prefixes


# SGLang without its radix cache keeps one state for each request: 51.86 GiB beside the weights of Qwen3.8-27B on a GB10
# (0.5.15) became 32.66 GiB of keys and values, which two states for each of 32 requests would not leave.
def test_radix_cache_that_is_off_in_words() -> None:
    row = case(engine="sglang", engine_version="0.5.15", model="Qwen/Qwen3.8-27B", other_flags="--disable-radix-cache")
    assert not row.engine_settings.enable_prefix_caching


# vLLM divides heads evenly (config/model.py `verify_with_parallel_config`): 24 GPUs of a model with 64 heads are three
# stages of eight, as the vendor's recipe of Qwen3.8-2.4T-A95B says ("3x 8xB300 nodes").
@pytest.mark.parametrize(("gpus", "split"), [("24", (8, 3)), ("8", (8, 1)), ("3", (1, 3))])
def test_gpus_that_do_not_divide_the_heads(gpus: str, split: tuple[int, int]) -> None:
    row = case(model="Qwen/Qwen3.8-2.4T-A95B", gpu="B300", gpu_mem_gib="", n_gpus=gpus, tp="", pp="")
    assert (row.tensor_parallel_size, row.pipeline_parallel_size) == split
