"""Reading a published start-up log: its model, GPU and settings in the planner's terms.

Only inputs are read: never what the engine printed. Settings that a row leaves open stay open, so
that the engine's own defaults apply.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from planner.accuracy.memory_gpus import assumed_gpu, device_of_budget, gpu_class_in, gpu_of
from planner.accuracy.memory_names import find_draft, shape_of, weight_dtype_of
from planner.catalog import version_at
from planner.inputs import MAMBA_FULL_MEMORY_RATIO, EngineSettings, Gpu, Parallelism
from planner.memory import ollama_context_tokens, visible_memory_bytes
from planner.model import ModelShape, weight_bytes_by_group, with_media, with_state_dtype
from planner.units import GIB

FAMILY_OF_ENGINE = (("sglang", "sglang"), ("llama.cpp", "llamacpp"), ("ollama", "llamacpp"), ("tensorrt", "trtllm"),
                    ("tgi", "tgi"), ("vllm", "vllm"))  # fmt: skip
DFLASH_TOKENS = 7  # blocks of 8, one of them accepted before (vLLM's recipes)
#: a pool that shrinks with the length: prompts are profiled whole, so they are not chunked
WHOLE_PROMPTS = re.compile(r"KV shrank\b.*\bwhen max_model_len grew|no[-_]enable[-_]chunked[-_]prefill")
WITHOUT_PREFIXES = re.compile(
    r"no prefix caching|prefix caching (?:is )?(?:off|disabled)|prefix caching requested but disabled|"
    r"no[-_]enable[-_]prefix[-_]caching|enable_prefix_caching=False"
)
WITHOUT_ASYNC = re.compile(r"no[-_]async[-_]scheduling|async[-_]scheduling[= ]+(?:False|off)", re.IGNORECASE)
UNIFIED_CACHE = re.compile(r"kv[-_]unified|unified KV", re.IGNORECASE)
STATE_DTYPE = re.compile(r"mamba[-_]ssm(?:[-_]cache)?[-_]dtype[= ]+(float32|bfloat16|float16)")
OFFLINE = re.compile(r"\bLLM\(|\bLLM class\b|\boffline inference\b")
WITHOUT_VISION = re.compile(r"no vision|language[-_]model[-_]only|limit[-_]mm[-_]per[-_]prompt\S*\Wimage\W{1,3}0\b")
NO_VIDEO = re.compile(r"limit[-_]mm[-_]per[-_]prompt[^;|]{0,60}?video\W{1,4}0\b")
#: flags and words of rows that move hashed n-gram tables away from where the engine puts them
NGRAMS_ON_HOST = re.compile(
    r"PLE\b[^;.]{0,20}(?:mmap|NVMe|\bfile\b|\bRAM\b|host)|(?<!no-)ple-offload-embedding", re.IGNORECASE
)
NGRAMS_ON_GPU = re.compile(r"no-ple-offload-embedding|VLLM_PLE_CPU_OFFLOAD=0|cpu_offload\W{1,3}false", re.IGNORECASE)
STATE_PREFIXES_ASKED = re.compile(
    r"(?<!no )prefix caching(?! (?:is )?(?:off|disabled))|enable[-_]prefix[-_]caching(?!=False)"
)
UNTAGGED = re.compile(r"\bv?0\.1\.dev\S*")


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
    draft_model: ModelShape | None = None
    occupied_bytes: float = 0.0


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
    model = with_media(
        model, "none" if WITHOUT_VISION.search(notes) else "images" if NO_VIDEO.search(notes) else "auto"
    )
    states = STATE_DTYPE.search(notes)
    model = with_state_dtype(model, states[1]) if states else model
    gpu, known = gpu_of(row.get("gpu", "") or gpu_class_in(notes), row.get("gpu_mem_gib", ""))
    engine, parallelism = engine_of(row, notes), parallelism_of(row)
    weight_dtype = weight_dtype_of(row, model)
    if not known:
        gpu = device_of_budget(row, engine) or assumed_gpu(model, weight_dtype, parallelism)
    if weight_dtype == "auto" and not row.get("weight_quant") and known and engine.family in ("vllm", "sglang"):
        share = engine.gpu_memory_utilization or 0.9
        weight_dtype = narrowest_needed(model, gpu, parallelism, share)
        if weight_dtype == "nvfp4":  # by whom is not known: with the head that the scheme leaves in 16 bits
            model = dataclasses.replace(model, quantization="nvfp4", group_bits=(("lm_head", 16.0),))
    return MemoryCase(
        model=model,
        gpu=gpu,
        gpu_known=known,
        engine=engine,
        parallelism=parallelism,
        max_model_len=length_of(row, notes, model, gpu),
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_dtype_of(row, notes),
        draft_model=find_draft(notes, model),
        occupied_bytes=occupied_of(f"{notes} {row.get('outcome_detail', '')}", gpu),
    )


def engine_of(row: dict[str, str], notes: str) -> EngineSettings:
    """Settings of a row: its columns first, then flags in free text; what neither says stays open."""
    family = family_of(row.get("engine", ""))
    version = version_of(row, family)
    without_latent = re.search(r"no MLA path|without latent", row.get("model", "") + notes, re.IGNORECASE)
    share = row.get("gpu_memory_utilization", "") or flag_text(notes, "gpu[-_]memory[-_]utilization|mem[-_]fraction")
    lora = re.search(r"lora enabled|enable[-_]lora", notes, re.IGNORECASE)
    return EngineSettings(
        name="ollama" if "ollama" in row.get("engine", "").lower() else family,
        family=family,
        version=version,
        use_v1=core_of(version),
        latent_cache=not without_latent and "ollama" not in row.get("engine", "").lower(),
        gpu_memory_utilization=utilization_of(share, notes),
        max_num_seqs=first_integer(row.get("max_num_seqs", ""))
        or flag_integer(notes, "max[-_]num[-_]seqs|max[-_]running[-_]requests|num[-_]parallel")
        or parallel_slots(row),
        max_num_batched_tokens=first_integer(row.get("max_num_batched_tokens", ""))
        or flag_integer(notes, "max[-_]num[-_]batched[-_]tokens|chunked[-_]prefill[-_]size"),
        block_size=block_size_of(row, family, notes),
        enable_chunked_prefill=not WHOLE_PROMPTS.search(notes),
        async_scheduling=not WITHOUT_ASYNC.search(notes),
        offline=bool(OFFLINE.search(notes)),
        kv_unified=family == "llamacpp" and bool(UNIFIED_CACHE.search(notes + row.get("max_model_len", ""))),
        cuda_graphs=not ("true" in row.get("enforce_eager", "").lower() or "enforce-eager" in notes),
        num_speculative_tokens=speculative_tokens(notes),
        enable_prefix_caching=not WITHOUT_PREFIXES.search(notes),
        cache_state_prefixes=True if STATE_PREFIXES_ASKED.search(notes) else None,
        max_state_slots=flag_integer(notes, "max[-_]mamba[-_]cache[-_]size") or _state_slots_in_words(notes),
        mamba_full_memory_ratio=flag_number(notes, "mamba[-_]full[-_]memory[-_]ratio") or MAMBA_FULL_MEMORY_RATIO,
        max_loras=flag_integer(notes, "max[-_]loras") or _slots_in_words(notes) or (1 if lora else 0),
        max_lora_rank=flag_integer(notes, "max[-_]lora[-_]rank") or 16,
        kv_offload_gib=float(flag_integer(notes, "kv[-_]offloading[-_]size") or 0),
        ngram_on_gpu=True if NGRAMS_ON_GPU.search(notes) else False if NGRAMS_ON_HOST.search(notes) else None,
    )


def core_of(version: str) -> bool | None:
    """Whether a version names vLLM's second engine core, or the first; None when it says neither."""
    return True if "V1" in version else False if "V0" in version else None


