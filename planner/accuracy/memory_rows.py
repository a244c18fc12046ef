"""Reading a published start-up log: its model, GPU and settings in the planner's terms.

Only inputs are read: never what the engine printed. Settings that a row leaves open stay open, so
that the engine's own defaults apply.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from functools import cache

from planner.accuracy.names import find_model
from planner.catalog.gpu_catalog import get_gpu
from planner.catalog.model_catalog import find_model_id, get_model, model_names
from planner.engine import EngineSettings
from planner.errors import InvalidInput
from planner.hardware import Gpu, Parallelism
from planner.model import MixerKind, ModelShape
from planner.quantization import weight_bytes_by_group
from planner.sizing.kv_layout import kv_bytes_for
from planner.sizing.runtime import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE
from planner.units import GIB

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
)
QUANTIZATIONS: tuple[tuple[str, str], ...] = (
    (r"nvfp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"iq4[_-]?xs", "gguf_iq4_xs"),
    (r"q8[_-]?0", "gguf_q8_0"),
    (r"q6[_-]?k", "gguf_q6_k"),
    (r"q5[_-]?k", "gguf_q5_k_m"),
    (r"q4[_-]?0", "gguf_q4_0"),
    (r"q4[_-]?k|gguf|ollama", "gguf_q4_k_m"),
    (r"w8a8|int8 w8a8|w8a8-int8|\bint8\b", "int8"),
    (r"gptq[-_ ]?(int)?8(?![.\d])|w8a16", "gptq_int8"),
    (r"w4a16", "int4_g128"),
    (r"awq", "awq_int4"),
    (r"gptq|autoround|auto-round|int4|4.?bit", "gptq_int4"),
    (r"bnb|bitsandbytes|nf4", "bnb_nf4"),
    (r"fp8", "fp8"),
)
FAMILY_OF_ENGINE = (("sglang", "sglang"), ("llama.cpp", "llamacpp"), ("ollama", "llamacpp"), ("tensorrt", "trtllm"),
                    ("tgi", "tgi"), ("vllm", "vllm"))  # fmt: skip
ASSUMED_GPU = "H100 SXM"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCase:
    """One start-up in the planner's terms. `gpu_known` says whether the row names its memory."""

    model: ModelShape
    gpu: Gpu
    gpu_known: bool
    engine: EngineSettings
    parallelism: Parallelism
    max_model_len: int
    weight_dtype: str
    kv_cache_dtype: str
    assumptions: tuple[str, ...] = field(default=())


def read_case(row: dict[str, str]) -> MemoryCase:
    """Read a row of a memory file.

    Parameters
    ----------
    row : dict of str to str
        Columns of memory_cases.csv, blanks as "".

    Returns
    -------
    MemoryCase
        What to size.

    Raises
    ------
    InvalidInput
        When the row names no model that the catalog has.
    """
    notes = f"{row.get('other_flags', '')} {row.get('notes', '')}"
    model = shape_of(row)
    gpu, known = gpu_of(row.get("gpu", "") or gpu_class_in(notes), row.get("gpu_mem_gib", ""))
    version, family = row.get("version", ""), family_of(row.get("engine", ""))
    limit = model.max_position_embeddings
    length = first_integer(row.get("max_model_len", "")) or flag_integer(notes, "context-length") or limit
    per_slot = re.search(r"slots? x (\d+)", row.get("max_model_len", ""))
    engine = EngineSettings(
        name=family,
        family=family,
        version=version,
        gpu_memory_utilization=utilization_of(row.get("gpu_memory_utilization", ""), notes),
        max_num_seqs=first_integer(row.get("max_num_seqs", "")) or flag_integer(notes, "max[-_]num[-_]seqs"),
        max_num_batched_tokens=first_integer(row.get("max_num_batched_tokens", ""))
        or flag_integer(notes, "max[-_]num[-_]batched[-_]tokens"),
        block_size=block_size_of(row, family, notes),
        cuda_graphs=not ("true" in row.get("enforce_eager", "").lower() or "enforce-eager" in notes),
        num_speculative_tokens=speculative_tokens(notes),
        cache_state_prefixes=bool(re.search(r"(?<!no )prefix caching|enable[-_]prefix[-_]caching(?!=False)", notes)),
        max_loras=1 if re.search(r"lora enabled|enable-lora", notes, re.IGNORECASE) else 0,
    )
    parallelism = parallelism_of(row)
    weight_dtype = weight_dtype_of(row, model)
    if weight_dtype == "auto" and not row.get("weight_quant") and known and family == "vllm":
        share = engine.gpu_memory_utilization or 0.9
        weight_dtype = narrowest_needed(model, gpu, parallelism, share)
    return MemoryCase(
        model=model,
        gpu=gpu,
        gpu_known=known,
        engine=engine,
        parallelism=parallelism,
        max_model_len=int(per_slot[1]) if per_slot else length,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_dtype_of(row, notes),
    )


