"""Published names of checkpoints: the model that each was made of, its scheme, and names that mean nothing."""

import re

import pytest

from planner.catalog.models import base_model_id, checkpoint, find_model_id, get_model, model_names
from planner.catalog.names import scheme_of, variants, without_scheme
from planner.errors import InvalidInput
from planner.model import TensorGroup, weight_bytes_by_group, weight_dtype_names
from planner.tables import read_table


# Scheme: quantization_config of each checkpoint as its card or a pull request states it (checkpoint_names.csv).
@pytest.mark.parametrize(
    ("name", "model", "scheme"),
    [
        ("Qwen/Qwen3.5-397B-A17B-FP8", "Qwen/Qwen3.5-397B-A17B", "fp8_block"),
        ("zai-org/GLM-5.1-FP8", "zai-org/GLM-5.1", "fp8_block"),
        ("zai-org/GLM-4.7-FP8", "zai-org/GLM-4.7", "fp8"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "meta-llama/Llama-3.3-70B-Instruct", "nvfp4"),
        ("RedHatAI/MiniMax-M2-NVFP4", "MiniMaxAI/MiniMax-M2", "nvfp4_linear"),
        ("Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B", "awq_int4"),
        ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", "Qwen/Qwen3.5-35B-A3B", "gptq_int4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B-Instruct", "int4_g128"),
        ("meituan/DeepSeek-R1-Channel-INT8", "deepseek-ai/DeepSeek-R1", "int8"),
        ("amd/DeepSeek-R1-MXFP4-Preview", "deepseek-ai/DeepSeek-R1", "mxfp4"),
        ("unsloth/Qwen3-8B-GGUF", "Qwen/Qwen3-8B", "gguf_q4_k_m"),
        ("unsloth/Qwen3-8B-GGUF:Q8_0", "Qwen/Qwen3-8B", "gguf_q8_0"),
        ("Qwen3-8B-Q5_K_M.gguf", "Qwen/Qwen3-8B", "gguf_q5_k_m"),
        ("unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "meta-llama/Llama-3.3-70B-Instruct", "bnb_nf4"),
        ("google/gemma-4-31B-it-qat-w4a16-ct", "google/gemma-4-31B-it", "int4_g32"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "fp8"),
        ("qwen3.5:27b", "Qwen/Qwen3.5-27B", "gguf_q4_k_m"),
    ],
)
def test_a_checkpoint_is_its_model_in_its_scheme(name: str, model: str, scheme: str) -> None:
    assert find_model_id(name) == name
    shape = get_model(name)
    assert (shape.name, shape.quantization) == (name, scheme)
    assert (shape.num_parameters, shape.layer_kinds) == (get_model(model).num_parameters, get_model(model).layer_kinds)


# Not of the catalog's own checkpoint: Ministral 3 instructs in FP8, reasons in BF16 (vllm-project/recipes).
@pytest.mark.parametrize(
    ("name", "scheme", "positions"),
    [
        ("mistralai/Ministral-3-8B-Reasoning-2512", "", 262_144),
        ("mistralai/Ministral-3-8B-Instruct-2512", "fp8", 262_144),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "fp8_block", 163_840),
        ("mindlab-research/Macaron-V1-Coding-Venti", "", 1_048_576),
        ("zai-org/Glyph", "", 131_072),
    ],
)
def test_a_variant_keeps_or_changes_what_its_row_says(name: str, scheme: str, positions: int) -> None:
    shape = get_model(name)
    assert (shape.quantization, shape.max_position_embeddings) == (scheme, positions)