def version_of(row: dict[str, str], family: str) -> str:
    """Version of a row; where it names none, the newest release at the date that it names, or was posted.

    Builds without tags call themselves 0.1.dev, and NVIDIA's containers are numbered by year and month.
    """
    stated = row.get("version", "")
    container = re.search(r"(?<![\d.])(2[4-9])\.(0[1-9]|1[0-2])\b", stated)
    if container:
        stated = f"20{container[1]}-{container[2]}-01 build"
    elif re.search(r"\d+\.\d+", stated) and not UNTAGGED.search(stated):
        return stated
    else:
        stated = UNTAGGED.sub("build", stated)
    dated = re.search(r"20\d\d-\d\d(?:-\d\d)?", f"{stated} {row.get('date', '')}")
    if dated is None:
        return stated
    day = dated[0] if len(dated[0]) == 10 else f"{dated[0]}-28"
    return f"{version_at(family, day)} {stated}".strip()


def length_of(row: dict[str, str], notes: str, model: ModelShape, gpu: Gpu) -> int:
    """Longest sequence of a row: stated, or the engine's default (the model's limit; Ollama's by memory)."""
    stated = row.get("max_model_len", "")
    per_slot = re.search(r"slots? x (\d+)", stated)
    if per_slot:
        return int(per_slot[1])
    given = first_integer(stated) or flag_integer(notes, "context-length|max[-_]model[-_]len|num_ctx|ctx-size")
    limit = model.max_position_embeddings
    if given is None and "ollama" in row.get("engine", "").lower():
        return ollama_context_tokens(gpu, limit)
    return given or limit


