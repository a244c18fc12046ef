"""Benchmark results: the tables that tools print and the JSON that they save, as columns of a serving row."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from planner.reading.column_tables import column_tables
from planner.reading.figures import Understood
from planner.reading.line_reports import line_reports
from planner.reading.offline import llama_bench_csv, offline_json, offline_runs
from planner.reading.runs import Run, item, run_of
from planner.reading.saved_reports import recorded_requests, saved_report
from planner.reading.text import Line
from planner.reading.values import lines_of, scaled

NAMES = "reading/benchmark_names.csv"
#: kinds of benchmark output, and the words that begin one
TABLE_STARTS = {
    "serving": re.compile(r"=+ ?(?:Serving|Offline Throughput) Benchmark Result ?=+"),
    "trtllm-bench": re.compile(r"= *(?:PYTORCH BACKEND|PERFORMANCE OVERVIEW|ENGINE DETAILS|_?AUTODEPLOY BACKEND)"),
}
_ROW = re.compile(r"^(?P<name>[A-Za-z][^:|=]*?):\s+(?P<value>\S.*?)\s*$")
_FIGURE = re.compile(r"-?[\d,]+(?:\.\d+)?(?:[eE][+-]?\d+)?%?")
MOST_UNUSED = 100  # rows of a report
_PERCENTILES = {"avg": "mean", "mean": "mean", "p50": "p50", "median": "p50", "p95": "p95", "p99": "p99"}
_LATENCIES = {
    "time_to_first_token": "ttft_ms",
    "time_to_first_token_ms": "ttft_ms",
    # of each request (end-to-end − TTFT) ÷ (output tokens − 1); GuideLLM's own TPOT has the first token in it
    "inter_token_latency": "tpot_ms",
    "inter_token_latency_ms": "tpot_ms",
    "request_latency": "e2e_s",
}
_UNIT_IN_MS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "ns": 1e-6}
_METRIC = re.compile(r"^(?P<name>[A-Za-z][\w ]*?)\s*(?:\((?P<unit>[^)]*)\))?$")
#: of GuideLLM's tables, which have a group, a unit and a statistic over each column
_STATISTICS = re.compile(r"Request (?:Token|Latency) Statistics|Server Throughput Statistics")
GUIDELLM_HEADS = 3
BOXED_HEADS = ("avg", "Metric")  # the header of GenAI-Perf's table has one of them


def tables_in(lines: tuple[Line, ...]) -> tuple[Run, ...]:
    """Runs that a tool printed as text, one for each table of results.

    Parameters
    ----------
    lines : tuple of Line
        Whole output, logs before and between tables included.

    Returns
    -------
    tuple of Run
        Empty where no table is in it.
    """
    runs = [*_serving_tables(lines), *_trtllm_report(lines), *offline_runs(lines), *_boxed_table(lines)]
    runs += [*_guidellm_tables(lines), *line_reports(lines), *column_tables(lines)]
    return tuple(run for run in runs if run.columns)


def _serving_tables(lines: tuple[Line, ...]) -> Iterable[Run]:
    names = _columns("serving")
    starts = [at for at, line in enumerate(lines) if TABLE_STARTS["serving"].search(line.text)]
    for start, end in pairwise([*starts, len(lines)]):
        yield _table(
            "vllm bench serve or SGLang bench_serving", lines[start + 1 : end], names, stop=r"^.{0,40}={30,}\s*$"
        )


def _trtllm_report(lines: tuple[Line, ...]) -> Iterable[Run]:
    if any(TABLE_STARTS["trtllm-bench"].search(line.text) for line in lines):
        yield _table("trtllm-bench", lines, _columns("trtllm-bench"), stop=r"= *DATASET DETAILS")


def _columns(tool: str) -> dict[str, Mapping[str, str]]:
    return {row["name"]: row for row in lines_of(NAMES, tool)}


def _table(tool: str, lines: Iterable[Line], names: Mapping[str, Mapping[str, str]], stop: str) -> Run:
    columns: dict[str, float | str] = {}
    understood: list[Understood] = []
    unused: list[tuple[int, str]] = []
    for line in lines:
        if re.search(stop, line.text) and columns:
            break
        match = _ROW.match(_unprefixed(line.text))
        row = names.get(" ".join(match["name"].lower().split())) if match else None
        if match is not None and row is None and _FIGURE.fullmatch(match["value"]):
            unused.append((line.number, " ".join(match[0].split())))
        if match is None or row is None or row["column"] in columns:
            continue
        value = scaled(match["value"], row["scale"])
        if value is not None:
            columns[row["column"]] = value
            understood.append(item(row["column"], value, line.number))
    return Run(tool=tool, columns=columns, understood=tuple(understood), unused=tuple(unused[:MOST_UNUSED]))


def _unprefixed(text: str) -> str:
    """A line without the time and level that a logger puts before it."""
    return re.sub(
        r"^\s*(?:\[?\d{2,4}[-/]\d\d[-/ T\d:.,+Z]*\]?\s*)?(?:\[?[A-Z-]+(?:LLM)?\]?\s*\[[A-Z]\]\s*)?", "", text
    ).strip()


def _boxed_table(lines: tuple[Line, ...]) -> Iterable[Run]:
    """The table that GenAI-Perf and AIPerf print or save as CSV: a metric with its unit a row, a statistic a column."""
    names, header = _columns("genai-perf"), list[str]()
    columns: dict[str, float | str] = {}
    understood: list[Understood] = []
    for line in lines:
        if not header and not any(word in line.text for word in BOXED_HEADS):
            continue
        cells = [cell.strip() for cell in re.split("[│┃|]", line.text.strip().strip("│┃|"))]
        if len(cells) == 1:
            cells = _comma_separated(line.text.strip())
        if {"avg", "p99"} <= set(cells) or cells == ["Metric", "Value"]:
            header = [{"Value": "avg"}.get(cell, cell) for cell in cells]
            continue
        metric = _METRIC.match(cells[0])
        if not header or len(cells) != len(header) or metric is None:
            continue
        values = {name: _number(cell) for name, cell in zip(header[1:], cells[1:], strict=True)}
        told = {name: value for name, value in values.items() if value is not None}
        name, unit = "_".join(metric["name"].lower().split()), metric["unit"] or ""
        found: dict[str, float | str] = {}
        if name in _LATENCIES:
            found = _spread(_LATENCIES[name], told, _UNIT_IN_MS.get(unit, 1.0))
        elif name in names and "avg" in told:
            found = {names[name]["column"]: told["avg"]}
        new = {name: value for name, value in found.items() if name not in columns}
        columns |= new
        understood += [item(name, value, line.number) for name, value in new.items()]
    yield Run(tool="GenAI-Perf or AIPerf", columns=columns, understood=tuple(understood))


def _comma_separated(text: str) -> list[str]:
    """Cells of a line of CSV, in which thousands may stand in quotes; the line alone where it is none."""
    try:
        return next(csv.reader([text]), [text])
    except csv.Error:
        return [text]


def _guidellm_tables(lines: tuple[Line, ...]) -> Iterable[Run]:
    """The tables of statistics that GuideLLM prints, a row for each benchmark in all of them."""
    found: list[dict[str, tuple[float | str, int]]] = []
    title, heads, row = "", list[list[str]](), 0
    for line in lines:
        text = line.text.strip()
        if _STATISTICS.search(text):
            title, heads, row = text, [], 0
        elif title and text.startswith("|") and not set(text) <= set("|-= "):
            cells = [cell.strip() for cell in text.split("|")[1:-1]]
            if len(heads) < GUIDELLM_HEADS:
                heads.append(_filled(cells))
                title = title if len(cells) == len(heads[0]) else ""  # a header that is torn
            elif len(cells) == len(heads[0]):
                found += [{}] * (row + 1 - len(found))
                found[row] = found[row] | _guidellm_row(cells, heads, line.number)
                row += 1
        elif not text.startswith("|"):
            title = title if not text else ""
    for told in found:
        load = _guidellm_load({name: value for name, (value, _) in told.items()})
        columns = {name: value for name, (value, _) in told.items() if name not in ("strategy", "at_once")} | load
        at = next((number for _, number in told.values()), 0)
        items = tuple(item(name, value, told[name][1] if name in told else at) for name, value in columns.items())
        yield Run(tool="GuideLLM", columns=columns, understood=items)


def _filled(cells: list[str]) -> list[str]:
    """Cells of a header, one that spans several columns in each of them."""
    for place in range(2, len(cells)):
        cells[place] = cells[place] or cells[place - 1]
    return cells


def _guidellm_row(cells: list[str], heads: list[list[str]], number: int) -> dict[str, tuple[float | str, int]]:
    names = _columns("guidellm-table")
    told: dict[str, tuple[float | str, int]] = {"strategy": (cells[0], number)}
    for cell, *head in zip(cells[1:], *(head[1:] for head in heads), strict=True):
        row, value = names.get(" ".join(head).lower()), _number(cell)
        if row is not None and value is not None:
            told[row["column"]] = (value * float(row["scale"]), number)
    return told


def _guidellm_load(told: Mapping[str, float | str]) -> dict[str, float | str]:
    """Users at once, or a rate, as the strategy of a benchmark has it."""
    strategy, at_once, rate = told.get("strategy"), told.get("at_once"), told.get("req_s")
    if strategy == "synchronous":
        return {"concurrency": 1.0}
    if strategy in ("concurrent", "throughput") and isinstance(at_once, float):
        return {"concurrency": max(1.0, float(round(at_once)))}
    return {"request_rate_rps": rate} if isinstance(rate, float) else {}


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def saved_runs(text: str) -> tuple[Run, ...]:
    """Runs that a tool saved as JSON, as one JSON object a line, or as llama-bench's CSV.

    Parameters
    ----------
    text : str
        `vllm bench serve --save-result`, SGLang `bench_serving --output-file`, GenAI-Perf, AIPerf, GuideLLM,
        llama-bench, the `--output-json` of `vllm bench throughput` or `latency`, or a tool of `report_paths.csv`.

    Returns
    -------
    tuple of Run
        Empty where the text is no JSON or of no tool that is known. A line of a run in a pretty-printed file is 1.
    """
    found: list[Run] = list(llama_bench_csv(text))
    for number, body in _objects(text):
        alone = offline_json(body, number) or saved_report(body, number)
        if alone is not None:
            found.append(alone)
        elif isinstance(body.get("experiments"), list):
            found += recorded_requests(body, number)
        elif isinstance(body.get("benchmarks"), list):
            found += [_guidellm(entry, number) for entry in body["benchmarks"] if isinstance(entry, dict)]
        elif isinstance(body.get("request_throughput"), dict) or isinstance(body.get("time_to_first_token"), dict):
            found.append(_genai_perf(body, number))
        elif "output_throughput" in body and ("mean_ttft_ms" in body or "request_throughput" in body):
            found.append(_saved_serving(body, number))
    return tuple(run for run in found if run.columns)


def _objects(text: str) -> Iterable[tuple[int, dict[str, Any]]]:
    if text.lstrip()[:1] not in "{[" and '"output_throughput"' not in text:
        return
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            try:
                body = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(body, dict):
                yield number, body
        return
    for body in whole if isinstance(whole, list) else [whole]:
        if isinstance(body, dict):
            yield 1, body


def _saved_serving(body: Mapping[str, Any], line: int) -> Run:
    columns: dict[str, float | str] = {}
    for name, row in _columns("serving-json").items():
        given = body.get(name)
        if isinstance(given, bool) or given in (None, ""):
            continue
        value = scaled(str(given), row["scale"])
        if value is not None:
            columns[row["column"]] = value
    tool = "SGLang bench_serving" if "mean_e2e_latency_ms" in body or "server_info" in body else "vllm bench serve"
    return run_of(tool, columns, line)


def _genai_perf(body: Mapping[str, Any], line: int) -> Run:
    columns: dict[str, float | str] = {}
    for name, row in _columns("genai-perf").items():
        value = body.get(name)
        if isinstance(value, dict) and isinstance(value.get("avg"), (int, float)):
            columns[row["column"]] = float(value["avg"])
    for name, column in _LATENCIES.items():
        spread = body.get(name)
        if isinstance(spread, dict):
            columns |= _spread(column, spread, _UNIT_IN_MS.get(str(spread.get("unit", "ms")), 1.0))
    given = _dict(body.get("input_config"))
    loadgen = {**given, **_dict(given.get("perf_analyzer")), **_dict(given.get("loadgen"))}
    stimulus = _dict(loadgen.get("stimulus"))
    for key, column in (("concurrency", "concurrency"), ("request_rate", "request_rate_rps")):
        value = loadgen.get(key) or stimulus.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            columns[column] = float(value)
    models = loadgen.get("model") or loadgen.get("model_names")
    if isinstance(models, list) and models:
        columns["model"] = str(models[0])
    return run_of("GenAI-Perf or AIPerf", columns, line)


def _spread(column: str, spread: Mapping[str, Any], to_ms: float) -> dict[str, float | str]:
    scale = to_ms / 1e3 if column == "e2e_s" else to_ms
    found: dict[str, float | str] = {}
    for key, name in _PERCENTILES.items():
        value = spread.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            found.setdefault(f"{column}_{name}", float(value) * scale)
    return found


def _guidellm(body: Mapping[str, Any], line: int) -> Run:
    metrics = _dict(body.get("metrics"))
    columns: dict[str, float | str] = {}
    for name, row in _columns("guidellm").items():
        done = _successful(metrics.get(name))
        if isinstance(done.get("mean"), (int, float)):
            columns[row["column"]] = float(done["mean"])
    for name, column in _LATENCIES.items():
        done = _successful(metrics.get(name))
        flat = {**done, **_dict(done.get("percentiles"))}
        columns |= _spread(column, flat, 1e3 if name == "request_latency" else 1.0)
    strategy = _dict(_dict(body.get("config") or body.get("args")).get("strategy"))
    streams, rate = strategy.get("streams") or strategy.get("max_concurrency"), strategy.get("rate")
    if isinstance(streams, (int, float)):
        columns["concurrency"] = float(streams)
    elif isinstance(rate, (int, float)):
        columns["request_rate_rps"] = float(rate)
    count = _dict(metrics.get("request_totals")).get("successful")
    if isinstance(count, int):
        columns["n_requests"] = float(count)
    return run_of("GuideLLM", columns, line)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _successful(metric: Any) -> dict[str, Any]:
    return _dict(_dict(metric).get("successful"))
