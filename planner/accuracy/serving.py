"""Predictions of published serving benchmarks: each row is planned as a user would plan it.

A row becomes a Scenario (`serving_rows`), and `size` and `run_fleet`, which `plan()` calls too, give its figures. No
parameter belongs to a row, a model or a benchmark.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from planner.accuracy.cells import reason_of
from planner.accuracy.serving_rows import MeasuredRun, RowSkipped, read_run
from planner.answer import replica_of, size
from planner.scenario import Scenario
from planner.service import ServingMetrics, run_fleet
from planner.workload import draw

COLUMNS = (
    "pred_output_tok_s_total",
    "pred_total_tok_s",
    "pred_req_s",
    "pred_ttft_ms_mean",
    "pred_ttft_ms_p50",
    "pred_tpot_ms_mean",
    "pred_tpot_ms_p50",
    "pred_e2e_s_mean",
    "pred_ttft_ms_p99",
    "pred_tpot_ms_p99",
)


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str]]:
    """Predict every row of a serving benchmark file.

    Parameters
    ----------
    frame : DataFrame
        Rows with the columns of `serving_benchmarks.csv`.

    Returns
    -------
    DataFrame
        `id` and `pred_<quantity>` of every row, blank where skipped.
    dict of int to str
        Why a row was skipped, by its number from 0.
    """
    served: dict[Scenario, ServingMetrics | str] = {}
    lines: list[dict[str, Any]] = []
    skipped: dict[int, str] = {}
    for number, published in enumerate(frame.to_dict("records")):
        row = {str(key): value for key, value in published.items()}
        lines.append({"id": row.get("id", str(number))})
        try:
            run = read_run(row)
            key = run.scenario.replace(title="")
            if key not in served:
                served[key] = serve(key)
            lines[-1] |= figures(run, served[key])
        except Exception as error:  # one row that nobody foresaw must not stop the others
            skipped[number] = reason_of(error)
    return pd.DataFrame(lines, columns=["id", *COLUMNS]), skipped


def serve(scenario: Scenario) -> ServingMetrics | str:
    """How a fixed deployment serves its requests, as `plan()` computes it; the reason as text if it does not start."""
    sized = size(scenario, explain=False)
    if not sized.fits:
        return f"by our sizing the engine does not start: {sized.memory.refusal}"
    return run_fleet(scenario, replica_of(sized), draw(scenario), scenario.num_replicas or 1).metrics


def serving_columns(scenario: Scenario) -> dict[str, float]:
    """Figures of a run by column of serving_benchmarks.csv; empty where the engine does not start or nothing finishes.

    A run without a stated number of replicas is one replica's.
    """
    metrics = serve(scenario.replace(title=""))
    if isinstance(metrics, str) or metrics.num_finished == 0:
        return {}
    found = figures(MeasuredRun(scenario=scenario), metrics)
    return {name.removeprefix("pred_"): value for name, value in found.items() if math.isfinite(value)}


def figures(run: MeasuredRun, metrics: ServingMetrics | str) -> dict[str, float]:
    """The published quantities of a run: rates over all GPUs, TTFT and TPOT in milliseconds, end to end in seconds.

    Raises
    ------
    RowSkipped
        When the engine does not start, or no request is finished.
    """
    if isinstance(metrics, str):
        raise RowSkipped(metrics)
    if metrics.num_finished == 0:
        raise RowSkipped("no request finished in the simulation")
    tokens = metrics.output_tokens_per_s
    if run.decode_only:
        at_once = run.scenario.concurrent_users if run.scenario.arrivals == "closed" else run.scenario.num_requests
        tokens = at_once / metrics.tpot_s.mean if metrics.tpot_s.mean > 0 else math.nan
    return {
        "pred_output_tok_s_total": tokens,
        "pred_total_tok_s": metrics.total_tokens_per_s,
        "pred_req_s": metrics.requests_per_s,
        "pred_ttft_ms_mean": 1e3 * metrics.ttft_s.mean,
        "pred_ttft_ms_p50": 1e3 * metrics.ttft_s.p50,
        "pred_tpot_ms_mean": 1e3 * metrics.tpot_s.mean,
        "pred_tpot_ms_p50": 1e3 * metrics.tpot_s.p50,
        "pred_e2e_s_mean": metrics.e2e_s.mean,
        "pred_ttft_ms_p99": 1e3 * metrics.ttft_s.p99,
        "pred_tpot_ms_p99": 1e3 * metrics.tpot_s.p99,
    }
