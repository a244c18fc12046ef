"""Benchmarks without a server: llama-bench, `vllm bench throughput` and `vllm bench latency`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from itertools import pairwise
from typing import Any

from planner.reading.runs import Run, run_of
from planner.reading.text import Line

LLAMA_BENCH, THROUGHPUT, LATENCY = "llama-bench", "vllm bench throughput", "vllm bench latency"
_BENCH_TEST = re.compile(r"^(?P<kind>pp|tg) ?(?P<first>\d+)(?:\+tg ?(?P<second>\d+))?(?: @ d(?P<depth>\d+))?$")
_BENCH_RATE = re.compile(r"^(?P<rate>\d+(?:\.\d+)?)\s*±")
#: columns of llama-bench's CSV and JSON, without which a row is none of its
_BENCH_COLUMNS = {"n_prompt", "n_gen", "avg_ts"}
_GGUF = re.compile(r"(?:-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)
_THROUGHPUT = re.compile(
    r"Throughput: (?P<req_s>[\d.]+) requests/s, (?P<total>[\d.]+) (?:total )?tokens/s(?:, (?P<output>[\d.]+) output)?"
)
_LATENCY = re.compile(r"^Avg latency: (?P<mean>[\d.]+) seconds")
#: figures that the tools print on lines of their own
_COUNTS = re.compile(r"^Total num (?P<side>prompt|output) tokens: +(?P<count>\d+)")
_COMMAND = re.compile(r"vllm bench (?:throughput|latency)|benchmark_(?:throughput|latency)\.py")
#: flag of these commands → column that it fills
_FLAGS = {
    "--model": "model",
    "--input-len": "isl",
    "--random-input-len": "isl",
    "--output-len": "osl",
    "--random-output-len": "osl",
    "--num-prompts": "n_requests",
    "--batch-size": "n_requests",
}


def offline_runs(lines: tuple[Line, ...]) -> Iterable[Run]:
    """Runs that llama-bench printed as a table, or vLLM's offline benchmarks as text.

    Parameters
    ----------
    lines : tuple of Line
        Whole output; where it holds the command, its lengths and number of requests are read too.
    """
    yield from _bench_table(lines)
    told = _command(lines)
    for line in lines:
        if not any(word in line.text for word in ("Throughput: ", "Avg latency: ")):
            continue
        throughput, latency = _THROUGHPUT.search(line.text), _LATENCY.match(line.text)
        if throughput:
            figures = {
                "req_s": float(throughput["req_s"]),
                "total_tok_s": float(throughput["total"]),
                **({"output_tok_s_total": float(throughput["output"])} if throughput["output"] else {}),
            }
            counted = {f"total_{name}_tokens": count for name, count in _counts(lines).items()}
            yield run_of(THROUGHPUT, _offline(told | counted | figures), line.number)
        elif latency:
            yield run_of(LATENCY, _offline(told | {"e2e_s_mean": float(latency["mean"])}), line.number)


def offline_json(body: Mapping[str, Any], line: int) -> Run | None:
    """A run that llama-bench or vLLM's offline benchmarks saved as JSON; None where the object is none of theirs.

    Parameters
    ----------
    body : mapping
        One object of the file.
    line : int
        Where it stands.
    """
    if set(body) >= _BENCH_COLUMNS:
        return _bench_run({name: str(value) for name, value in body.items()}, line)
    if {"elapsed_time", "requests_per_second", "tokens_per_second"} <= set(body):
        columns = {
            "req_s": body["requests_per_second"],
            "total_tok_s": body["tokens_per_second"],
            "n_requests": body.get("num_requests"),
            "duration_s": body["elapsed_time"],
            "output_tok_s_total": body.get("output_tokens_per_second"),
            "total_input_tokens": body.get("total_input_tokens"),
            "total_output_tokens": body.get("total_output_tokens"),
        }
        return run_of(THROUGHPUT, _offline(_numbers(columns)), line)
    if {"avg_latency", "latencies", "percentiles"} <= set(body):
        return run_of(LATENCY, _offline(_numbers({"e2e_s_mean": body["avg_latency"]})), line)
    return None


def llama_bench_csv(text: str) -> tuple[Run, ...]:
    """Runs that `llama-bench -o csv` printed; empty where the text is something else.

    Parameters
    ----------
    text : str
        The file.
    """
    start = re.search(r"^build_commit,.*$", text, re.MULTILINE)
    if start is None or not set(start[0].strip().split(",")) >= _BENCH_COLUMNS:
        return ()
    rows = csv.DictReader(StringIO(text[start.start() :]))
    first = text.count("\n", 0, start.start()) + 2
    found = (
        _bench_run({name: value or "" for name, value in row.items() if name}, at) for at, row in enumerate(rows, first)
    )
    return tuple(run for run in found if run is not None)


def _numbers(given: Mapping[str, Any]) -> dict[str, float | str]:
    return {
        name: float(value)
        for name, value in given.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _bench_table(lines: tuple[Line, ...]) -> Iterable[Run]:
    """Rows of llama-bench's table; a test of generation (tgN) is one stream's rate of decoding."""
    header: list[str] = []
    for line in lines:
        if not header and "t/s" not in line.text:
            continue
        cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
        if {"model", "test", "t/s"} <= set(cells):
            header = cells
            continue
        if not header or len(cells) != len(header):
            continue
        row = dict(zip(header, cells, strict=True))
        test, rate = _BENCH_TEST.match(row["test"]), _BENCH_RATE.match(row["t/s"])
        if test and rate:
            prompt = test["first"] if test["kind"] == "pp" else "0"
            answer = test["second"] or (test["first"] if test["kind"] == "tg" else "0")
            named = {"n_prompt": prompt, "n_gen": answer, "n_depth": test["depth"] or "0", "avg_ts": rate["rate"]}
            run = _bench_run({"model_type": row["model"], **named}, line.number)
            if run is not None:
                yield run


def _bench_run(row: Mapping[str, str], line: int) -> Run | None:
    """One test of llama-bench; None for a prompt behind cached tokens, of which the plan has no figure."""
    try:
        prompt, answer, depth, rate = (float(row.get(name) or 0) for name in ("n_prompt", "n_gen", "n_depth", "avg_ts"))
    except ValueError:
        return None
    if rate <= 0 or (prompt > 0 and depth > 0) or prompt + answer <= 0:
        return None
    model = _GGUF.sub("", re.split(r"[\\/]", row.get("model_filename", ""))[-1]) or row.get("model_type", "")
    columns: dict[str, float | str] = {"model": model, "engine": "llama.cpp", "concurrency": 1.0, "n_requests": 1.0}
    if row.get("gpu_info"):
        columns["gpu"] = row["gpu_info"]
    columns |= {"isl": max(1.0, prompt + depth), "osl": max(1.0, answer)}
    if not answer:
        columns["ttft_ms_mean"] = 1e3 * prompt / rate
    elif not prompt:
        columns |= {"output_tok_s_total": rate, "tpot_ms_mean": 1e3 / rate}
    else:
        columns |= {"total_tok_s": rate, "e2e_s_mean": (prompt + answer) / rate}
    return run_of(LLAMA_BENCH, columns, line)


def _counts(lines: tuple[Line, ...]) -> dict[str, float]:
    found = (_COUNTS.match(line.text) for line in lines)
    return {("input" if hit["side"] == "prompt" else "output"): float(hit["count"]) for hit in found if hit}


def _command(lines: tuple[Line, ...]) -> dict[str, float | str]:
    """What the command of an offline benchmark says of its requests."""
    found: dict[str, float | str] = {}
    for line in lines:
        command = _COMMAND.search(line.text) if "bench" in line.text else None
        if command is None:
            continue
        for flag, value in pairwise(line.text[command.end() :].replace("=", " ").split()):
            column = _FLAGS.get(flag)
            if column == "model":
                found[column] = value.strip("'\"")
            elif column and value.isdigit():
                found[column] = float(value)
    return found


def _offline(columns: Mapping[str, float | str]) -> dict[str, float | str]:
    """Columns of a run whose requests all come at once; the rates say the mean lengths where nothing else does."""
    found = dict(columns)
    rate, total, output = (found.get(name) for name in ("req_s", "total_tok_s", "output_tok_s_total"))
    if isinstance(rate, float) and rate > 0 and isinstance(total, float) and isinstance(output, float):
        found.setdefault("osl", output / rate)
        found.setdefault("isl", (total - output) / rate)
    return found | {"arrival": "offline"}
