"""A running engine's Prometheus text (`/metrics`) as columns of a serving row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from planner.reading.figures import Understood
from planner.reading.runs import Run
from planner.reading.text import Line

_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[-+\d.eE]+|\+?Inf|NaN)(?:\s+\d+)?$"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
#: histogram of the engine, the column that it fills, and what turns its unit into the column's
HISTOGRAMS = {
    "vllm:time_to_first_token_seconds": ("ttft_ms", 1e3),
    "vllm:time_per_output_token_seconds": ("itl_ms", 1e3),
    "vllm:inter_token_latency_seconds": ("itl_ms", 1e3),
    "vllm:request_time_per_output_token_seconds": ("tpot_ms", 1e3),
    "vllm:e2e_request_latency_seconds": ("e2e_s", 1.0),
    "vllm:request_prompt_tokens": ("isl", 1.0),
    "vllm:request_generation_tokens": ("osl", 1.0),
    "vllm:request_queue_time_seconds": ("queue_ms", 1e3),
    "sglang:time_to_first_token_seconds": ("ttft_ms", 1e3),
    "sglang:inter_token_latency_seconds": ("itl_ms", 1e3),
    "sglang:e2e_request_latency_seconds": ("e2e_s", 1.0),
    "tgi_request_duration": ("e2e_s", 1.0),
    "tgi_request_queue_duration": ("queue_ms", 1e3),
    "tgi_request_input_length": ("isl", 1.0),
    "tgi_request_generated_tokens": ("osl", 1.0),
}
#: tokens of all requests, whose mean fills the column where the engine has no histogram of them
COUNTERS = {
    "vllm:prompt_tokens_total": "isl",
    "vllm:generation_tokens_total": "osl",
    "sglang:prompt_tokens_total": "isl",
    "sglang:generation_tokens_total": "osl",
}
GAUGES = {
    "vllm:num_requests_running": "running_requests",
    "vllm:num_requests_waiting": "waiting_requests",
    "vllm:kv_cache_usage_perc": "kv_used_fraction",
    "vllm:gpu_cache_usage_perc": "kv_used_fraction",
    "sglang:num_running_reqs": "running_requests",
    "sglang:token_usage": "kv_used_fraction",
    "tgi_batch_current_size": "running_requests",
    "tgi_queue_size": "waiting_requests",
}
#: histograms that count every token and not every request
PER_TOKEN = (
    "vllm:time_per_output_token_seconds",
    "vllm:inter_token_latency_seconds",
    "sglang:inter_token_latency_seconds",
)
_PREFIX = re.compile(r"vllm|sglang|tgi")


def _number(text: str) -> float:
    """A number of a sample, NaN where the text is none, such as a date."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def metrics_in(lines: tuple[Line, ...]) -> Run | None:
    """Averages and quantiles since the engine started, from its counters.

    Parameters
    ----------
    lines : tuple of Line
        Text of /metrics of vLLM, SGLang or TGI; of several engines behind one address, all together.

    Returns
    -------
    Run or None
        Means from sum ÷ count; p50, p95 and p99 interpolated within their bucket, as Prometheus' histogram_quantile
        does. None where no such metric is in the text.
    """
    sums: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    columns: dict[str, float | str] = {}
    understood: dict[str, Understood] = {}
    where: dict[str, int] = {}
    totals: dict[str, tuple[float, int]] = {}
    for line in lines:
        match = _SAMPLE.match(line.text.strip())
        if match is None:
            continue
        name, value = match["name"], _number(match["value"])
        labels = dict(_LABEL.findall(match["labels"] or ""))
        base = re.sub(r"_(?:bucket|sum|count)$", "", name)
        if base in HISTOGRAMS and math.isfinite(value):
            where.setdefault(base, line.number)
            if name.endswith("_bucket"):
                edge, held = _number(labels.get("le", "inf")), buckets.setdefault(base, {})
                if not math.isnan(edge):
                    held[edge] = held.get(edge, 0.0) + value
            else:
                sums[name] = sums.get(name, 0.0) + value
        elif name in GAUGES and math.isfinite(value):
            columns[GAUGES[name]] = value
            understood[GAUGES[name]] = Understood(name=GAUGES[name], value=value, unit="", line=line.number)
        elif name in COUNTERS and math.isfinite(value):
            column = COUNTERS[name]
            totals[column] = totals.get(column, (0.0, line.number))[0] + value, line.number
        if base in HISTOGRAMS or name in GAUGES:
            prefix = _PREFIX.match(name)
            columns.setdefault("engine", prefix[0] if prefix else "")
        if (base in HISTOGRAMS or name in GAUGES) and "model" not in columns and labels.get("model_name"):
            columns["model"] = labels["model_name"]
            understood["model"] = Understood(name="model", value=labels["model_name"], unit="", line=line.number)
    for base, line_number in where.items():
        for column, value in _figures(base, sums, buckets.get(base, {})).items():
            if column not in columns:
                columns[column] = value
                unit = "ms" if "_ms" in column else "s" if "_s_" in column else "tokens"
                understood[column] = Understood(name=column, value=value, unit=unit, line=line_number)
    if not understood:
        return None
    count = max((sums.get(f"{base}_count", 0.0) for base in where if base not in PER_TOKEN), default=0.0)
    if count:
        columns["n_requests"] = count
        for column, (total, line_number) in totals.items():
            if column not in columns and total:
                columns[column] = total / count
                understood[column] = Understood(name=column, value=total / count, unit="tokens", line=line_number)
    return Run(tool="Prometheus metrics", columns=columns, understood=tuple(understood.values()))


def _figures(base: str, sums: Mapping[str, float], buckets: Mapping[float, float]) -> dict[str, float]:
    column, scale = HISTOGRAMS[base]
    count = sums.get(f"{base}_count", 0.0)
    if count <= 0:
        return {}
    mean = scale * sums.get(f"{base}_sum", 0.0) / count
    if column in ("isl", "osl"):
        return {column: mean}
    found = {f"{column}_mean": mean}
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        value = histogram_quantile(share, buckets)
        if value is not None:
            found[f"{column}_{name}"] = scale * value
    return found


def histogram_quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """Quantile of a cumulative histogram, linear within its bucket; None where it lies in the open last one.

    Parameters
    ----------
    share : float
        0 to 1.
    buckets : mapping
        Upper edge to how many values lie at or below it.

    Returns
    -------
    float or None
        In the unit of the edges. Source: Prometheus documentation, histogram_quantile.
    """
    edges = sorted(buckets)
    if not edges or buckets[edges[-1]] <= 0:
        return None
    target = share * buckets[edges[-1]]
    below, low = 0.0, 0.0
    for edge in edges:
        if buckets[edge] >= target:
            if math.isinf(edge):
                return None
            inside = buckets[edge] - below
            return low + (edge - low) * ((target - below) / inside if inside > 0 else 1.0)
        below, low = buckets[edge], edge
    return None
