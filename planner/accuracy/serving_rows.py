"""What a published serving row ran: model, GPU, engine settings, parallelism, dtypes and workload.

A row of a benchmark table names some settings, its notes name others (a serve command, a chunk size,
attention data parallelism, how lengths were drawn), and the benchmark's own scripts publish more
(`accuracy/data/harness_settings.csv`). What nobody published is left None: the engine's default applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy.cells import number_of, text_of
from planner.accuracy.names import find_engine, find_gpu, find_model, version_tuple
from planner.errors import InvalidInput
from planner.tables import read_table

LEAST_RATE_RPS = 1e-6
#: tokens that a sequence gains per step with three drafts where nobody published it: an assumption
ASSUMED_TOKENS_PER_STEP = 2.7


# What the scripts compute from a run's prompt length and concurrency.
_EXPRESSIONS: dict[str, Callable[[int, int], float]] = {
    "2*isl": lambda isl, users: 2 * isl,
    "concurrency": lambda isl, users: users,
    "max(8192, isl + concurrency + 64)": lambda isl, users: max(8192, isl + users + 64),
    "30 if concurrency >= 16 else 10": lambda isl, users: 30 if users >= 16 else 10,
}


# The release that was current from a month on, for rows that name none (or a nightly build).
_RELEASES: dict[str, tuple[tuple[float, tuple[int, ...]], ...]] = {
    "vllm": ((2024.5, (0, 5)), (2025.0, (0, 7)), (2025.6, (0, 10)), (2025.75, (0, 11)), (2026.1, (0, 15))),
    "sglang": ((2025.5, (0, 5, 0)), (2025.8, (0, 5, 5)), (2026.1, (0, 5, 8)), (2026.3, (0, 5, 10))),
    "trtllm": ((2024.5, (0, 14)), (2025.0, (0, 17)), (2025.6, (1, 0)), (2025.9, (1, 1)), (2026.0, (1, 2))),
}  # fmt: skip


class RowSkipped(ValueError):
    """A row that cannot be predicted, with the reason that a reader would accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCase:
    """One published run in the planner's terms; None = not published, the engine's default applies.

    `spread_low` and `spread_high` bound uniformly drawn lengths as fractions of `prompt_tokens` and
    `output_tokens`; equal bounds mean fixed lengths. `arrival` is one of burst (all at once), static
    (one batch, nobody joins), closed (at most `concurrency` in flight) and poisson.
    """

    id: str
    model: str
    gpu: str
    engine: str
    version: tuple[int, ...]
    year: float
    weight_dtype: str
    kv_cache_dtype: str
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    expert_parallel: bool = False
    attention_data_parallel_size: int = 1
    replicas: int = 1
    num_gpus: int = 1
    any_width: bool = False  # nobody published how the GPUs were divided: replicas of the width that serves most
    beams: int = 1  # sequences that one request decodes side by side (beam search)
    arrival: str = "burst"
    concurrency: int = 0
    rate_rps: float = 0.0
    num_requests: int = 0
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0
    prompt_low: float = 1.0
    prompt_high: float = 1.0
    output_low: float = 1.0
    output_high: float = 1.0
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    memory_share_stated: bool = False  # by the row itself, not by its harness
    max_model_len: int | None = None
    receive_interval_steps: int = 1
    stream_interval_tokens: int = 1  # tokens per message after the first
    moe_runner_backend: str = "auto"
    tuned_batch: bool = False  # the harness sizes batch and token budget from the memory left for the KV cache
    with_api: bool = True  # requests pass an API server (not a benchmark that calls the engine directly)
    decode_only: bool = False  # llama-bench tg and the like: the prompt is not part of the time
    num_speculative_tokens: int = 0
    tokens_per_step: float = 1.0


def _names(part: str, published: str) -> bool:
    """Whether a published name contains a part, or begins with it (`^`)."""
    name = published.lower()
    return name.startswith(part[1:].lower()) if part.startswith("^") else part.lower() in name


def harness_settings(row: Mapping[str, Any], engine: str) -> dict[str, float | str]:
    """Collect what the benchmark's own scripts set for a row.

    Returns
    -------
    dict
        Setting name to value; what depends on the prompt length or concurrency is worked out.
    """
    isl, users = int(number_of(row, "isl") or 0), int(number_of(row, "concurrency") or 0)
    out: dict[str, float | str] = {}
    for line in read_table("accuracy/data/harness_settings.csv"):
        wanted = (("source", "source"), ("model", "model"), ("gpu", "gpu"), ("weights", "weight_dtype"))
        if line["engine"] not in ("", engine):
            continue
        if not all(_names(line[key], text_of(row, column)) for key, column in wanted):
            continue
        if line["version"] and line["version"] != text_of(row, "engine_version"):
            continue
        value = line["value"]
        if value in _EXPRESSIONS:
            out[line["setting"]] = _EXPRESSIONS[value](isl, users)
        else:
            out[line["setting"]] = value if value[0].isalpha() else float(value)
    return out


