"""Reading published start-up logs and predicting them; rows here are cited cases."""

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.memory_gpus import gpu_fields
from planner.accuracy.memory_rows import read_case
from planner.accuracy.names import find_model, weight_dtype_of
from planner.answer import size
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.hardware import Gpu
from planner.memory.runtime import visible_memory_bytes
from planner.scenario import Scenario
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


def test_a_row_is_sized_as_any_scenario() -> None:
    predicted, _ = predict(pd.DataFrame([ROW]))
    same = Scenario(model="meta-llama/Llama-3.1-8B-Instruct", gpu="H100 SXM", engine_version="0.19.0", block_size=16,
                    gpu_total_gib=case().gpu_total_gib, max_num_seqs=1024, gpu_memory_utilization=0.95,
                    max_num_batched_tokens=8192)  # fmt: skip
    memory = size(same).memory
    assert predicted.pred_kv_tokens[0] == memory.kv_tokens
    assert predicted.pred_available_kv_gib[0] == memory.kv_pool_bytes / GIB


def test_row_without_a_known_model_is_skipped_with_its_reason() -> None:
    predicted, skipped = predict(pd.DataFrame([ROW, ROW | {"id": "b", "model": "something private"}]))
    assert list(predicted.id) == ["a", "b"]
    assert predicted.drop(columns="id").iloc[1].isna().all()
    assert "something private" in skipped[1]


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
    found = find_model(published)
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


def device(name: str, memory: str) -> Gpu:
    fields = gpu_fields({"gpu": name, "gpu_mem_gib": memory})
    assert fields
    return Scenario(**fields).gpu_spec


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
    assert visible_memory_bytes(device(name, memory)) / GIB == pytest.approx(visible_gib, abs=0.15)


def test_a_row_without_a_gpu_has_the_one_of_the_form() -> None:
    assert gpu_fields({"gpu": "", "gpu_mem_gib": ""}) == {}
    assert gpu_fields({"gpu": "Nvidia (not named)"}) == {}
    read = read_case(ROW | {"gpu": "", "gpu_mem_gib": ""})
    assert not read.gpu_known
    assert read.scenario.gpu == Scenario().gpu


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


@pytest.mark.parametrize(
    ("name", "memory", "expected_gib"),
    [("", "24", 23.6), ("24GB-class", "", 23.6), ("RTX 5060 Ti 16GB + RTX 5090 32GB", "", 15.65)],
)
def test_unnamed_and_mixed_gpus(name: str, memory: str, expected_gib: float) -> None:
    assert visible_memory_bytes(device(name, memory)) / GIB == pytest.approx(expected_gib, abs=0.1)


@pytest.mark.parametrize(
    ("published", "key"),
    [
        ("deepseek-r1:8b", "Qwen/Qwen3-8B"),
        ("deepseek-r1:32b", "Qwen/Qwen2.5-32B-Instruct"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
        ("RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
        ("LGAI-EXAONE/EXAONE-4.0-32B-FP8", "LGAI-EXAONE/EXAONE-4.0-32B"),
        ("unsloth/Qwen3.8-Flash-Next-GGUF UD-IQ4_XS", "Qwen/Qwen3.8-Flash-Next"),
        ("gemma-4-12b", "google/gemma-4-12B-it"),
        ("facebook/opt-1.3b", "facebook/opt-1.3b"),
    ],
)
def test_more_published_names(published: str, key: str) -> None:
    found = find_model(published)
    assert found is not None
    assert get_model(found).num_parameters == get_model(key).num_parameters


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia/Llama-3.1-8B-Instruct-FP4", "nvfp4"),
        ("RedHatAI/Llama-3.1-8B-Instruct-NVFP4", "nvfp4_linear"),
        ("someone/Llama-3.1-8B-Instruct-NVFP4 (compressed-tensors)", "nvfp4_linear"),
        ("unsloth/Llama-3.1-8B-bnb-4bit", "bnb_nf4"),
        ("Llama-3.1-8B-GGUF Q5_K_S", "gguf_q5_k_s"),
        ("Llama-3.1-8B-GGUF UD-Q2_K_XL", "gguf_q2_k"),
        ("Llama-3.1-8B-MXFP4", "mxfp4"),
    ],
)
def test_schemes_in_names(name: str, expected: str) -> None:
    model = get_model("meta-llama/Llama-3.1-8B-Instruct")
    assert weight_dtype_of({"weight_quant": "", "model": name}, model) == expected


