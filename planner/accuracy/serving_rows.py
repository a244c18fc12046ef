"""What a published serving row ran, as a Scenario: the inputs with which a user would plan the same run.

A row names some settings in its columns and others in its notes (`accuracy/data/serving_patterns.csv` says how), and
the benchmark's own scripts publish more (`accuracy/data/harness_settings.csv`). What nobody published stays at the
engine's default. Nothing that was measured is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy.cells import number_of, text_of
from planner.accuracy.harness import acceptance_of, harness_settings, trtllm_bench_batch
from planner.accuracy.names import find_engine_preset, find_gpu, find_model, scheme_named
from planner.accuracy.row_reader import read_fields
from planner.catalog import get_engine, get_model, version_at
from planner.errors import InvalidInput
from planner.inputs import NEWEST, release_of
from planner.scenario import Scenario, fields_by_name
from planner.tables import read_table

SETTINGS, DATASETS = "accuracy/data/serving_patterns.csv", "accuracy/data/dataset_lengths.csv"
#: what the notes say besides fields of the Scenario, and its kind
FACTS = {
    "refusal": "text",
    "attention_dp": "text",
    "moe_tp": "count",
    "by_layers": "flag",
    "static_batch": "flag",
    "users_per_replica": "count",
    "decode_only": "flag",
    "drawn": "text",
    "answer_limit": "count",
    "repeated_prompt": "flag",
    "drafting": "flag",
    "tokens_per_step": "number",
}
#: how benchmark clients run and report: answers of the exact length, every request counted
CLIENT = {"exact_output_limit": True, "measured_requests": "all", "target_quantile": 0.5}
LEAST_RATE_RPS = 1e-6
LENGTH_SLACK_TOKENS = 16  # of the context beyond the longest request, where a row states no context
CUT_AT_MEANS = 5  # where clients cut conversations whose limit is not published


class RowSkipped(ValueError):
    """A row that cannot be planned, with the reason that a reader would accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A published run: the scenario that a user would enter for it, and what its table calls throughput.

    `decode_only`: tokens per second count from each first token on (llama-bench tg and the like).
    """

    scenario: Scenario
    decode_only: bool = False


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
    model, gpu = _known("shape for", "model", row, find_model), _known("GPU", "gpu", row, find_gpu)
    engine = find_engine_preset(text_of(row, "engine"))
    family = get_engine(engine).family
    cells = {str(name): text_of(row, name) for name in row} | {"catalog": model}
    sizes = (int(number_of(row, name) or 0) for name in ("isl", "osl", "concurrency"))
    said = harness_settings(cells, family, *sizes) | read_fields(cells, SETTINGS, FACTS)
    if "refusal" in said:
        raise RowSkipped(said["refusal"])
    fields = {
        **CLIENT,
        "title": text_of(row, "id")[:120],
        "model": model,
        "gpu": gpu,
        "engine": engine,
        "engine_version": _version(row, family),
        "weight_dtype": scheme_named(cells.get("weight_dtype", ""), cells["model"]) or "bf16",
        **{name: value for name, value in said.items() if name in fields_by_name()},
        **_parallelism(row, said, is_moe=get_model(model).is_moe),
        **_workload(row, said),
        **_lengths(row, said),
    }
    fields |= _drafting(said)
    if said.get("repeated_prompt"):
        fields["shared_prefix_tokens"] = round(fields["prompt_mean_tokens"])
    fields.setdefault("max_model_len", _context(fields, model))
    scenario = Scenario(**fields)
    if said.get("tuned_batch"):
        batch, budget = trtllm_bench_batch(scenario)
        scenario = scenario.replace(
            max_num_seqs=scenario.max_num_seqs or batch,
            max_num_batched_tokens=scenario.max_num_batched_tokens or budget,
        )
    return MeasuredRun(scenario=scenario, decode_only=bool(said.get("decode_only")))


def _known(what: str, column: str, row: Mapping[str, Any], find: Callable[[str], str | None]) -> str:
    published = text_of(row, column)
    found = find(published)
    if found is None:
        raise RowSkipped(f"the catalog has no {what} {published or '(not stated)'}")
    return found


def _version(row: Mapping[str, Any], family: str) -> str:
    """Release that ran: as the row says, else the one that was current at its date, else the newest."""
    stated = release_of(text_of(row, "engine_version"))
    if stated != NEWEST:
        return ".".join(map(str, stated))
    date = re.search(r"20\d\d-\d\d", text_of(row, "date"))
    return version_at(family, date.group(0)) if date else ""


def _parallelism(row: Mapping[str, Any], said: Mapping[str, Any], *, is_moe: bool) -> dict[str, Any]:
    """Widths of each kind of parallelism from the row's columns and what its notes say."""
    gpus = int(number_of(row, "n_gpus") or number_of(row, "tp") or 1)
    tp = int(number_of(row, "tp") or gpus)
    pp = int(number_of(row, "pp") or 1)
    ep = int(number_of(row, "ep") or 1)
    if said.get("by_layers"):
        tp, pp = 1, tp * pp
    wide = said.get("attention_dp", "1")
    split = said.get("moe_tp", 1) * ep
    if is_moe and wide == "1" and "moe_tp" in said and split > tp:
        # experts spread wider than attention: the rest of the width is attention data parallelism
        attention_dp = split // tp
    elif wide == "ep":
        attention_dp, tp = ep, 1
    elif wide == "tp":
        attention_dp, tp = tp, 1
    else:
        attention_dp = int(wide)
        tp = max(1, tp // attention_dp)
    return {
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "attention_data_parallel_size": attention_dp,
        "expert_parallel": is_moe and (ep > 1 or attention_dp > 1 or said.get("expert_parallel", False)),
        "num_replicas": max(1, gpus // (tp * pp * attention_dp)),
    }


def _workload(row: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Arrival fields of the scenario and the number of requests."""
    arrival = text_of(row, "arrival")
    users = int(number_of(row, "concurrency") or 0)
    published = number_of(row, "n_requests")
    if said.get("static_batch"):
        return {"arrivals": "once", "num_requests": max(1, users)}
    rate = _rate_rps(row) if arrival == "poisson" else None
    if rate:
        open_loop = {"arrivals": "poisson", "demand": "rate", "rate_rps": rate, "peak_factor": 1.0}
        return open_loop | {"num_requests": int(published or 500)}
    # Without its rate an open loop can be read only as the most that the system serves.
    if arrival == "concurrency" or (not arrival and users):
        users = max(1, users)
        shared = said.get("users_per_replica", users)
        if users > shared * (number_of(row, "n_gpus") or users):
            users = shared  # the published concurrency is that of many replicas together
        count = int(published or said.get("requests_per_user", 10) * users)
        return {"arrivals": "closed", "concurrent_users": users, "num_requests": max(count, 1)}
    known = dataset_of(row)
    usual = int(known["num_requests"]) if known and number_of(row, "isl") is None else 1000
    return {"arrivals": "once", "num_requests": int(published or usual)}


def _drafting(said: Mapping[str, Any]) -> dict[str, Any]:
    """Drafts per step and the chance that one is accepted, as published: guessed figures would decide the row."""
    drafts, gained = said.get("num_speculative_tokens", 0), said.get("tokens_per_step")
    if not drafts and not said.get("drafting"):
        return {}
    missing = [name for name, known in (("drafts", drafts), ("acceptance", gained)) if not known]
    if missing:
        raise RowSkipped(f"drafting on, but {_neither(missing)} stated")
    return {"num_speculative_tokens": drafts, "speculative_acceptance": acceptance_of(drafts, gained)}


def _neither(missing: list[str]) -> str:
    return "neither drafts nor acceptance" if len(missing) > 1 else f"no {missing[0]}"


def _rate_rps(row: Mapping[str, Any]) -> float | None:
    """Stated rate; None where there is none, or an infinite one, which clients take for "all at once"."""
    if text_of(row, "request_rate_rps").lower() in ("inf", "infinity"):
        return None
    rate = number_of(row, "request_rate_rps")
    if rate and rate < LEAST_RATE_RPS:
        raise InvalidInput("request_rate_rps", rate, f"a rate of at least {LEAST_RATE_RPS:g} per second")
    return rate


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
        for line in read_table(DATASETS):
            if line["keyword"] in text or line["keyword"] in re.sub(r"[ _-]", "", text):
                return line
    return None


def _lengths(row: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Length fields of the scenario: fixed, uniform in a range, or exponential and cut, as the clients drew them."""
    if said.get("decode_only"):
        return {"lengths": "constant", "prompt_mean_tokens": 1.0, "output_mean_tokens": number_of(row, "osl") or 1.0}
    isl, osl = number_of(row, "isl"), number_of(row, "osl")
    if isl is None or osl is None:
        known = dataset_of(row)
        if known is None:
            raise RowSkipped("the row gives no prompt or output length, and names no dataset of known lengths")
        isl, osl = isl or float(known["prompt_tokens"]), osl or float(known["output_tokens"])
        return _exponential(isl, osl, float(known["max_prompt_tokens"]), float(known["max_output_tokens"]))
    isl, osl = max(1.0, isl), max(1.0, osl)
    drawn, limit = said.get("drawn"), said.get("answer_limit", 0)
    if osl < limit:  # answers that end of themselves before a limit: a spread, whose prompts stay as long as they are
        return _exponential(isl, osl, isl, limit)
    if drawn is None:
        return {"lengths": "constant", "prompt_mean_tokens": isl, "output_mean_tokens": osl}
    if drawn == "exponential":
        return _exponential(isl, osl, CUT_AT_MEANS * isl, CUT_AT_MEANS * osl)
    prompt, _, output = drawn.partition(", ")
    return _uniform("prompt", isl, prompt) | _uniform("output", osl, output or prompt) | {"lengths": "uniform"}


def _uniform(side: str, published: float, drawn: str) -> dict[str, float]:
    """Mean [tokens] and spread ÷ mean of lengths drawn in "LOW to HIGH" of the published one."""
    low, high = map(float, drawn.split(" to "))
    mean = max(1.0, published * (low + high) / 2)
    return {f"{side}_mean_tokens": mean, f"{side}_spread": (high - low) / (low + high)}


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


def _context(fields: Mapping[str, Any], model: str) -> int:
    """Context of a run that states none: its longest request, within the model's limit. [tokens]"""
    longest = 0.0
    for side, cut in (("prompt", "max_prompt_tokens"), ("output", "output_limit_tokens")):
        spread = fields.get(f"{side}_spread", 0.0) if fields["lengths"] == "uniform" else 0.0
        longest += fields.get(cut) or fields[f"{side}_mean_tokens"] * (1 + spread)
    return max(16, min(math.ceil(longest) + LENGTH_SLACK_TOKENS, get_model(model).longest_context))