def published_weight_dtype(row: Mapping[str, Any], model: str) -> str:
    """Read a row's weight precision as a scheme of `planner.model`."""
    text = text_of(row, "weight_dtype").lower()
    notes = text_of(row, "notes")
    engine = text_of(row, "engine").lower()
    gemm = re.search(r"\bgemm=(\w+)", notes)
    if "gpt-oss" in model and text not in ("bf16", "fp16"):
        return "mxfp4"
    if gemm and gemm.group(1) == "fp8_block":
        return "fp8_block"
    if "fp8" in text:
        native = any(name in model for name in ("DeepSeek", "Kimi-K2-", "MiniMax", "Qwen3.5", "GLM-5"))
        published = re.search(r"(Qwen3|GLM)[^/]*-FP8", text_of(row, "model"))
        return "fp8_block" if native or published else "fp8"
    if "mxfp4" in text:
        return "mxfp4"
    if "fp4" in text:
        return "nvfp4"
    if "eetq" in text or text == "int8":
        return "gptq_int8"
    if "q4_k_m" in text:
        return "gguf_q4_k_m"
    if "4-bit" in text:
        return "gguf_q4_k_m" if "llama.cpp" in engine else "int4_g128"
    if "awq" in text:
        return "awq_int4"
    if "int4" in text:
        return "int4_g32" if "Kimi" in model else "int4_g128"
    if text in ("f16", "fp16"):
        return "fp16"
    return "bf16"