# RedHatAI's NVFP4 of gemma-4-31B quantises attention too: 103.92 GiB are left on an H200 at 0.92 (configiq #112).
def test_who_quantises_decides_what_stays_wide() -> None:
    row = ROW | {"model": "gemma-4-31b-it-nvfp4", "version": "0.24.0+rhaiv.13", "gpu": "H200", "gpu_mem_gib": "141 GB",
                 "weight_quant": "nvfp4", "max_model_len": "262144", "max_num_seqs": "", "max_num_batched_tokens": "",
                 "gpu_memory_utilization": ""}  # fmt: skip
    predicted, _ = predict(pd.DataFrame([row]))
    assert predicted.pred_available_kv_gib[0] == pytest.approx(103.92, rel=0.01)


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


# Devices that the GPU catalog lacks, and parts of devices; memory as data sheets and profiles say.
@pytest.mark.parametrize(
    ("name", "memory", "listed_gib"),
    [
        ("H100 MIG 3g.40gb", "", 40),
        ("A100 MIG 2g.20gb", "", 20),
        ("GRID A100D-40C", "", 40),
        ("NVIDIA L40S-24Q", "", 24),
        ("Tesla P40", "", 24),
        ("Quadro RTX 8000", "", 48),
        ("RTX 4070 Ti Super 16GB", "", 16),
        ("RTX 2080 Ti 22GB", "", 22),
        ("Ascend 910C", "", 64),
        ("Jetson AGX Thor", "", 122.82),  # tegrastats: 125,772 MB
        ("Jetson AGX Orin 64GB", "", 61.37),
        ("NVIDIA H20-3e", "", 140.4),
        ("NVIDIA H200 NVL", "", 140.4),
    ],
)
def test_devices_and_parts_of_them(name: str, memory: str, listed_gib: float) -> None:
    assert device(name, memory).memory_gib == pytest.approx(listed_gib, abs=0.1)


