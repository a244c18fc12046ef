"""Results of other planners: a deployment with the figures that they predict, to stand beside ours.

AIConfigurator's best_config_topn.csv and pareto.csv, or their rows as JSON, and the JSON of llm-d Planner's
recommendations.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from planner.accuracy import RowSkipped, find_model, read_planned, serve
from planner.answer import plan
from planner.errors import PlannerError
from planner.reading.figures import Understood
from planner.reading.runs import Run
from planner.reading.values import lines_of
from planner.scenario import Scenario, fields_by_name
from planner.service import ServingMetrics

NAMES = "reading/peer_names.csv"
AICONFIGURATOR, LLM_D = "AIConfigurator's prediction", "llm-d Planner's prediction"
#: columns that no other table has together, so that a recording of traffic is not taken for one
CSV_MARKS = frozenset({"model", "isl", "osl", "ttft", "tpot", "request_latency", "tokens/s", "system", "backend"})
SPLIT_MARKS = frozenset({"model", "isl", "osl", "ttft", "tpot", "(p)tp", "(d)tp"})
#: of one kind of workers; a plan has one value for both kinds
POOL_PARTS = ("system", "backend", "version", "tp", "pp", "dp", "moe_ep", "gemm", "kvcache")
#: lists of one answer of llm-d Planner, each ordered by its own criterion; the first has its own best
RANKED = ("balanced", "lowest_cost", "lowest_latency", "best_quality", "best_accuracy", "simplest")
PROFILES = ("traffic_profile", "workload_profile", "configuration", "specification")
MOST_ROWS = 1000
DEEPEST = 3  # of profiles within one another
KEPT_GROUPS = ("targets", "prices", "measured")
#: of one recommendation, in the unit of its name
UNITS = {"tok_s": "tokens/s", "req_s": "req/s", "_rps": "req/s", "_ms": "ms", "e2e_s": "s", "usd": "USD a month"}


def peer_runs(text: str) -> tuple[Run, ...]:
    """Deployments that another planner proposes, its best first; empty where the text is no such result.

    Parameters
    ----------
    text : str
        CSV of AIConfigurator or its rows as JSON, or JSON of llm-d Planner.

    Raises
    ------
    PlannerError
        When it is AIConfigurator's result for disaggregated serving, and no row has the same split and formats for
        prefill and for decode, as a plan has.
    """
    return (*_aiconfigurator(text), *_llm_d(text))


def _aiconfigurator(text: str) -> Iterable[Run]:
    rows = _rows_of(text)
    if not rows:
        return
    header = set(rows[0][1])
    if header >= SPLIT_MARKS:
        yield from _disaggregated(rows)
        return
    if not header >= CSV_MARKS:
        return
    names = _names("aiconfigurator")
    for number, row in rows:
        run = _run(AICONFIGURATOR, row, names, number)
        columns = run.columns
        if isinstance(columns.get("tp"), float):
            yield replace(run, columns={**columns, "n_gpus": _width(columns)})


def _width(columns: Mapping[str, float | str]) -> float:
    return math.prod(float(columns.get(name, 1.0)) for name in ("tp", "pp", "attention_dp"))


def _disaggregated(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterable[Run]:
    """Rows whose workers for prompts and for answers are alike."""
    names, apart = _names("aiconfigurator"), ""
    comparable = False
    for number, row in rows:
        differing = [part for part in POOL_PARTS if str(row.get(f"(p){part}")) != str(row.get(f"(d){part}"))]
        if differing:
            apart = apart or _apart(row, differing)
            continue
        told = {**row, **{part: row.get(f"(p){part}") for part in POOL_PARTS}}
        run = _run(AICONFIGURATOR, told, names, number)
        if isinstance(run.columns.get("tp"), float) and isinstance(run.columns.get("decode_replicas"), float):
            comparable = True
            yield replace(run, columns={**run.columns, "n_gpus": _width(run.columns)})
    if apart and not comparable:
        raise PlannerError(f"A plan has prefill and decode replicas that are alike; this result has {apart}.")


def _apart(row: Mapping[str, Any], differing: list[str]) -> str:
    sides = (" ".join(f"{part} {row.get(f'({side}){part}')}" for part in differing) for side in "pd")
    prefill, decode = (side[:100] for side in sides)
    return f"{prefill} for prefill, {decode} for decode"


def _rows_of(text: str) -> list[tuple[int, dict[str, Any]]]:
    """Line and cells of each row of a table, which pandas writes as CSV or as JSON records."""
    if text.lstrip("\ufeff \n\r\t").startswith("["):
        return [(1, row) for row in _records(text)]
    header = set(text.lstrip("\ufeff").partition("\n")[0].strip().split(","))
    return list(enumerate(_table(text), 2)) if header >= CSV_MARKS or header >= SPLIT_MARKS else []


def _records(text: str) -> list[dict[str, Any]]:
    if '"ttft"' not in text:
        return []
    try:
        body = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return []
    return [row for row in body[:MOST_ROWS] if isinstance(row, dict)]


def _table(text: str) -> list[dict[str, str]]:
    """The first rows of a CSV; none where a cell is too long for one."""
    try:
        return list(itertools.islice(csv.DictReader(io.StringIO(text)), MOST_ROWS))
    except csv.Error:
        return []


def _llm_d(text: str) -> Iterable[Run]:
    if '"gpu_config"' not in text:
        return
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(body, dict):
        return
    ranked = [body[name] for name in RANKED if isinstance(body.get(name), list)]
    listed = [item for items in ranked for item in items if isinstance(item, dict)]
    names, seen = _names("llm-d"), set()
    for item in listed or [body]:
        config = item.get("gpu_config")
        told = _profile(body) | _profile(item) | item | (config if isinstance(config, dict) else {})
        run = _run(LLM_D, told, names, 1)
        deployment = tuple(run.columns.get(name) for name in ("model", "gpu", "n_gpus", "tp"))
        if None not in deployment and deployment not in seen:
            seen.add(deployment)
            yield replace(run, columns={**run.columns, "engine": "vLLM"})


def _profile(item: Mapping[str, Any], depth: int = DEEPEST) -> dict[str, Any]:
    """The traffic of an answer, which its versions keep under several names, one within the other."""
    found: dict[str, Any] = {}
    for name in PROFILES:
        inner = item.get(name)
        if isinstance(inner, dict) and depth:
            flat = {key: value for key, value in inner.items() if not isinstance(value, dict)}
            found |= flat | _profile(inner, depth - 1)
    return found


def _names(tool: str) -> dict[str, Mapping[str, str]]:
    return {row["name"]: row for row in lines_of(NAMES, tool)}


def _run(tool: str, told: Mapping[str, Any], names: Mapping[str, Mapping[str, str]], line: int) -> Run:
    columns: dict[str, float | str] = {}
    understood: list[Understood] = []
    for name, row in names.items():
        value = _value(told.get(name), row["scale"])
        if value is not None:
            columns[row["column"]] = value
            unit = next((unit for part, unit in UNITS.items() if part in row["column"]), "")
            understood.append(Understood(name=row["column"], value=value, unit=unit if row["scale"] else "", line=line))
    return Run(tool=tool, columns=columns, understood=tuple(understood), is_prediction=True)


def _value(value: Any, scale: str) -> float | str | None:
    if value is None or isinstance(value, (dict, list)) or not str(value).strip():
        return None
    if not scale:
        return str(value).strip()[:200]
    try:
        number = float(value) * float(scale)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def peer_scenario(run: Run, base: Scenario) -> Scenario:
    """The base with the deployment and the traffic for which another planner predicts its figures.

    Raises
    ------
    PlannerError
        When the catalog has no such model or GPU, or no plan can have these values.
    """
    columns = dict(run.columns)
    if "decode_replicas" in columns:  # planned for traffic that does not wait, so at the rate that they carry
        columns.pop("concurrency", None)
        columns["request_rate_rps"] = columns.get("req_s", "")
    weights = str(columns.get("weight_dtype", ""))
    row = columns | {"arrival": "concurrency" if columns.get("concurrency") else "poisson"}
    if "concurrency" not in columns and "request_rate_rps" not in columns:
        row["request_rate_rps"] = columns.get("highest_req_s", "")  # the load at which its figures hold
    row |= {"weight_dtype": weights.replace("bfloat16", "bf16"), "n_gpus": columns.get("n_gpus", 1.0)}
    row["kv_dtype"] = str(columns.get("kv_dtype", "")).replace("bfloat16", "bf16")
    wide = int(float(columns.pop("attention_dp", 1.0)))
    if wide > 1:
        row["n_gpus"] = float(row["n_gpus"]) / wide
    made = run_planned(row)
    if wide > 1:
        made = made.replace(attention_data_parallel_size=wide, expert_parallel=float(columns.get("ep", 1.0)) > 1)
    if "decode_replicas" in columns:
        kinds = {name: int(float(columns[name])) for name in ("prefill_replicas", "decode_replicas")}
        made = made.replace(deployment="disaggregated", num_replicas=None, **kinds)
    if columns.get("prefix_cached_tokens"):
        made = made.replace(shared_prefix_tokens=int(float(columns["prefix_cached_tokens"])))
    named = find_model(str(columns["model"]))
    fields = {
        name: getattr(made, name)
        for name, field in fields_by_name().items()
        if field.metadata["group"] not in KEPT_GROUPS and name != "title"
    }
    return base.replace(**fields | {"model": named or made.model})


def run_planned(row: Mapping[str, Any]) -> Scenario:
    """The scenario of a serving row that a user brings.

    Raises
    ------
    PlannerError
        When the catalog has no such model or GPU, or no plan can have these values.
    """
    try:
        return read_planned(row)
    except RowSkipped as error:
        raise PlannerError(f"No plan has this: {error}.") from error


def peer_figures(scenario: Scenario) -> dict[str, float]:
    """Our figures under the names of `peer_names.csv`; empty where the engine does not start or nothing finishes."""
    metrics = _served(scenario.replace(title=""))
    if metrics is None or metrics.num_finished == 0:
        return {}
    found = {
        "ttft_ms_mean": 1e3 * metrics.ttft_s.mean,
        "tpot_ms_mean": 1e3 * metrics.tpot_s.mean,
        "e2e_s_mean": metrics.e2e_s.mean,
        "ttft_ms_p95": 1e3 * metrics.ttft_s.p95,
        "itl_ms_p95": 1e3 * metrics.itl_s.p95,
        "e2e_s_p95": metrics.e2e_s.p95,
        "output_tok_s_total": metrics.output_tokens_per_s,
        "req_s": metrics.requests_per_s,
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _served(scenario: Scenario) -> ServingMetrics | None:
    if scenario.deployment == "disaggregated":
        return plan(scenario, with_policies=False).metrics
    metrics = serve(scenario)
    return None if isinstance(metrics, str) else metrics