def narrowest_needed(model: ModelShape, gpu: Gpu, parallelism: Parallelism, share: float) -> str:
    """Scheme that a row must mean when it names none and the published weights cannot fit.

    The widest of fp8 and 4 bits that leaves a fifth of the budget; "auto" when the weights fit.
    """
    ranks = parallelism.gpus_per_replica
    for scheme in ("auto", "fp8"):
        weights = sum(weight_bytes_by_group(model, scheme).values()) / ranks
        if weights < (0.98 if scheme == "auto" else 0.8) * share * gpu.memory_bytes:
            return scheme
    return "nvfp4"


def first_integer(text: str) -> int | None:
    """Whole number at the start of a cell: "8192 (default)", "~1M", "262,144"; None when it says words."""
    found = re.match(r"\s*~?\s*(\d[\d,]*)\s*([MKk](?![a-zA-Z])B?)?", text)
    if not found:
        return None
    number = int(found[1].replace(",", ""))
    return number * {"M": 1_000_000, "K": 1024, "k": 1024}.get((found[2] or "")[:1], 1)


def flag_integer(text: str, name: str) -> int | None:
    """Whole number after a flag or setting in free text."""
    found = re.search(rf"{name}[= ]+(\d+)", text)
    return int(found[1]) if found else None


def utilization_of(text: str, notes: str) -> float | None:
    """Share of device memory; notes may correct a misprinted one."""
    corrected = re.search(r"treat utilization as (0\.\d+)", notes)
    found = corrected or re.search(r"(0\.\d+|1\.0)", text)
    return float(found[1]) if found else None


def block_size_of(row: dict[str, str], family: str, notes: str) -> int:
    """Tokens per block before hybrids enlarge it."""
    text = row.get("block_size", "")
    if "alignment" in text or not text:
        given = flag_integer(notes, "block[-_]size")
        return given or {"sglang": 1, "trtllm": 32, "llamacpp": 1}.get(family, 16)
    return first_integer(text) or 16


def family_of(engine: str) -> str:
    """Engine family of a published name."""
    text = engine.lower()
    return next((family for word, family in FAMILY_OF_ENGINE if word in text), "generic")


def speculative_tokens(text: str) -> int:
    """Drafted tokens of multi-token prediction, 0 when it is off."""
    if re.search(r"no speculation|without mtp", text, re.IGNORECASE):
        return 0
    stated = re.search(r"num_speculative_tokens[= ]+(\d+)|MTP (\d+) tokens?", text)
    if stated:
        return int(stated[1] or stated[2])
    return 1 if re.search(r"\bMTP\b", text) else 0