# Layers, widths, heads, vocabulary and exact total of both agree: PyPI llmfit 1.1.17 hf_models.json.
@pytest.mark.parametrize(
    ("name", "model", "scheme", "positions"),
    [
        ("rednote-hilab/dots.mocr", "rednote-hilab/dots.ocr", "", 131_072),
        ("allenai/olmOCR-2-7B-1025", "Qwen/Qwen2.5-VL-7B-Instruct", "", 128_000),
        ("ornith-ai/Ornith-1.5-397B-FP8", "Qwen/Qwen3.5-397B-A17B", "fp8", 262_144),
        ("opendatalab/MinerU2.5-Pro-2605-1.2B", "opendatalab/MinerU2.5-2509-1.2B", "", 32_768),
        ("ornith-ai/Ornith-1.0-9B", "Qwen/Qwen3.5-9B", "", 262_144),
        ("nvidia/Cosmos-Reason2-8B", "Qwen/Qwen3-VL-8B-Instruct", "", 262_144),
        ("google/codegemma-7b-it", "google/gemma-7b", "", 8192),
        ("nvidia/Llama-3.3-Nemotron-Super-49B-v1", "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-FP8", "", 131_072),
    ],
)
def test_a_finetune_has_the_shape_of_its_model(name: str, model: str, scheme: str, positions: int) -> None:
    shape, base = get_model(name), get_model(model)
    assert (shape.num_parameters, shape.layer_kinds) == (base.num_parameters, base.layer_kinds)
    assert (shape.quantization, shape.max_position_embeddings) == (scheme, positions)


# vLLM 0.29 on four GPUs of 83.05 GiB at 0.9: 30.53 GiB of KV cache beside weights, a drafter and the step.
def test_mimo_v2_6_flash_has_experts_in_four_bits() -> None:
    shape = get_model("XiaomiMiMo/MiMo-V2.6-Flash-RL")
    held = weight_bytes_by_group(shape, "auto")
    experts = 47 * 256 * 3 * 4096 * 2048
    assert held[TensorGroup.EXPERT] == pytest.approx(experts * 4.25 / 8, rel=1e-6)
    assert sum(held.values()) / 4 / 2**30 < 0.9 * 83.05 - 30.53


# Same figures and, in 16 bits, the same exact total as the model: PyPI llmfit 1.1.17 hf_models.json.
@pytest.mark.parametrize(
    ("name", "model", "scheme"),
    [
        ("huihui-ai/Huihui-Qwen3.5-27B-abliterated", "Qwen/Qwen3.5-27B", ""),
        ("huihui-ai/Qwen2.5-VL-7B-Instruct-abliterated", "Qwen/Qwen2.5-VL-7B-Instruct", ""),
        ("coder3101/Qwen3-VL-32B-Instruct-heretic-v2", "Qwen/Qwen3-VL-32B-Instruct", ""),
        ("OBLITERATUS/Gemma-4-12B-OBLITERATED", "google/gemma-4-12B-it", ""),
        ("orcarouter/Qwen3.8-27B-Uncensored-FP8", "Qwen/Qwen3.8-27B", "fp8"),
        ("huihui-ai/Huihui-gpt-oss-20b-mxfp4-abliterated-v2", "openai/gpt-oss-20b", "mxfp4"),
        ("huihui-ai/Huihui-gpt-oss-20b-BF16-abliterated", "openai/gpt-oss-20b", ""),
    ],
)
def test_weights_edited_in_place_have_the_shape_of_their_model(name: str, model: str, scheme: str) -> None:
    shape, base = get_model(name), get_model(model)
    assert (shape.num_parameters, shape.layer_kinds) == (base.num_parameters, base.layer_kinds)
    assert shape.quantization == scheme


def test_an_edited_checkpoint_of_a_packed_model_is_not_guessed() -> None:
    # one publisher keeps MXFP4, the next writes 16 bits
    assert find_model_id("someone/gpt-oss-20b-heretic") is None


def test_a_published_nvfp4_keeps_wide_what_most_publishers_do() -> None:
    named = get_model("nvidia/MiniMax-M2.5-NVFP4")
    chosen = checkpoint(get_model("MiniMaxAI/MiniMax-M2.5"), "nvfp4")
    other = get_model("someone/MiniMax-M2.5-NVFP4")
    assert named.group_bits == chosen.group_bits == other.group_bits != ()
    # a mirror of the model is served in the same checkpoint
    assert checkpoint(get_model("someone/MiniMax-M2.5"), "nvfp4").group_bits == chosen.group_bits


