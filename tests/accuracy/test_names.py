"""Published names find the catalog entry that they mean. Expected ids read off the model cards by hand."""

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.names import find_engine_preset, find_gpu, find_model, reduce_name, weight_dtype_of
from planner.catalog.models import get_model
from tests.accuracy.published_rows import START_UP as ROW


@pytest.mark.parametrize(
    ("published", "catalog"),
    [
        ("LLaMA-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama 3.1 8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama2-70B", "meta-llama/Llama-2-70b-hf"),
        ("Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct"),
        ("Llama 4 Maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        ("DeepSeek R1 0528", "deepseek-ai/DeepSeek-R1"),
        ("DeepSeek-V3.1-NVFP4", "deepseek-ai/DeepSeek-V3.1"),
        ("DeepSeek-V3.2-Exp", "deepseek-ai/DeepSeek-V3.2"),
        ("GPT-OSS 120B", "openai/gpt-oss-120b"),
        ("Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
        ("Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),
        ("Qwen3-Coder-Next", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
        ("Mixtral-8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("MiniMax-M2.7", "MiniMaxAI/MiniMax-M2.7"),
        ("Falcon 180B", "tiiuae/falcon-180B"),
        ("Vicuna-7B", "meta-llama/Llama-2-7b-hf"),
        ("GLM-4.6-FP8", "zai-org/GLM-4.6"),
    ],
)
def test_a_published_model_name_finds_its_shape(published, catalog):
    assert find_model(published) == catalog


def test_an_unknown_model_is_not_guessed():
    assert find_model("Grok-9 1.2T") is None


@pytest.mark.parametrize(
    ("published", "catalog"),
    [
        ("H100-SXM-80GB", "H100 SXM"),
        ("H200-SXM-141GB", "H200 SXM"),
        ("GB200-192GB(NVL72)", "GB200"),
        ("A100-80GB", "A100 SXM 80GB"),
        ("A100-PCIe(80GB?)", "A100 PCIe 80GB"),
        ("RTX-PRO-6000-Blackwell-Server-96GB", "RTX PRO 6000 Blackwell Server"),
        ("GH200-480GB", "GH200 96GB"),
        ("L40S-48GB", "L40S"),
        ("MI300X-192GB", "MI300X"),
    ],
)
def test_a_published_gpu_name_finds_its_board(published, catalog):
    assert find_gpu(published) == catalog


def test_an_unknown_gpu_is_not_guessed():
    assert find_gpu("Cerebras WSE-3") is None


@pytest.mark.parametrize(
    ("published", "preset"),
    [
        ("TensorRT-LLM+Triton", "tensorrt-llm"),
        ("vLLM-Ascend", "vllm"),
        ("SGLang", "sglang"),
        ("Llama.cpp", "llama.cpp"),
        ("MindIE", "paged"),
        ("ollama (llama.cpp)", "ollama"),
        ("TensorRT-LLM (NIM)", "tensorrt-llm"),
        ("text-generation-inference", "tgi"),
        ("Optimum-Habana (PyTorch)", "static"),
    ],
)
def test_engine_presets(published, preset):
    assert find_engine_preset(published) == preset


def test_reducing_keeps_what_tells_shapes_apart():
    assert reduce_name("Qwen/Qwen3-30B-A3B-FP8") != reduce_name("Qwen/Qwen3-32B-FP8")
    assert reduce_name("Llama-3.1-8B") != reduce_name("Llama-3-8B")


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
        ("unsloth/Qwen3.6-27B-GGUF UD-Q8_K_XL", "gguf_q8_0"),
        ("RedHatAI/Qwen2.5-7B-quantized.w8a16", "gptq_int8"),
    ],
)
def test_more_schemes_in_names(name: str, expected: str) -> None:
    assert weight_dtype_of({"weight_quant": "", "model": name}, get_model("Qwen/Qwen2.5-7B-Instruct")) == expected


@pytest.mark.parametrize(
    ("column", "name", "model", "expected"),
    [
        ("none", "mistralai/Ministral-3-14B-Instruct-2512-BF16", "mistralai/Ministral-3-14B-Instruct-2512", "bf16"),
        ("none", "openai/gpt-oss-20b", "openai/gpt-oss-20b", "auto"),
        ("fp8", "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash", "auto"),
        ("", "DeepSeek-V4-Flash-FP8", "deepseek-ai/DeepSeek-V4-Flash", "fp8"),
        ("", "deepseek-ai/DeepSeek-V4-Flash-Base", "deepseek-ai/DeepSeek-V4-Flash", "fp8_block"),
        ("", "mistralai/Ministral-3-3B-Base-2512", "mistralai/Ministral-3-3B-Instruct-2512", "bf16"),
        ("w4a16", "google/gemma-3-12b-it-qat-w4a16-ct", "google/gemma-3-12b-it", "int4_g32"),
        ("awq int4", "gaunernst/gemma-3-27b-it-int4-awq", "google/gemma-3-27b-it", "int4_g32"),
        ("unquantized (bf16)", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "auto"),
        ("modelopt", "nvidia/Qwen3-8B-NVFP4", "Qwen/Qwen3-8B", "nvfp4"),  # a loader: the name says the bits
        ("quark", "openai/gpt-oss-20b", "openai/gpt-oss-20b", "auto"),
    ],
)
def test_schemes_of_checkpoints(column: str, name: str, model: str, expected: str) -> None:
    assert weight_dtype_of({"weight_quant": column, "model": name}, get_model(model)) == expected


@pytest.mark.parametrize("column", ["exl3 3.25bpw", "aqlm 2bit", "modelopt", "compressed-tensors"])
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