def parallelism_of(row: dict[str, str]) -> Parallelism:
    """Tensor, pipeline, data and expert parallelism of a row."""
    text = row.get("dp_ep", "")
    stated = re.search(r"DP(?: attention)?\s?(\d+)", text)
    data = int(stated[1]) if stated else 1
    attention_only = "attention" in text.lower()
    tp = first_integer(row.get("tp", "")) or 1
    pp = first_integer(row.get("pp", "")) or 1
    if attention_only and data > 1:
        tp = max(1, tp // data)
    flags = f"{row.get('other_flags', '')} {text}"
    context = re.search(
        r"(?:decode[-_]context[-_]parallel(?:[-_]size)?|dcp(?:[-_]size)?)[=: ]*(\d+)", flags, re.IGNORECASE
    )
    dcp = int(context[1]) if context else 1
    return Parallelism(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        expert_parallel="EP" in text,
        attention_data_parallel_size=max(1, data),
        decode_context_parallel_size=dcp,
    )


def kv_dtype_of(row: dict[str, str], notes: str) -> str:
    """Cache type of a row."""
    text = (
        row.get("kv_cache_dtype", "").lower()
        or (re.search(r"kv[-_]cache[-_]dtype[= ]+(\w+)", notes) or ["", ""])[1].lower()
    )
    for name in ("fp8_ds_mla", "fp8_e5m2", "fp8_e4m3", "fp8", "nvfp4", "q8_0", "q4_0", "int8"):
        if name in text:
            return name
    return "auto"


def weight_dtype_of(row: dict[str, str], model: ModelShape) -> str:
    """Scheme of the weights: what the column says, else what the name says, else as published."""
    if "float32" in row.get("dtype", ""):
        return "fp32"
    column, name = row.get("weight_quant", "").lower(), row.get("model", "").lower()
    if column == "none":
        return "auto"
    texts = [name] if column in ("", "compressed-tensors") else [column, name]
    if column == "gptq_marlin" and "w4a16" in name:
        texts = [name]
    for text in texts:
        scheme = next((scheme for pattern, scheme in QUANTIZATIONS if re.search(pattern, text)), None)
        if scheme is not None:
            same = scheme == model.quantization or (scheme == "fp8" and model.quantization.startswith("fp8"))
            return "auto" if same else scheme
    return "auto"


def gpu_of(name: str, memory: str) -> tuple[Gpu, bool]:
    """GPU of a row, with the memory that its engine saw where the row states it."""
    visible = _visible_gib(memory) or _visible_gib_in_name(name)
    gpu, known = _catalog_gpu(name), True
    if gpu is None:
        gpu, known = get_gpu(ASSUMED_GPU), False
        marketing = re.search(r"(\d+)", memory) or re.search(r"(\d+) ?GB", name)
        if marketing and not visible:
            gib = float(marketing[1])
            return dataclasses.replace(gpu, name=name or memory, memory_gb=gib, memory_gib=gib), True
    if visible:
        listed = (visible * GIB + DRIVER_RESERVE_BYTES) / (1 - DRIVER_RESERVE_SHARE) / GIB
        listed = visible if gpu.vendor.upper() != "NVIDIA" else listed
        return dataclasses.replace(gpu, memory_gib=listed), True
    stated = re.match(r"\s*~?(\d+)\s*(?:GB)?\s*$", memory)
    if stated and abs(int(stated[1]) / gpu.memory_gb - 1) > 0.12:
        gib = float(stated[1])
        return dataclasses.replace(gpu, memory_gb=gib, memory_gib=gib), True
    return gpu, known


def gpu_class_in(notes: str) -> str:
    """Device size that the notes imply, when the row names no device: "80 GB-class"."""
    found = re.search(r"\b(\d+) ?GB-class", notes)
    return f"{found[1]}GB-class" if found else ""


def _visible_gib(text: str) -> float | None:
    """Memory that the engine saw: figures with decimals, or MiB; round figures are marketing."""
    mebibytes = re.match(r"\s*~?(\d+(?:\.\d+)?)\s*MiB", text)
    if mebibytes:
        return None  # nvidia-smi: what the driver lists, as the catalog does
    decimals = re.match(r"\s*~?(\d+\.\d+)", text)
    return float(decimals[1]) if decimals else None


def _visible_gib_in_name(name: str) -> float | None:
    found = re.search(r"(\d+\.\d+) ?Gi?B", name)
    return float(found[1]) if found else None


def _catalog_gpu(name: str) -> Gpu | None:
    plain = re.sub(r"\(.*?\)|-class|\bclass\b|mobile|sm\d+", " ", name, flags=re.IGNORECASE).strip()
    words = re.findall(
        r"[ABHLT]\d{1,3}S?\b|GH200|GB\d+|MI\d+X?|RTX (?:PRO )?[A]?\d{4}(?: Ada)?|RX \d+ XTX?|V100|A6000|\d090", name
    )
    for text in (name, plain, re.sub(r"\b\d+ ?GB\b", "", plain).strip(), *words):
        if not text:
            continue
        try:
            return get_gpu(text)
        except InvalidInput:
            continue
    return None


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
    return get_model(key)


@cache
def find_model_key(name: str) -> str | None:
    """Catalog id for a published name."""
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
    for pattern, key in CLASSES:
        match = re.search(pattern, name, re.IGNORECASE)
        if match:
            return key.format(*match.groups()) if "{}" in key else key
    return None


def _without_quantization(text: str) -> str:
    text = text.split("/")[-1]
    noise = r"[-_ .]?(fp8([-_](dynamic|block|static))?|nvfp4|mxfp4|w\d+a\d+|quantized|awq|gptq|int\d|\d ?bit|gguf|"
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