@pytest.mark.parametrize(
    "name",
    [
        "instruct",
        "fp8",
        "gguf",
        "-AWQ",
        "someone/finetune-FP8",
        "llama-fp8",
        "model-8bit",
        "x" * 10_000 + "-FP8",
        "Qwen/Qwen9-900B-FP8",
        "/",
        "-" * 150,
    ],
)
def test_words_of_a_scheme_alone_are_no_model(name: str) -> None:
    assert find_model_id(name) is None
    with pytest.raises(InvalidInput):
        get_model(name)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b-instruct"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "meta-llama-3.1-8b-instruct"),
        ("unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL", "qwen3-8b"),
        ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-r1-0528"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("01-ai/Yi-1.5-34B-Chat-16K", "yi-1.5-34b-chat-16k"),
    ],
)
def test_words_of_a_scheme_are_dropped_and_no_others(name: str, plain: str) -> None:
    assert without_scheme(name) == plain


def test_rows_of_names_are_sound() -> None:
    schemes = {*weight_dtype_names(), "none"}
    for rule in read_table("catalog/checkpoint_names.csv"):
        assert rule["source"]
        assert rule["quantization"] in schemes
        assert re.compile(rule["pattern"])
    for key, row in variants().items():
        assert row["source"]
        assert find_model_id(row["model"]) == row["model"], row
        assert row["quantization"] in {*schemes, ""}
        assert row["id"] not in model_names()
        assert get_model(key).num_parameters == get_model(row["model"]).num_parameters


def test_catalog_ids_are_themselves() -> None:
    for name in model_names():
        assert find_model_id(name) == name
        assert get_model(name).name == name
        assert find_model_id(name.lower()) == name


def test_a_name_without_a_scheme_states_none() -> None:
    assert scheme_of("Qwen/Qwen3-32B", "qwen3") == ""
    assert scheme_of("openai/gpt-oss-120b", "gpt_oss") == ""


@pytest.mark.parametrize(
    ("tag", "model", "scheme"),
    [
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct", "gguf_q4_k_m"),
        ("llama3.1:8b-instruct-q8_0", "meta-llama/Llama-3.1-8B-Instruct", "gguf_q8_0"),
        ("qwen2.5:7b-instruct-q5_K_M", "Qwen/Qwen2.5-7B-Instruct", "gguf_q5_k_m"),
        ("qwen3:8b-fp16", "Qwen/Qwen3-8B", ""),
        ("gemma3:27b-it-qat", "google/gemma-3-27b-it", "gguf_q4_0"),
        ("deepseek-r1:32b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "gguf_q4_k_m"),
        ("gpt-oss", "openai/gpt-oss-20b", "mxfp4"),
        ("glm-4.7-flash", "zai-org/GLM-4.7-Flash", "gguf_q4_k_m"),
        ("GLM-4.7-Flash", "zai-org/GLM-4.7-Flash", ""),
        ("DeepSeek-R1", "deepseek-ai/DeepSeek-R1", "fp8_block"),
    ],
)
def test_tags_of_ollama(tag: str, model: str, scheme: str) -> None:
    shape = get_model(tag)
    assert base_model_id(shape.name) == model
    assert shape.quantization == scheme
    assert shape.num_parameters == get_model(model).num_parameters


def test_meta_keeps_attention_and_two_layers_of_llama_405b_wide() -> None:
    # 324.5e9 feed-forward parameters of layers 2 to 125 in FP8, 81.3e9 others in 16 bits: 487 GB and the scales.
    shape = get_model("meta-llama/Llama-3.1-405B-Instruct-FP8")
    layers, inner, hidden = 126, 53_248, 16_384
    narrow = (layers - 2) * 3 * inner * hidden
    stored = narrow + 2 * (shape.num_parameters - narrow) + 4 * (layers - 2) * (2 * inner + hidden)
    assert sum(weight_bytes_by_group(shape).values()) == pytest.approx(stored, rel=1e-4)
