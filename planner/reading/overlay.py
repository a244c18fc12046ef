"""Predicted beside actual, and the settings whose other value would explain the difference.

A reason is not looked up in a list of words: each setting that the file leaves open is changed on the model, one at a
time, and those that bring the prediction closest are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy import memory_columns, serving_columns
from planner.answer import size
from planner.catalog import get_gpu, gpu_names, release_names
from planner.errors import PlannerError
from planner.reading.peers import peer_figures
from planner.reading.reading import Reading
from planner.scenario import Scenario, fields_by_name

#: figures of a start, in GiB, tokens or sequences, that a plan predicts under the same name
START_FIGURES = (
    *("weights_gib_per_gpu", "activation_peak_gib", "non_torch_gib", "available_kv_gib", "kv_tokens"),
    *("max_concurrency", "est_max_model_len"),
)
#: figures of a run; latencies in ms or s, rates per second over all GPUs
RUN_FIGURES = (
    *("ttft_ms_mean", "ttft_ms_p50", "tpot_ms_mean", "tpot_ms_p50", "e2e_s_mean"),
    *("output_tok_s_total", "total_tok_s", "req_s"),
)
#: figures that another planner predicts
PEER_FIGURES = (
    *("ttft_ms_mean", "tpot_ms_mean", "e2e_s_mean", "ttft_ms_p95", "itl_ms_p95", "e2e_s_p95"),
    *("output_tok_s_total", "req_s"),
)
SMALL_GIB = 0.3  # parts of the memory below this are no reason to look further
NOTABLE = 0.5  # a reason must take away half of the error
MOST_REASONS = 3
MOST_RELEASES = 12
WITH_CUDA_GRAPHS = ("NVIDIA", "AMD")  # AMD's builds print the same lines
COMMON_GPUS = (
    *("H100 SXM", "H200 SXM", "B200", "A100 SXM 80GB", "L40S", "L4", "A10G", "RTX 4090", "RTX 5090", "MI300X"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure as the file states it and as the plan predicts it, in the same unit."""

    name: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted ÷ measured − 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A setting that the file does not state, and the value that fits it better.

    `error` is the root mean square of ln(predicted ÷ measured) over the figures, with that value; `scenario` has it.
    """

    label: str
    field: str
    value: Any
    error: float
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A file's figures beside the plan's, and what would explain the difference, the likeliest first.

    `refusal` is the engine's message where, by our sizing, it does not start as the file describes it. `predicted_by`
    names the other planner whose predictions the figures are; "": they were measured.
    """

    rows: tuple[Compared, ...]
    error: float
    reasons: tuple[Reason, ...]
    refusal: str = ""
    predicted_by: str = ""


def overlay(reading: Reading) -> Overlay:
    """Predicted beside actual for what a file states.

    Parameters
    ----------
    reading : Reading
        Of a start-up log or of a benchmark; of several runs the first is compared.

    Returns
    -------
    Overlay
        Without rows where the file states nothing that a plan predicts, or describes no plan. An engine that by our
        sizing does not start predicts no figure of a run.
    """
    scenario = reading.scenario
    if scenario is None or reading.traffic is not None:
        return Overlay(rows=(), error=math.inf, reasons=())
    measured = _measured(reading)
    predict = _predictor(reading)
    rows = _compared(measured, predict(scenario))
    error = _error(rows)
    peer = next((run.tool.partition("'s ")[0] for run in reading.runs[:1] if run.is_prediction), "")
    if peer:  # two predictions: no setting explains the one by the other
        refusal = size(scenario, explain=False).memory.refusal
        return Overlay(rows=rows, error=error, reasons=(), refusal=refusal, predicted_by=peer)
    stated = {item.name for item in reading.understood}
    tried: list[Reason] = []
    for label, field, value in _candidates(reading, scenario, stated, rows):
        try:
            changed = scenario.replace(**{field: value})
            compared = _compared(measured, predict(changed))
        except PlannerError:
            continue
        after = (
            _error(compared) if len(compared) >= max(1, len(rows)) else math.inf
        )  # what does not start explains nothing
        if after < (1 - NOTABLE) * error:
            tried.append(Reason(label=label, field=field, value=value, error=after, scenario=changed))
    best: dict[str, Reason] = {}
    for reason in sorted(tried, key=_likeliest):
        best.setdefault(reason.field, reason)
    return Overlay(
        rows=rows,
        error=error,
        reasons=tuple(best.values())[:MOST_REASONS] if measured else (),
        refusal=size(scenario, explain=False).memory.refusal,
    )


def _likeliest(reason: Reason) -> tuple[float, bool, float]:
    """Order of reasons: the closest first; of boards that fit alike, one that most people rent."""
    return round(reason.error, 2), reason.field == "gpu" and reason.value not in COMMON_GPUS, reason.error