def parallel_slots(row: dict[str, str]) -> int | None:
    """Slots of llama.cpp: "4 slots x 8192"."""
    found = re.search(r"(\d+) slots? x \d+", row.get("max_model_len", ""))
    return int(found[1]) if found else None


def occupied_of(text: str, gpu: Gpu) -> float:
    """Memory that other processes hold, where a row says how much was free before the start."""
    found = re.search(r"[Ff]ree memory on device[^(]*\((\d+\.?\d*)/(\d+\.?\d*) ?GiB\)", text)
    if found:
        return max(0.0, float(found[2]) - float(found[1])) / float(found[2]) * visible_memory_bytes(gpu)
    stated = re.search(r"other process\w*[^.;]{0,40}?(\d+\.?\d*) ?GiB", text)
    return float(stated[1]) * GIB if stated else 0.0


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


def any_integer(text: str) -> int | None:
    """First whole number of a cell: "TP4", "8 (2 nodes)"."""
    found = re.search(r"\d+", text)
    return int(found[0]) if found else None


def flag_integer(text: str, name: str) -> int | None:
    """Whole number after a flag or setting in free text."""
    found = re.search(rf"(?:{name})[= ]+(\d+)", text)
    return int(found[1]) if found else None


def flag_number(text: str, name: str) -> float | None:
    """Number after a flag or setting in free text."""
    found = re.search(rf"(?:{name})[= ]+(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found else None


def flag_text(text: str, name: str) -> str:
    """Word after a flag or setting in free text, "" when it is not there."""
    found = re.search(rf"(?:{name})[-_\w]*[= ]+(\S+)", text)
    return found[1] if found else ""


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


def _state_slots_in_words(text: str) -> int | None:
    found = re.search(r"(\d+) mamba slots|mamba slots (\d+)", text)
    return int(found[1] or found[2]) if found else None


def _slots_in_words(text: str) -> int:
    found = re.search(r"(\d+) adapter slots", text)
    return int(found[1]) if found else 0


def family_of(engine: str) -> str:
    """Engine family of a published name."""
    text = engine.lower()
    return next((family for word, family in FAMILY_OF_ENGINE if word in text), "generic")


def speculative_tokens(text: str) -> int:
    """Drafted tokens of multi-token prediction, 0 when it is off."""
    if re.search(r"\bno (?:MTP|speculation)\b|without MTP|MTP (?:off|stripped|disabled)", text, re.IGNORECASE):
        return 0
    stated = re.search(r"num_speculative_tokens[\"': =]+(\d+)|\bMTP (\d+)\b|draft-n-max (\d+)", text, re.IGNORECASE)
    if stated:
        return int(next(filter(None, stated.groups())))
    whole = re.search(r"draft[- _]tokens[= ]+(\d+)|\b(\d+) draft tokens", text)  # SGLang counts the sampled one, too
    if whole:
        return max(1, int(whole[1] or whole[2]) - 1)
    if re.search(r"\bdflash2?\b", text, re.IGNORECASE):
        return DFLASH_TOKENS
    return 1 if re.search(r"\bMTP\b", text) else 0


def parallelism_of(row: dict[str, str]) -> Parallelism:
    """Tensor, pipeline, data and expert parallelism of a row."""
    text = row.get("dp_ep", "")
    stated = re.search(r"DP(?: attention)?\s?(\d+)", text)
    data = max(1, int(stated[1])) if stated else 1
    attention_only = "attention" in text.lower()
    flags = f"{row.get('other_flags', '')} {text}"
    tp = any_integer(row.get("tp", "")) or flag_integer(flags, "tensor[-_]parallel[-_]size|--tp(?:-size)?|-tp")
    pp = first_integer(row.get("pp", "")) or flag_integer(flags, "pipeline[-_]parallel[-_]size|--pp(?:-size)?|-pp") or 1
    if tp is None and family_of(row.get("engine", "")) == "llamacpp":  # whole layers on each device
        tp, pp = 1, max(pp, first_integer(row.get("n_gpus", "")) or 1)
    if tp is None:  # left open: all GPUs of a replica side by side, as people run a model on several
        devices = first_integer(row.get("n_gpus", "")) or 1
        split = family_of(row.get("engine", "")) in ("vllm", "sglang", "trtllm", "tgi")
        tp = max(1, devices // (pp * data)) if split else 1
    if attention_only and data > 1:
        tp = max(1, tp // data)
    context = re.search(
        r"(?:decode[-_]context[-_]parallel(?:[-_]size)?|dcp(?:[-_]size)?)[=: ]*(\d+)", flags, re.IGNORECASE
    )
    dcp = int(context[1]) if context else 1
    return Parallelism(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        expert_parallel="EP" in text,
        attention_data_parallel_size=data,
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
