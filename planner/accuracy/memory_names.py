"""Which model and which weights a published start-up log means, from names as people write them."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

from planner.accuracy.names import find_model
from planner.catalog import find_model_id, get_model, model_names
from planner.errors import InvalidInput
from planner.memory import kv_bytes_for
from planner.model import QWEN4_FP8_DRAFT, MixerKind, ModelShape, TensorGroup, model_from_config

#: names that say a class of models, not one of them
CLASSES: tuple[tuple[str, str], ...] = (
    (r"deepseek.?v3forcausallm|deepseek-(v3|r1)", "deepseek-ai/DeepSeek-V3"),
    (r"nemotron.*120b|nemotron-3-super", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    (r"70b llama-?3", "meta-llama/Llama-3.3-70B-Instruct"),
    (r"coder-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"),
    (r"coder-v2", "deepseek-ai/DeepSeek-Coder-V2-Instruct"),
    (r"deepseek-v2 family", "deepseek-ai/DeepSeek-V2-Chat"),
    (r"glm-4\.x class", "zai-org/GLM-4.6"),
    (r"qwen3\.5/qwen3-next", "Qwen/Qwen3.5-35B-A3B"),
    (r"^qwen3\.5 ", "Qwen/Qwen3.5-397B-A17B"),
    (r"gemma3:(\d+b)", "google/gemma-3-{}-it"),
    (r"48-layer moe class", "Qwen/Qwen3-30B-A3B"),
    (r"mistral-7b", "mistralai/Mistral-7B-Instruct-v0.3"),
    (r"mixtral(?!.*8x22)", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    (r"vicuna-(7|13)b", "lmsys/vicuna-{}b-v1.5"),
    (r"llama-guard-3-8b", "meta-llama/Llama-3.1-8B-Instruct"),
    (r"internvl2_5-78b", "OpenGVLab/InternVL3-78B"),
)
#: tags of Ollama's library that name another checkpoint than they seem to
TAGS: tuple[tuple[str, str], ...] = (
    (r"^deepseek-r1:(7|14|32)b", "Qwen/Qwen2.5-{}B-Instruct"),
    (r"^deepseek-r1:8b", "Qwen/Qwen3-8B"),
    (r"^deepseek-r1:70b", "meta-llama/Llama-3.3-70B-Instruct"),
    (r"^phi4(:14b|$)", "microsoft/phi-4"),
    (r"^phi3(:3\.8b|:mini|$)", "microsoft/Phi-3-mini-4k-instruct"),
    (r"^qwen3-coder(:30b|$)", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
    (r"^qwen3\.(5|6):35b", "Qwen/Qwen3.{}-35B-A3B"),
    (r"^qwen3\.(5|6):27b", "Qwen/Qwen3.{}-27B"),
    (r"^gemma4:26b", "google/gemma-4-26B-A4B-it"),
    (r"^gemma4:31b", "google/gemma-4-31B-it"),
    (r"^mixtral(:8x7b|$)", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    (r"^mistral(:7b|$)", "mistralai/Mistral-7B-Instruct-v0.3"),
    (r"^codellama:(7|13|34)b", "codellama/CodeLlama-{}b-hf"),
)
QUANTIZATIONS: tuple[tuple[str, str], ...] = (
    (r"mxfp4", "mxfp4"),
    (r"(?<![a-z])(nv)?fp4", "nvfp4"),
    (r"bnb|bitsandbytes|nf4", "bnb_nf4"),
    (r"iq4[_-]?xs", "gguf_iq4_xs"),
    (r"iq4[_-]?nl", "gguf_iq4_nl"),
    (r"iq3[_-]?xxs", "gguf_iq3_xxs"),
    (r"iq3[_-]?xs", "gguf_iq3_xs"),
    (r"iq3[_-]?s", "gguf_iq3_s"),
    (r"iq3[_-]?m", "gguf_iq3_m"),
    (r"iq2[_-]?xxs", "gguf_iq2_xxs"),
    (r"iq2[_-]?xs", "gguf_iq2_xs"),
    (r"iq2[_-]?s", "gguf_iq2_s"),
    (r"iq2[_-]?m", "gguf_iq2_m"),
    (r"iq1[_-]?s", "gguf_iq1_s"),
    (r"iq1[_-]?m", "gguf_iq1_m"),
    (r"(?<![a-z])q8[_-]?0", "gguf_q8_0"),
    (r"(?<![a-z])q6[_-]?k", "gguf_q6_k"),
    (r"(?<![a-z])q5[_-]?k[_-]?s", "gguf_q5_k_s"),
    (r"(?<![a-z])q5[_-]?k", "gguf_q5_k_m"),
    (r"(?<![a-z])q5[_-]?[01]", "gguf_q5_0"),
    (r"(?<![a-z])q4[_-]?[01]", "gguf_q4_0"),
    (r"(?<![a-z])q4[_-]?k[_-]?s", "gguf_q4_k_s"),
    (r"(?<![a-z])q3[_-]?k[_-]?l", "gguf_q3_k_l"),
    (r"(?<![a-z])q3[_-]?k[_-]?s", "gguf_q3_k_s"),
    (r"(?<![a-z])q3[_-]?k", "gguf_q3_k_m"),
    (r"(?<![a-z])q2[_-]?k", "gguf_q2_k"),
    (r"gguf.*\b[bf]+16|[bf]+16.*gguf", "gguf_f16"),
    (r"(?<![a-z])q4[_-]?k|gguf|ollama", "gguf_q4_k_m"),
    (r"gptq.{0,3}(int)?8(?![.\d])|gptq.*\bint8\b|w8a16|awq.{0,3}8 ?bit", "gptq_int8"),
    (r"w8a8|int8 w8a8|w8a8-int8|\bint8\b", "int8"),
    (r"w4a16", "int4_g128"),
    (r"awq", "awq_int4"),
    (r"gptq|autoround|auto-round|int4|4.?bit", "gptq_int4"),
    (r"fp8", "fp8"),
)
#: who publishes NVFP4 of every linear layer (compressed-tensors), where NVIDIA keeps attention wider
QUANTIZES_EVERY_LINEAR = re.compile(r"redhatai/|neuralmagic/|rhaiv|compressed.tensors", re.IGNORECASE)
#: what publishers of NVFP4 do otherwise than most: (publisher, model_type, bits by group)
NVFP4_OF_PUBLISHERS: tuple[tuple[str, str, tuple[tuple[str, float], ...]], ...] = (
    (r"\binferact\b", "qwen3_5_text", (("attention", 16.0), ("lm_head", 16.0))),  # vllm-project/recipes pull 810
    (r"\bnvidia/", "qwen4_exp_text", (("mtp", QWEN4_FP8_DRAFT),)),  # 123.6 GiB: 1,536 scales, the draft layer's experts
    (r"\binferact\b", "qwen4_exp_text", (("ngram", 16.0),)),  # a table of 102 GB: vllm-project/vllm pull 57497
)
#: flags that quantise while loading
QUANTIZATION_FLAG = re.compile(r"--?(?:quantization|load[-_]format)[= ]+(fp8|bitsandbytes|awq\w*|gptq\w*)")
#: Gemma trained in 4 bits: groups of 32, as Q4_0 has them
QUANTIZATION_AWARE = re.compile(r"gemma.*(?:qat|it-int4-awq)")
PLAIN = re.compile(r"\W*(?:auto|none|bf16|bfloat16|fp16|float16|half|unquanti[sz]ed|original|full precision).*")
DFLASH_LAYERS = 5
DRAFT_FLAG = re.compile(r"(?:speculative[-_]model|draft[-_]model(?:[-_]path)?|model[-_]draft)[= ]+(\S+)")


def weight_dtype_of(row: dict[str, str], model: ModelShape) -> str:
    """Scheme of the weights: what the column says, else what a flag or the name says, else as published.

    Ollama's tags are Q4_K_M unless they say otherwise.
    """
    if "float32" in row.get("dtype", ""):
        return "fp32"
    column, name = row.get("weight_quant", "").lower(), row.get("model", "").lower()
    if "bf16" in name and column in ("", "none", "bf16"):
        return "bf16"  # of a model that is published in fewer bits
    if column == "none":
        return "auto"
    texts = [name] if column in ("", "compressed-tensors") else [column, name]
    if column == "gptq_marlin" and "w4a16" in name:
        texts = [name]
    flag = QUANTIZATION_FLAG.search(row.get("other_flags", ""))
    if flag and not column:
        texts.insert(0, flag[1].lower())
    if "ollama" in row.get("engine", "").lower() and model.quantization != "mxfp4":
        texts.append("ollama")
    for text in texts:
        scheme = next((scheme for pattern, scheme in QUANTIZATIONS if re.search(pattern, text)), None)
        if scheme is not None:
            same = scheme == model.quantization or (scheme == "fp8" and model.quantization.startswith("fp8"))
            if model.quantization == "fp8_fp4_experts" and re.search(r"-(?:fp8|base)\b", name):
                same = False  # the experts in 8 bits too
            if scheme in ("awq_int4", "int4_g128", "gptq_int4") and QUANTIZATION_AWARE.search(name):
                scheme = "int4_g32"
            same |= scheme == "gguf_f16" and model.quantization == "mxfp4"  # such files keep the experts as published
            publisher = f"{name} {row.get('version', '')} {column}"
            if scheme == "nvfp4" and not same and QUANTIZES_EVERY_LINEAR.search(publisher):
                return "nvfp4_linear"
            return "auto" if same else scheme
    if column and not PLAIN.fullmatch(column):
        raise InvalidInput("weight_quant", row["weight_quant"], "a scheme of planner/catalog/quantization.csv")
    return "auto"


def find_draft(text: str, model: ModelShape) -> ModelShape | None:
    """Separate draft model that flags name, None when there is none or its shape is not known."""
    found = DRAFT_FLAG.search(text)
    key = find_model_key(found[1].strip("\"',{}")) if found else None
    if key is None and re.search(r"\bdflash2?\b", text, re.IGNORECASE):
        return block_diffusion_draft(model)
    return get_model(key) if key else None


@cache
def block_diffusion_draft(model: ModelShape) -> ModelShape:
    """Shape of a DFlash draft when a row names none: five layers of Qwen3 as wide as the model.

    Its embedding and head are the model's; a projection of five of the model's hidden states is its own (an
    estimate after published drafts: 32 heads and 8 KV heads of 128, the model's dense width).
    """
    dense = [x for layer, _ in model.layer_counts() for x in layer.linears if x.group is TensorGroup.MLP]
    width = max((x.in_features for x in dense if x.name == "down_proj"), default=3 * model.hidden_size)
    config = {
        "model_type": "qwen3", "num_hidden_layers": DFLASH_LAYERS, "hidden_size": model.hidden_size,
        "intermediate_size": width, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 64, "tie_word_embeddings": True, "max_position_embeddings": model.max_position_embeddings,
    }  # fmt: skip
    shape = model_from_config(config, f"{model.name} draft")
    return dataclasses.replace(shape, extra_embedding_parameters=DFLASH_LAYERS * model.hidden_size**2)


def shape_of(row: dict[str, str]) -> ModelShape:
    """Shape of a row's model: by name, by the class that it names, or by its cache per token and size.

    Raises
    ------
    InvalidInput
        When nothing in the catalog fits.
    """
    name = row.get("model", "")
    key = find_model_key(name)
    if key is None:
        key = _by_cache_per_token(name)
    if key is None:
        raise InvalidInput("model", name, "a model of the catalog, or a row that names its shape")
    return as_published(get_model(key), row)


def as_published(model: ModelShape, row: dict[str, str]) -> ModelShape:
    """The shape with the widths of the checkpoint that a row names, where its publisher differs from most."""
    text = f"{row.get('model', '')} {row.get('weight_quant', '')}".lower()
    if "fp4" not in text:
        return model
    for publisher, model_type, bits in NVFP4_OF_PUBLISHERS:
        if model.model_type == model_type and re.search(publisher, text):
            return dataclasses.replace(model, quantization="nvfp4", group_bits=bits)
    return model


@cache
def find_model_key(name: str) -> str | None:
    """Catalog id for a published name."""
    tagged = _by_pattern(name, TAGS)
    if tagged is not None:
        return tagged
    plain = re.sub(r"-\d{4}$", "", re.sub(r"\(.*?\)", " ", name).strip())
    spellings = [name, plain, plain.split(" ")[0]]
    spellings += [_without_quantization(text) for text in (plain, plain.split(" ")[0])]
    for text in spellings:
        found = find_model_id(text.split("/")[-1]) if len(text) > 5 else None
        if found is not None:
            return found
    for text in spellings:
        found = find_model(text) if text else None
        if found is not None and found in model_names():
            return found
    contained = _longest_contained(plain) or _longest_contained(name)
    if contained is not None:
        return contained
    return _by_pattern(name, CLASSES) or _only_continuation(plain)


def _by_pattern(name: str, table: tuple[tuple[str, str], ...]) -> str | None:
    for pattern, key in table:
        match = re.search(pattern, name, re.IGNORECASE)
        if match:
            return key.format(*match.groups()) if "{}" in key else key
    return None


def _without_quantization(text: str) -> str:
    text = text.split("/")[-1]
    noise = r"[-_ .]?(fp8([-_](dynamic|block|static))?|nvfp4|mxfp4|w\d+a\d+|quantized|awq|gptq|int\d|\d ?bits?|gguf|"
    noise += r"autoround|q\d[_-]?(k[_-]?[sml]|k|0)?|ud|resharded|bnb|bf16|unsloth)(?![a-z0-9])"
    before = None
    while before != text:
        before, text = text, re.sub(noise, "", text, flags=re.IGNORECASE)
    return text


@cache
def _reduced_names() -> dict[str, str]:
    reduced: dict[str, str] = {}
    for key in model_names():
        short = re.sub(r"-(instruct|it|hf|chat|base)\b.*", "", key.split("/")[-1].lower())
        reduced.setdefault(re.sub(r"[^a-z0-9.]", "", short), key)
    return reduced


def _longest_contained(name: str) -> str | None:
    """Catalog model whose short name the published one contains, the longest first."""
    text = re.sub(r"[^a-z0-9.]", "", name.lower())
    for short in sorted(_reduced_names(), key=len, reverse=True):
        at = text.find(short)
        if len(short) >= 6 and at >= 0 and not text[at + len(short) : at + len(short) + 1].isdigit():
            return _reduced_names()[short]
    return None


def _only_continuation(name: str) -> str | None:
    """Catalog model whose short name begins with the published one, when all that do have one size."""
    text = re.sub(r"[^a-z0-9.]", "", _without_quantization(name).lower())
    fits = [key for short, key in _reduced_names().items() if len(text) >= 6 and short.startswith(text)]
    return fits[0] if len({get_model(key).num_parameters for key in fits}) == 1 else None


def _by_cache_per_token(name: str) -> str | None:
    """Catalog model with the stated KiB per token and about the stated size; None unless both are stated."""
    cache_kib = re.search(r"~?(\d+(?:\.\d+)?) ?KiB/token", name)
    size = re.search(r"~?(\d+(?:\.\d+)?)B\b", name.split("(")[0])
    if not cache_kib or not size:
        return None
    wanted = float(cache_kib[1]) * 1024
    for key in model_names():
        model = get_model(key)
        plain = all(layer.mixer.kind is MixerKind.FULL for layer in model.layer_kinds)
        near = abs(model.num_parameters / 1e9 / float(size[1]) - 1) < 0.1
        if plain and near and abs(kv_bytes_for(model, 1) / wanted - 1) < 0.02:
            return key
    return None