def _measured(reading: Reading) -> dict[str, float]:
    if reading.runs:
        columns, names = reading.runs[0].columns, PEER_FIGURES if reading.runs[0].is_prediction else RUN_FIGURES
        return {name: float(columns[name]) for name in names if isinstance(columns.get(name), float)}
    return {name: reading.measured[name] for name in START_FIGURES if name in reading.measured}


def _predictor(reading: Reading) -> Callable[[Scenario], Mapping[str, float]]:
    if reading.runs and reading.runs[0].is_prediction:
        return peer_figures
    return serving_columns if reading.runs else memory_columns


def _compared(measured: Mapping[str, float], predicted: Mapping[str, float]) -> tuple[Compared, ...]:
    return tuple(
        Compared(name=name, measured=value, predicted=predicted[name])
        for name, value in measured.items()
        if value > 0 and predicted.get(name, 0.0) > 0
    )


def _error(rows: Iterable[Compared]) -> float:
    """Root mean square of ln(predicted ÷ measured), infinite without a figure; little memory counts for nothing."""
    logs = []
    for row in rows:
        small = row.name.endswith("_gib") and max(row.measured, row.predicted) < SMALL_GIB
        logs.append(0.0 if small else math.log(row.predicted / row.measured))
    return math.sqrt(sum(value * value for value in logs) / len(logs)) if logs else math.inf


def _candidates(
    reading: Reading, scenario: Scenario, stated: set[str], rows: Iterable[Compared]
) -> Iterable[tuple[str, str, Any]]:
    """Settings that the file leaves open, with the values to try: (words, field, value)."""
    if any(item.text == "GPU" for item in reading.not_understood):
        # a log of memory is quick to size on every board; a run is simulated, on those that most people rent
        graphs = any(item.name.startswith("cuda_graph") for item in reading.understood)
        for name in COMMON_GPUS if reading.runs else gpu_names():
            if graphs and get_gpu(name).vendor not in WITH_CUDA_GRAPHS:
                continue
            yield f"GPU: {name}", "gpu", name
    labels = {name: str(item.metadata["label"]) for name, item in fields_by_name().items()}
    if "engine_version" not in stated:
        for version in release_names(scenario.engine_settings.family)[-MOST_RELEASES:]:
            yield f"{labels['engine_version']} {version}", "engine_version", version
    tries: list[tuple[str, tuple[Any, ...]]] = [
        ("enforce_eager", (not scenario.enforce_eager,)),
        ("kv_cache_dtype", ("fp8", "bf16")),
        ("max_num_seqs", (64, 128, 256, 512, 1024)),
        ("max_num_batched_tokens", (2048, 8192, 16384)),
    ]
    if reading.runs:
        prompt = round(scenario.prompt_mean_tokens)
        tries += [
            ("shared_prefix_tokens", tuple(round(share * prompt) for share in (0.25, 0.5, 0.75, 0.9))),
            ("num_speculative_tokens", (1, 2, 3)),
            ("measured_requests", ("all", "steady")),
            ("tensor_parallel_size", (2, 4, 8)),
        ]
    else:
        tries += [("gpu_memory_utilization", (0.8, 0.85, 0.9, 0.92, 0.95)), ("media", ("none",))]
        taken = next((row for row in rows if row.name == "available_kv_gib"), None)
        if taken is not None and taken.predicted - taken.measured > SMALL_GIB:
            tries.append(("occupied_gib", (round(taken.predicted - taken.measured, 1),)))
    for field, values in tries:
        if field in stated:
            continue
        for value in values:
            if value != getattr(scenario, field):
                yield f"{labels[field]}: {_shown(value)}", field, value


def _shown(value: Any) -> str:
    return (
        ("on" if value else "off")
        if isinstance(value, bool)
        else f"{value:,}"
        if isinstance(value, int)
        else f"{value}"
    )


def overlay_text(found: Overlay) -> str:
    """The comparison as text: each figure, then what would explain the difference."""
    lines = [f"By our sizing the engine does not start like this: {found.refusal}"] if found.refusal else []
    if not found.rows and not found.reasons:
        return "\n".join([*lines, "The file states no figure that this plan predicts."])
    if found.rows:
        theirs, ours = (found.predicted_by, "Headroom") if found.predicted_by else ("measured", "predicted")
        lines.append(f"{'':22} {theirs:>14} {ours:>12} {'difference' if found.predicted_by else 'error':>10}")
    lines += [f"{row.name:22} {row.measured:14,.6g} {row.predicted:12,.6g} {row.error:+10.1%}" for row in found.rows]
    if found.reasons:
        lines.append("The file does not state these; each alone would explain most of the difference:")
        before = f"error {found.error:.1%} → " if math.isfinite(found.error) else "error "
        lines += [f"  {item.label} ({before}{item.error:.1%})" for item in found.reasons]
    return "\n".join(lines)