@pytest.mark.parametrize(
    ("published", "key"),
    [
        ("casperhansen/mixtral-instruct-awq", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("Qwen3-Next-80B", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
        ("01-ai/Yi-34B-Chat-4bits", "01-ai/Yi-34B"),
        ("lmsys/vicuna-13b-v1.3", "lmsys/vicuna-13b-v1.5"),
        ("QuantTrio/Qwen3-235B-A22B-Instruct-2507-AWQ", "Qwen/Qwen3-235B-A22B"),
        ("cyankiwi/GLM-4.5-Air-AWQ-4bit", "zai-org/GLM-4.5-Air"),
        ("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-405B-Instruct"),
        ("EleutherAI/pythia-12b", "EleutherAI/pythia-12b"),
        ("NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    ],
)
def test_names_of_community_checkpoints(published: str, key: str) -> None:
    found = find_model(published)
    assert found is not None
    assert get_model(found).num_parameters == pytest.approx(get_model(key).num_parameters, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", "gptq_int8"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "gptq_int4"),
        ("unsloth/DeepSeek-R1-0528-GGUF UD-IQ1_S", "gguf_iq1_s"),
        ("bartowski/Qwen2.5-32B-GGUF IQ2_XS", "gguf_iq2_xs"),
        ("bartowski/Qwen2.5-32B-GGUF IQ3_M", "gguf_iq3_m"),
        ("RedHatAI/Qwen2.5-7B-quantized.w8a16", "gptq_int8"),
    ],
)
def test_more_schemes_in_names(name: str, expected: str) -> None:
    assert weight_dtype_of({"weight_quant": "", "model": name}, get_model("Qwen/Qwen2.5-7B-Instruct")) == expected


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


# Only what stands directly in parentheses is the board's memory; other figures of the name are not.
def test_memory_in_a_gpu_name() -> None:
    assert device("RTX 5090 (desktop, 25.11 GiB free)", "32").memory_gib == device("RTX 5090", "32").memory_gib
    assert visible_memory_bytes(device("RTX 5090 (31.36 GiB)", "")) / GIB == pytest.approx(31.36)


# vLLM from 0.20 on raises where max_num_seqs exceeds the state blocks, its own default of 1,024 included (#38270,
# #49064: it is not lowered); eager mode captures no graphs and does not check.
def test_hybrid_rows_that_leave_the_batch_open() -> None:
    row = ROW | {"model": "Qwen/Qwen3.6-27B", "gpu": "H100", "version": "0.24.0", "gpu_memory_utilization": "0.9",
                 "max_num_seqs": "", "max_model_len": "32768", "max_num_batched_tokens": "2048"}  # fmt: skip
    rows = [row, row | {"max_num_seqs": "1024"}, row | {"enforce_eager": "True"}, row | {"version": "0.19.0"},
            row | {"max_num_seqs": "64"}]  # fmt: skip
    predicted, _ = predict(pd.DataFrame(rows))
    assert list(predicted.pred_outcome) == ["refused_mamba_blocks"] * 2 + ["started"] * 3


@pytest.mark.parametrize(
    ("column", "name", "model", "expected"),
    [
        ("none", "mistralai/Ministral-3-14B-Instruct-2512-BF16", "mistralai/Ministral-3-14B-Instruct-2512", "bf16"),
        ("none", "openai/gpt-oss-20b", "openai/gpt-oss-20b", "auto"),
        ("fp8", "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash", "auto"),
        ("", "DeepSeek-V4-Flash-FP8", "deepseek-ai/DeepSeek-V4-Flash", "fp8"),
        ("w4a16", "google/gemma-3-12b-it-qat-w4a16-ct", "google/gemma-3-12b-it", "int4_g32"),
        ("awq int4", "gaunernst/gemma-3-27b-it-int4-awq", "google/gemma-3-27b-it", "int4_g32"),
        ("unquantized (bf16)", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "auto"),
    ],
)
def test_schemes_of_checkpoints(column: str, name: str, model: str, expected: str) -> None:
    assert weight_dtype_of({"weight_quant": column, "model": name}, get_model(model)) == expected


@pytest.mark.parametrize("column", ["exl3 3.25bpw", "aqlm 2bit"])
def test_an_unknown_scheme_is_skipped_with_its_reason(column: str) -> None:
    predicted, skipped = predict(pd.DataFrame([ROW | {"weight_quant": column}]))
    assert predicted.drop(columns="id").iloc[0].isna().all()
    assert column in skipped[0]


# RedHatAI leaves linear attention in 16 bits (llm-compressor's recipe): a log of vLLM 0.20.0 loads 21.86 GiB.
def test_nvfp4_of_hybrids_by_publisher() -> None:
    row = ROW | {"model": "RedHatAI/Qwen3.6-35B-A3B-NVFP4", "weight_quant": "nvfp4 (compressed-tensors)",
                 "gpu": "GB10", "gpu_mem_gib": "", "version": "0.20.0"}  # fmt: skip
    predicted, _ = predict(pd.DataFrame([row]))
    assert predicted.pred_weights_gib_per_gpu[0] == pytest.approx(21.86, rel=0.01)


def test_state_dtype_of_a_flag() -> None:
    read = case(model="Qwen/Qwen3.8-27B", other_flags="--mamba-ssm-cache-dtype bfloat16")
    assert {x.mixer.state_element_bytes for x in read.model_shape.layer_kinds if x.mixer.is_state} == {2}


@pytest.mark.parametrize(
    ("flags", "vision", "videos"),
    [
        ("--language-model-only", False, False),
        ("--limit-mm-per-prompt image=0,audio=0,video=0 (text-only mode)", False, False),
        ("""--limit-mm-per-prompt '{"image": 2, "video": 0}'""", True, False),
        ("limit_mm_per_prompt {'image':1,'video':0}", True, False),
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
