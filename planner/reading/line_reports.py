"""Benchmarks that print a figure a line, by a table of their lines (`report_lines.csv`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from planner.reading.figures import Understood
from planner.reading.runs import Run, item
from planner.reading.text import Line
from planner.reading.values import lines_of, scaled

LINES = "reading/report_lines.csv"
MOST_RUNS = 100  # of one file: a server that logs each request has thousands
Columns = dict[str, float | str]
#: what a request that runs alone says of its load
ALONE: Mapping[str, float | str] = {"concurrency": 1.0, "n_requests": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a tool's report begins, and what all of its reports have in common.

    `must` is a column that each of them has; in a file with reports of the tool `unless`, its lines are that tool's.
    """

    begins: re.Pattern[str]
    common: Mapping[str, float | str] = field(default_factory=dict)
    must: str = ""
    unless: str = ""


REPORTS = {
    "AISBench": Report(begins=re.compile(r"^\W*Performance Parameters\W+Stage\W")),
    "LMDeploy profile": Report(
        begins=re.compile(r"^(?:concurrency: \d+|=+ Profile [A-Z][\w ]+ =+)"),
        common={"engine": "lmdeploy"},
        must="req_s",
    ),
    "EvalScope perf": Report(begins=re.compile(r"Benchmarking summary:")),
    "MLPerf LoadGen": Report(begins=re.compile(r"^MLPerf Results Summary")),
    "Ollama --verbose": Report(begins=re.compile(r"^\W*total duration: +\S+$"), common={**ALONE, "engine": "ollama"}),
    "KTransformers": Report(
        begins=re.compile(r"^prompt eval count: +\d+ token\(s\)"),
        common={**ALONE, "engine": "ktransformers"},
        unless="Ollama --verbose",
    ),
    "llama.cpp timings": Report(
        begins=re.compile(r"(?:llama_perf_context_print|llama_print_timings|common_perf_print): +prompt eval time ="),
        common={**ALONE, "engine": "llama.cpp"},
    ),
    "MLX": Report(
        begins=re.compile(r"^(?:Prompt: \d+ tokens, [\d.]+ tokens-per-sec|Timing with prompt_tokens=\d+)"),
        common={**ALONE, "engine": "mlx"},
    ),
    "SGLang bench_one_batch": Report(
        begins=re.compile(r"^Benchmark \.\.\."), common={"engine": "sglang", "arrival": "offline"}, must="ttft_ms_mean"
    ),
    "SGLang bench_one_batch_server": Report(
        begins=re.compile(r"^batch size: \d+$"),
        common={"engine": "sglang", "arrival": "offline"},
        must="output_tok_s_total",
    ),
    "JetStream benchmark_serving": Report(begins=re.compile(r"^Successful requests: \d+$"), must="req_s"),
    "inference-benchmark": Report(begins=re.compile(r"^=+Result for Model: "), must="req_s"),
    "k6": Report(begins=re.compile(r"http_req_duration\.*: avg="), must="e2e_s_mean"),
}

#: each first line of a report has one of these: a quick look before the patterns
HEADS = (
    *("Performance Parameters", "concurrency: ", " Profile ", "Benchmarking summary:", "MLPerf Results Summary"),
    *("total duration: ", "prompt eval", "tokens-per-sec", "prompt_tokens=", "Benchmark ...", "batch size: "),
    *("http_req_duration", "Successful requests: ", "Result for Model: "),
)


def line_reports(lines: tuple[Line, ...]) -> Iterable[Run]:
    """Runs of the tools that print a figure a line, at most 100 of each.

    Parameters
    ----------
    lines : tuple of Line
        Whole output.
    """
    begun: dict[str, list[int]] = {tool: [] for tool in REPORTS}
    for at, line in enumerate(lines):
        if any(word in line.text for word in HEADS):
            for tool, report in REPORTS.items():
                if report.begins.search(line.text):
                    begun[tool].append(at)
    for tool, report in REPORTS.items():
        starts = [] if report.unless and begun[report.unless] else begun[tool][:MOST_RUNS]
        for start, end in pairwise([*starts, len(lines)]):
            run = _run(tool, report, lines[start:end])
            if run is not None:
                yield run


def _run(tool: str, report: Report, lines: Iterable[Line]) -> Run | None:
    columns: Columns = {}
    understood: dict[str, Understood] = {}
    for line in lines:
        lower = line.text.lower()
        for row in lines_of(LINES, tool):
            match = _compiled(row["pattern"]).search(line.text) if row["needs"] in lower else None
            value = scaled(match[1], row["scale"]) if match else None
            if value is not None and row["column"] not in columns:
                columns[row["column"]] = value
                understood[row["column"]] = item(row["column"], value, line.number)
    told = {**report.common, **columns, **_derived(columns)}
    if not columns or (report.must and report.must not in told):
        return None
    return Run(tool=tool, columns=told, understood=tuple(understood.values()))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _derived(columns: Mapping[str, float | str]) -> Columns:
    """Lengths and latencies that follow from what a report states of one batch or one request."""
    told = {name: value for name, value in columns.items() if isinstance(value, float) and value > 0}
    found: Columns = {}
    batch, prompt_s = told.get("batch", 1.0), told.get("prompt_s")
    if "prompt_tok_s" in told and prompt_s:  # of all prompts of a batch together
        found["isl"] = float(max(1, round(told["prompt_tok_s"] * prompt_s / batch)))
        found["ttft_ms_mean"] = 1e3 * prompt_s
        if "all_tok_s" in told and "all_s" in told:
            both = round(told["all_tok_s"] * told["all_s"] / batch)
            found |= {"osl": float(max(1, both - int(float(found["isl"])))), "e2e_s_mean": told["all_s"]}
    elif "prompt_tok_s" in told and "isl" in told:
        found["ttft_ms_mean"] = 1e3 * told["isl"] / told["prompt_tok_s"]
    if "batch" in told:
        found["n_requests"] = batch
        if "e2e_s_mean" in told:
            found["req_s"] = batch / told["e2e_s_mean"]
    if "req_s" in told and "duration_s" in told:
        found["n_requests"] = float(round(told["req_s"] * told["duration_s"]))
    return {name: value for name, value in found.items() if name not in columns}
