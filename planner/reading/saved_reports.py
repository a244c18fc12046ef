"""Reports that tools save as JSON objects within objects, by the table of paths `report_paths.csv`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from planner.reading.runs import Run, run_of
from planner.reading.values import lines_of, scaled

PATHS = "reading/report_paths.csv"
INFERENCEX, PERF_ANALYZER = "InferenceX", "GenAI-Perf requests"
#: paths that an object of the tool has, and no other tool's
MARKS = {
    "trtllm-bench": ("engine.version", "world_info.tp_size", "performance.request_throughput_req_s"),
    "inference-perf": ("load_summary.count", "successes.latency.request_latency.mean"),
    "AISBench": ("Benchmark Duration.total", "Max Concurrency.total", "Output Token Throughput.total"),
    INFERENCEX: ("hw", "conc", "tput_per_gpu", "mean_ttft"),
    "k6": ("metrics.http_req_duration", "metrics.http_reqs"),
    "llama-batched-bench": ("pp", "tg", "pl", "t_pp", "t_tg"),
    "SGLang bench_one_batch": ("batch_size", "input_len", "output_len", "overall_throughput"),
}
#: what a tool's objects have in common
COMMON: Mapping[str, Mapping[str, float | str]] = {
    "trtllm-bench": {"engine": "tensorrt-llm", "arrival": "offline"},
    "llama-batched-bench": {"engine": "llama.cpp", "arrival": "offline"},
    "SGLang bench_one_batch": {"engine": "sglang", "arrival": "offline"},
}
MOST_REQUESTS = 100_000


def saved_report(body: Mapping[str, Any], line: int) -> Run | None:
    """A run that an object of a saved file describes; None where it is none of a tool of `report_paths.csv`.

    Parameters
    ----------
    body : mapping
        The object.
    line : int
        Where it stands.
    """
    for tool, marks in MARKS.items():
        if all(at_path(body, path) is not None for path in marks):
            columns = {**COMMON.get(tool, {}), **_figures(tool, body)}
            if tool == INFERENCEX:
                columns = _whole(columns)
            return run_of(tool, columns, line)
    return None


def at_path(body: Mapping[str, Any], path: str) -> Any:
    """The value behind names joined by dots; None where there is none."""
    found: Any = body
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _figures(tool: str, body: Mapping[str, Any]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for row in lines_of(PATHS, tool):
        given = at_path(body, row["path"])
        if isinstance(given, (str, int, float)) and not isinstance(given, bool) and str(given).strip():
            value = scaled(str(given), row["scale"])
            if value is not None:
                found.setdefault(row["column"], value)
    return found


def _whole(columns: Mapping[str, float | str]) -> dict[str, float | str]:
    """Throughput of the deployment from that of a GPU, whose name carries that of its operator."""
    found, gpus = dict(columns), columns.get("tp")
    for name in ("output_tok_s_total", "total_tok_s"):
        rate = found.pop(f"{name}_per_gpu", None)
        if isinstance(rate, float) and isinstance(gpus, float):
            found[name] = rate * gpus
    found["gpu"] = str(found.get("gpu", "")).partition("-")[0]
    return found


def recorded_requests(body: Mapping[str, Any], line: int) -> Iterable[Run]:
    """Runs of Perf Analyzer's profile export, which has the times of every request in nanoseconds.

    Parameters
    ----------
    body : mapping
        With `experiments`, each with its load and its requests.
    line : int
        Where it stands.
    """
    experiments = body.get("experiments")
    for one in experiments if isinstance(experiments, list) else []:
        load, requests = at_path(one, "experiment"), at_path(one, "requests")
        if not isinstance(load, dict) or not isinstance(requests, list):
            continue
        times = [_times(request) for request in requests[:MOST_REQUESTS] if isinstance(request, dict)]
        done = [stamps for stamps in times if len(stamps) >= 2 and stamps == sorted(stamps)]
        if not done:
            continue
        columns: dict[str, float | str] = {
            "n_requests": float(len(done)),
            "ttft_ms_mean": statistics.fmean(stamps[1] - stamps[0] for stamps in done) / 1e6,
            "e2e_s_mean": statistics.fmean(stamps[-1] - stamps[0] for stamps in done) / 1e9,
        }
        span = max(stamps[-1] for stamps in done) - min(stamps[0] for stamps in done)
        if span > 0:
            columns["req_s"] = 1e9 * len(done) / span
        value = load.get("value")
        if isinstance(value, (int, float)) and math.isfinite(value) and value > 0:
            name = "request_rate_rps" if load.get("mode") == "request_rate" else "concurrency"
            columns[name] = float(value)
        yield run_of(PERF_ANALYZER, columns, line)


def _times(request: Mapping[str, Any]) -> list[float]:
    """When a request was sent and when each part of its answer came; empty where it does not say."""
    sent, answers = request.get("timestamp"), request.get("response_timestamps")
    stamps = [sent, *answers] if isinstance(answers, list) else []
    sound = all(isinstance(stamp, (int, float)) and abs(stamp) < 1e19 for stamp in stamps)
    return [float(stamp) for stamp in stamps] if sound else []