def dataset_of(row: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Find the dataset that a row names, with the mean lengths known of it; None when it names none.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row.

    Returns
    -------
    mapping or None
        A line of `accuracy/data/dataset_lengths.csv`.
    """
    for column in ("notes", "model", "source"):
        text = text_of(row, column).lower()
        for line in read_table("accuracy/data/dataset_lengths.csv"):
            if line["keyword"] in text or line["keyword"] in re.sub(r"[ _-]", "", text):
                return line
    return None


def _lengths(row: Mapping[str, Any]) -> dict[str, Any]:
    """Mean lengths and the bounds of their draw, as fractions of the mean."""
    notes = text_of(row, "notes")
    isl, osl = number_of(row, "isl"), number_of(row, "osl")
    if isl is None or osl is None:
        known = dataset_of(row)
        if known is None:
            raise RowSkipped("the row gives no prompt or output length, and names no dataset of known lengths")
        isl, osl = isl or float(known["prompt_tokens"]), osl or float(known["output_tokens"])
        return {
            "prompt_tokens": isl,
            "output_tokens": osl,
            "prompt_low": -1.0,
            "prompt_high": float(known["max_prompt_tokens"]) / isl,
            "output_low": -1.0,
            "output_high": float(known["max_output_tokens"]) / osl,
        }
    out = {"prompt_tokens": isl, "output_tokens": max(1.0, osl)}
    if "RANDOM_RANGE_RATIO 0.8" in notes or "kimi-k2.5-gap" in notes or "397b-gap" in notes:
        # published lengths are the nominal upper end: drawn in 0.8 to 1.0 of it
        out |= {"prompt_low": 0.8, "prompt_high": 1.0, "output_low": 0.8, "output_high": 1.0}
    elif "ShareGPT" in notes or (isl < 400 and osl < 300 and "random" not in notes and "bench serve" in notes):
        # conversations: about exponential, cut at the client's limit
        out |= {"prompt_low": -1.0, "prompt_high": 5.0, "output_low": -1.0, "output_high": 5.0}
    elif "NVIDIA internal gap-analysis" in notes:
        # nothing is said of the draw; requests that all end together for ever would need exact lengths and times
        out |= {"prompt_low": 0.95, "prompt_high": 1.05, "output_low": 0.9, "output_high": 1.1}
    elif "uniform in [1,nominal]" in notes or "lengths uniform" in notes or "sgl-cookbook" in text_of(row, "source"):
        out |= {"prompt_low": 0.0, "prompt_high": 2.0, "output_low": 0.0, "output_high": 2.0}
    return out


def _serve_flags(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings that a row's notes state: serve flags, the case's chunk size, attention-DP labels."""
    notes = text_of(row, "notes")
    out: dict[str, Any] = {}
    for flag, name, kind in (
        ("max-num-batched-tokens", "max_num_batched_tokens", int),
        ("chunked-prefill-size", "max_num_batched_tokens", int),
        ("max-num-seqs", "max_num_seqs", int),
        ("max-running-requests", "max_num_seqs", int),
        ("max-model-len", "max_model_len", int),
        ("gpu-memory-utilization", "gpu_memory_utilization", float),
        ("mem-fraction-static", "gpu_memory_utilization", float),
    ):
        # the case label of a sweep comes first in the notes and overrides the serve command
        found = re.search(rf"--{flag}[ =](\d+(?:\.\d+)?)", notes)
        if found and kind(float(found.group(1))) > 0:
            out.setdefault(name, kind(float(found.group(1))))
    backend = re.search(r"--moe-runner-backend[ =](\w+)", notes)
    if backend:
        out["moe_runner_backend"] = backend.group(1)
    if "--kv-cache-dtype fp8" in notes:
        out["kv_cache_dtype"] = "fp8"
    if re.search(r"--enable-expert-parallel|--ep-size [2-9]|--ep [2-9]|expert-parallel enabled", notes):
        out["expert_parallel"] = True
    if re.search(r"SPECULATIVE|--speculative-algorithm|\bMTP\b", notes):
        out["num_speculative_tokens"] = 3
    width = re.search(r"attention-DP(\d+)", notes) or re.search(r"\battn_dp=(\d+)", notes)
    if width and int(width.group(1)) > 1:
        out["attention_data_parallel_size"] = int(width.group(1))
    elif "--enable-dp-attention" in notes:
        groups = re.search(r"--(?:dp|dp-size|data-parallel-size)[ =](\d+)", notes)
        out["attention_data_parallel_size"] = int(groups.group(1)) if groups else 0  # 0: as wide as the TP group
    return out


def _parallelism(row: Mapping[str, Any], flags: dict[str, Any], moe: bool) -> dict[str, Any]:
    """Widths of each kind of parallelism from the row's columns and notes."""
    notes = text_of(row, "notes")
    gpus = int(number_of(row, "n_gpus") or number_of(row, "tp") or 1)
    stated = number_of(row, "tp")
    tp = int(stated or gpus)
    pp = int(number_of(row, "pp") or 1)
    ep = int(number_of(row, "ep") or 1)
    if tp > 1 and re.search(r"llama\.cpp|exllama", text_of(row, "engine"), re.IGNORECASE):
        tp, pp = 1, tp * pp  # these split a model by layers: one GPU works at a time for a single stream
    attention_dp = flags.get("attention_data_parallel_size", 1)
    expert_tp = re.search(r"\bmoe_tp=(\d+)", notes)
    if moe and expert_tp and attention_dp == 1 and int(expert_tp.group(1)) * ep > tp:
        # experts spread wider than attention: the rest of the width is attention data parallelism
        attention_dp = int(expert_tp.group(1)) * ep // tp
        tp *= attention_dp
    if "attention-DP" in notes or ("DEP" in notes and ep > 1):
        attention_dp, tp = ep, 1
    elif attention_dp == 0:
        attention_dp, tp = tp, 1
    elif moe and "enable_attention_dp: true" in notes and tp > 1:
        attention_dp, ep, tp = tp, tp, 1
    elif attention_dp > 1:
        tp = max(1, tp // attention_dp)
    replica = tp * pp * attention_dp
    open_width = not stated and replica == gpus > 1 and pp == 1 and attention_dp == 1 and ep == 1
    return {
        "any_width": open_width,
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "attention_data_parallel_size": attention_dp,
        "expert_parallel": bool(moe and (ep > 1 or flags.get("expert_parallel", False) or attention_dp > 1)),
        "replicas": max(1, gpus // replica),
        "num_gpus": max(gpus, replica),
    }


def _workload(row: Mapping[str, Any], harness: dict[str, float | str]) -> dict[str, Any]:
    """Arrival pattern and number of requests."""
    notes = text_of(row, "notes")
    arrival = text_of(row, "arrival")
    users = int(number_of(row, "concurrency") or 0)
    published = number_of(row, "n_requests")
    if "STATIC batching" in notes or "batch-1 first-token" in notes:
        return {"arrival": "static", "concurrency": max(1, users), "num_requests": max(1, users)}
    if arrival == "poisson":
        rate = _rate_rps(row)
        if rate:
            return {"arrival": "poisson", "rate_rps": rate, "num_requests": int(published or 500)}
        # Without its rate an open loop can be read only as the most that the system serves.
    if arrival == "concurrency" or (not arrival and users):
        users = max(1, users)
        shared = re.search(r"\bbatch_size=(\d+)", notes)
        if shared and int(shared.group(1)) and users > int(shared.group(1)) * (number_of(row, "n_gpus") or users):
            users = int(shared.group(1))  # the published concurrency is that of many replicas together
        count = int(published or float(harness.get("requests_per_user", 10)) * users)
        return {"arrival": "closed", "concurrency": users, "num_requests": max(count, 1)}
    known = dataset_of(row)
    usual = int(known["num_requests"]) if known and number_of(row, "isl") is None else 1000
    return {"arrival": "burst", "num_requests": int(published or usual)}


def _rate_rps(row: Mapping[str, Any]) -> float | None:
    """Stated rate; None where there is none, or an infinite one, which clients take for "all at once"."""
    if text_of(row, "request_rate_rps").lower() in ("inf", "infinity"):
        return None
    rate = number_of(row, "request_rate_rps")
    if rate and rate < LEAST_RATE_RPS:
        raise InvalidInput("request_rate_rps", rate, f"a rate of at least {LEAST_RATE_RPS:g} per second")
    return rate


def release_at(engine: str, year: float) -> tuple[int, ...]:
    """Release of an engine that was current at a date, () when the date is not known."""
    since = [version for start, version in _RELEASES.get(engine, ()) if year and year + 1e-6 >= start]
    return since[-1] if since else ()


def read_case(row: Mapping[str, Any], *, is_moe: Any = None) -> ServingCase:
    """Read one published row.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row, as text or numbers.
    is_moe : callable, optional
        Catalog model name → whether it is a mixture of experts (attention data parallelism of
        TensorRT-LLM's published MoE runs applies only to those).

    Returns
    -------
    ServingCase
        The run in the planner's terms.

    Raises
    ------
    RowSkipped
        When the shape of the model or the GPU is in no catalog, or the row lacks its workload.
    InvalidInput
        When a cell holds a number that no run can have.
    """
    model = find_model(text_of(row, "model"))
    if model is None:
        raise RowSkipped(f"the catalog has no shape for {text_of(row, 'model') or 'a model that is not stated'}")
    gpu = find_gpu(text_of(row, "gpu"))
    if gpu is None:
        raise RowSkipped(f"the catalog has no GPU {text_of(row, 'gpu') or '(not stated)'}")
    engine = find_engine(text_of(row, "engine"))
    flags = _serve_flags(row)
    harness = harness_settings(row, engine)
    date = re.search(r"(20\d\d)-(\d\d)", text_of(row, "date"))
    year = int(date.group(1)) + (int(date.group(2)) - 1) / 12 if date else 0.0
    drafts = int(flags.get("num_speculative_tokens", harness.get("num_speculative_tokens", 0)))
    settings: dict[str, Any] = {}
    for name, kind in (("max_num_batched_tokens", int), ("max_num_seqs", int), ("gpu_memory_utilization", float)):
        value = flags.get(name, harness.get(name))
        settings[name] = kind(value) if value else None
    beams = re.search(r"\bbeam(?:[ _-]?(?:width|search|size))?[ =]*(\d+)", text_of(row, "notes"), re.IGNORECASE)
    kv = flags.get("kv_cache_dtype") or text_of(row, "kv_dtype").replace("f16", "fp16").replace("pfp16", "p16")
    return ServingCase(
        id=text_of(row, "id"),
        model=model,
        gpu=gpu,
        engine=engine,
        version=version_tuple(text_of(row, "engine_version")) or release_at(engine, year),
        year=year,
        weight_dtype=published_weight_dtype(row, model),
        kv_cache_dtype=str(kv or harness.get("kv_cache_dtype", "auto")),
        max_model_len=flags.get("max_model_len"),
        receive_interval_steps=int(harness.get("receive_interval_steps", 1)),
        decode_only="prefill excluded" in text_of(row, "notes") or "pure decode" in text_of(row, "notes"),
        stream_interval_tokens=int(harness.get("stream_interval_tokens", 1)),
        with_api=not harness.get("without_api"),
        tuned_batch=bool(harness.get("tuned_batch")),
        memory_share_stated="gpu_memory_utilization" in flags,
        moe_runner_backend=str(flags.get("moe_runner_backend") or harness.get("moe_runner_backend", "auto")),
        beams=max(1, min(64, int(beams.group(1)))) if beams else 1,
        num_speculative_tokens=drafts,
        tokens_per_step=float(harness.get("tokens_per_step", ASSUMED_TOKENS_PER_STEP)) if drafts else 1.0,
        **settings,
        **_parallelism(row, flags, bool(is_moe and is_moe(model))),
        **_workload(row, harness),
        **_lengths(row),
    )
