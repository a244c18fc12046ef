"""What a published serving row ran, as a Scenario: the inputs with which a user would plan the same run.

A row of a benchmark table names some settings, its notes name others (a serve command, a chunk size,
attention data parallelism, how lengths were drawn), and the benchmark's own scripts publish more
(`accuracy/data/harness_settings.csv`). What nobody published stays at the engine's default. Nothing that was
measured is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy.cells import number_of, text_of
from planner.accuracy.harness import acceptance_of, trtllm_bench_batch
from planner.accuracy.names import find_engine_preset, find_gpu, find_model
from planner.catalog import get_engine, get_model, version_at
from planner.errors import InvalidInput
from planner.inputs import NEWEST, release_of
from planner.scenario import Scenario
from planner.tables import read_table

LEAST_RATE_RPS = 1e-6
#: tokens that a sequence gains per step with three drafts where nobody published it: an assumption
ASSUMED_TOKENS_PER_STEP = 2.7
LENGTH_SLACK_TOKENS = 16  # of the context beyond the longest request, where a row states no context


# What the scripts compute from a run's prompt length and concurrency.
_EXPRESSIONS: dict[str, Callable[[int, int], float]] = {
    "2*isl": lambda isl, users: 2 * isl,
    "concurrency": lambda isl, users: users,
    "max(8192, isl + concurrency + 64)": lambda isl, users: max(8192, isl + users + 64),
    "30 if concurrency >= 16 else 10": lambda isl, users: 30 if users >= 16 else 10,
}


class RowSkipped(ValueError):
    """A row that cannot be planned, with the reason that a reader would accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A published run: the scenario that a user would enter for it, and what its table calls throughput.

    `decode_only`: tokens per second count from each first token on (llama-bench tg and the like).
    """

    scenario: Scenario
    decode_only: bool = False


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
        if line["tp"] and number_of(row, "tp") != float(line["tp"]):
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
        published = re.search(r"Qwen3[^/]*-FP8", text_of(row, "model"))
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
    """Length fields of the scenario: fixed, uniform in a range, or exponential and cut, as the clients drew them."""
    notes = text_of(row, "notes")
    isl, osl = number_of(row, "isl"), number_of(row, "osl")
    if isl is None or osl is None:
        known = dataset_of(row)
        if known is None:
            raise RowSkipped("the row gives no prompt or output length, and names no dataset of known lengths")
        isl, osl = isl or float(known["prompt_tokens"]), osl or float(known["output_tokens"])
        return _exponential(isl, osl, float(known["max_prompt_tokens"]), float(known["max_output_tokens"]))
    isl, osl = max(1.0, isl), max(1.0, osl)
    if "RANDOM_RANGE_RATIO 0.8" in notes or "kimi-k2.5-gap" in notes or "397b-gap" in notes:
        # published lengths are the nominal upper end: drawn in 0.8 to 1.0 of it
        return _uniform(isl, osl, (0.8, 1.0), (0.8, 1.0))
    if "ShareGPT" in notes or (isl < 400 and osl < 300 and "random" not in notes and "bench serve" in notes):
        # conversations: about exponential, cut at the client's limit
        return _exponential(isl, osl, 5 * isl, 5 * osl)
    if "NVIDIA internal gap-analysis" in notes:
        # nothing is said of the draw; equal lengths would keep all requests in lockstep, which real ones are not
        return _uniform(isl, osl, (0.95, 1.05), (0.9, 1.1))
    if "uniform in [1,nominal]" in notes or "lengths uniform" in notes or "sgl-cookbook" in text_of(row, "source"):
        return _uniform(isl, osl, (0.0, 2.0), (0.0, 2.0))
    return {"lengths": "constant", "prompt_mean_tokens": isl, "output_mean_tokens": osl}


def _uniform(isl: float, osl: float, prompt: tuple[float, float], output: tuple[float, float]) -> dict[str, Any]:
    return {
        "lengths": "uniform",
        "prompt_mean_tokens": max(1.0, isl * sum(prompt) / 2),
        "output_mean_tokens": max(1.0, osl * sum(output) / 2),
        "prompt_spread": (prompt[1] - prompt[0]) / sum(prompt),
        "output_spread": (output[1] - output[0]) / sum(output),
    }


def _exponential(isl: float, osl: float, longest_prompt: float, longest_output: float) -> dict[str, Any]:
    return {
        "lengths": "exponential",
        "prompt_mean_tokens": _mean_before_cut(isl, longest_prompt),
        "output_mean_tokens": _mean_before_cut(osl, longest_output),
        "max_prompt_tokens": max(1, round(longest_prompt)),
        "output_limit_tokens": max(1, round(longest_output)),
    }


def _mean_before_cut(mean: float, longest: float) -> float:
    """Mean of the exponential law whose draws, cut at `longest`, have the mean given. [tokens]

    E[min(X, c)] = m (1 - exp(-c / m)), solved for m by bisection.
    """
    low, high = mean, 1e7
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if middle * -math.expm1(-longest / middle) < mean else (low, middle)
    return max(1.0, high)


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
    tp = int(number_of(row, "tp") or gpus)
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
    return {
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "attention_data_parallel_size": attention_dp,
        "expert_parallel": bool(moe and (ep > 1 or flags.get("expert_parallel", False) or attention_dp > 1)),
        "num_replicas": max(1, gpus // replica),
    }


def _workload(row: Mapping[str, Any], harness: dict[str, float | str]) -> dict[str, Any]:
    """Arrival fields of the scenario and the number of requests."""
    notes = text_of(row, "notes")
    arrival = text_of(row, "arrival")
    users = int(number_of(row, "concurrency") or 0)
    published = number_of(row, "n_requests")
    if "STATIC batching" in notes or "batch-1 first-token" in notes:
        return {"arrivals": "once", "num_requests": max(1, users)}
    if arrival == "poisson":
        rate = _rate_rps(row)
        if rate:
            open_loop = {"arrivals": "poisson", "demand": "rate", "rate_rps": rate, "peak_factor": 1.0}
            return open_loop | {"num_requests": int(published or 500)}
        # Without its rate an open loop can be read only as the most that the system serves.
    if arrival == "concurrency" or (not arrival and users):
        users = max(1, users)
        shared = re.search(r"\bbatch_size=(\d+)", notes)
        if shared and int(shared.group(1)) and users > int(shared.group(1)) * (number_of(row, "n_gpus") or users):
            users = int(shared.group(1))  # the published concurrency is that of many replicas together
        count = int(published or float(harness.get("requests_per_user", 10)) * users)
        return {"arrivals": "closed", "concurrent_users": users, "num_requests": max(count, 1)}
    known = dataset_of(row)
    usual = int(known["num_requests"]) if known and number_of(row, "isl") is None else 1000
    return {"arrivals": "once", "num_requests": int(published or usual)}


def _rate_rps(row: Mapping[str, Any]) -> float | None:
    """Stated rate; None where there is none, or an infinite one, which clients take for "all at once"."""
    if text_of(row, "request_rate_rps").lower() in ("inf", "infinity"):
        return None
    rate = number_of(row, "request_rate_rps")
    if rate and rate < LEAST_RATE_RPS:
        raise InvalidInput("request_rate_rps", rate, f"a rate of at least {LEAST_RATE_RPS:g} per second")
    return rate


def _version(row: Mapping[str, Any], family: str) -> str:
    """Release that ran: as the row says, else the one that was current at its date, else the newest."""
    stated = release_of(text_of(row, "engine_version"))
    if stated != NEWEST:
        return ".".join(map(str, stated))
    date = re.search(r"20\d\d-\d\d", text_of(row, "date"))
    return version_at(family, date.group(0)) if date else ""


def read_run(row: Mapping[str, Any]) -> MeasuredRun:
    """Read one published row.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row, as text or numbers.

    Returns
    -------
    MeasuredRun
        The run as a scenario.

    Raises
    ------
    RowSkipped
        When the shape of the model or the GPU is in no catalog, or the row lacks its workload.
    InvalidInput
        When a cell holds a number that no run can have, or the settings are not valid together.
    """
    model = find_model(text_of(row, "model"))
    if model is None:
        raise RowSkipped(f"the catalog has no shape for {text_of(row, 'model') or 'a model that is not stated'}")
    gpu = find_gpu(text_of(row, "gpu"))
    if gpu is None:
        raise RowSkipped(f"the catalog has no GPU {text_of(row, 'gpu') or '(not stated)'}")
    notes = text_of(row, "notes")
    if re.search(r"\bbeam(?:[ _-]?(?:width|search|size))?[ =]*\d+", notes, re.IGNORECASE):
        raise RowSkipped("beam search cannot be planned")
    engine = find_engine_preset(text_of(row, "engine"))
    family = get_engine(engine).family
    flags, harness = _serve_flags(row), harness_settings(row, family)
    decode_only = "prefill excluded" in notes or "pure decode" in notes
    fields: dict[str, Any] = {
        "title": text_of(row, "id")[:120],
        "model": model,
        "gpu": gpu,
        "engine": engine,
        "engine_version": _version(row, family),
        "weight_dtype": published_weight_dtype(row, model),
        "enable_prefix_caching": bool(float(harness.get("enable_prefix_caching", 1))),
        "offline": bool(float(harness.get("without_api", 0))),
        "exact_output_limit": True,
        "measured_requests": "all",
        "target_quantile": 0.5,
        **_parallelism(row, harness | flags, get_model(model).is_moe),
        **_workload(row, harness),
        **_lengths(row),
        **_engine_fields(row, flags, harness),
    }
    if decode_only:
        fields |= {"lengths": "constant", "prompt_mean_tokens": 1.0}
    fields["max_model_len"] = flags.get("max_model_len") or _context(fields, model)
    scenario = Scenario(**fields)
    if harness.get("tuned_batch"):
        batch, budget = trtllm_bench_batch(scenario)
        scenario = scenario.replace(
            max_num_seqs=scenario.max_num_seqs or batch,
            max_num_batched_tokens=scenario.max_num_batched_tokens or budget,
        )
    return MeasuredRun(scenario=scenario, decode_only=decode_only)


def _engine_fields(row: Mapping[str, Any], flags: dict[str, Any], harness: dict[str, float | str]) -> dict[str, Any]:
    """Engine settings that the row's flags state, else the benchmark's scripts."""
    said: dict[str, Any] = {**harness, **flags}
    kv = flags.get("kv_cache_dtype") or _KV_DTYPES.get(text_of(row, "kv_dtype").lower(), text_of(row, "kv_dtype"))
    fields: dict[str, Any] = {"kv_cache_dtype": str(kv or harness.get("kv_cache_dtype", "auto"))}
    for name, kind in (
        ("max_num_batched_tokens", int),
        ("max_num_seqs", int),
        ("gpu_memory_utilization", float),
        ("receive_interval_steps", int),
        ("stream_interval_tokens", int),
        ("moe_runner_backend", str),
    ):
        if said.get(name):
            fields[name] = kind(said[name])
    drafts = int(said.get("num_speculative_tokens", 0))
    if drafts:
        gained = float(harness.get("tokens_per_step", ASSUMED_TOKENS_PER_STEP))
        fields |= {"num_speculative_tokens": drafts, "speculative_acceptance": acceptance_of(drafts, gained)}
    return fields


_KV_DTYPES = {"f16": "fp16", "float16": "fp16", "bfloat16": "bf16"}


def _context(fields: dict[str, Any], model: str) -> int:
    """Context of a run that states none: its longest request, within the model's limit. [tokens]"""
    longest = 0.0
    for side, cut in (("prompt", "max_prompt_tokens"), ("output", "output_limit_tokens")):
        spread = fields.get(f"{side}_spread", 0.0) if fields["lengths"] == "uniform" else 0.0
        longest += fields.get(cut) or fields[f"{side}_mean_tokens"] * (1 + spread)
    return max(16, min(math.ceil(longest) + LENGTH_SLACK_TOKENS, get_model(model).longest_context))
