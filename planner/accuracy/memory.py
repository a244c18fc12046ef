"""Predict what published start-up logs say, row by row: each is a Scenario, sized as `plan` sizes every other."""

from __future__ import annotations

import pandas as pd

from planner.accuracy.cells import reason_of
from planner.accuracy.memory_rows import MemoryCase, read_case
from planner.answer import size
from planner.scenario import Scenario
from planner.units import GIB

COLUMNS = (
    "pred_weights_gib_per_gpu",
    "pred_activation_peak_gib",
    "pred_non_torch_gib",
    "pred_cuda_graph_gib",
    "pred_available_kv_gib",
    "pred_kv_tokens",
    "pred_max_concurrency",
    "pred_est_max_model_len",
    "pred_outcome",
)


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str]]:
    """Predict every row of a memory file from its inputs.

    Parameters
    ----------
    frame : DataFrame
        Columns as in memory_cases.csv; what the engines printed is not read.

    Returns
    -------
    DataFrame
        `id` and the `pred_` columns of every row; blank where a row gives too little.
    dict of int to str
        Reason by row number (from 0) for rows of which nothing is predicted.
    """
    lines: list[dict[str, object]] = []
    skipped: dict[int, str] = {}
    for number, record in enumerate(frame.astype(object).fillna("").astype(str).to_dict("records")):
        row = {str(key): value for key, value in record.items()}
        lines.append({"id": row.get("id", str(number))})
        try:
            lines[-1] |= predicted(read_case(row))
        except Exception as error:  # one row that nobody foresaw must not stop the others
            skipped[number] = reason_of(error)
    return pd.DataFrame(lines, columns=["id", *COLUMNS]), skipped


def memory_columns(scenario: Scenario) -> dict[str, float]:
    """Figures of a start as a log would print them, by column of memory_cases.csv: GiB, tokens, sequences."""
    values = predicted(MemoryCase(scenario=scenario, gpu_known=True))
    return {
        name.removeprefix("pred_"): float(value) for name, value in values.items() if isinstance(value, (int, float))
    }


def predicted(case: MemoryCase) -> dict[str, object]:
    """Predicted columns of one case; without a named GPU no pool, and the outcome on the form's default GPU.

    Parameters
    ----------
    case : MemoryCase
        As `read_case` gives it.

    Returns
    -------
    dict
        `pred_` column to value [GiB, tokens, sequences].
    """
    memory = size(case.scenario, explain=False).memory
    values: dict[str, object] = {
        "pred_weights_gib_per_gpu": memory.weights_bytes / GIB,
        "pred_activation_peak_gib": memory.activation_bytes / GIB,
        "pred_non_torch_gib": memory.non_torch_bytes / GIB,
        "pred_cuda_graph_gib": memory.cuda_graph_bytes / GIB,
        "pred_outcome": memory.outcome,
        # engines print it only when they refuse the length; it is worth knowing before, too
        "pred_est_max_model_len": min(memory.held_length_tokens, case.scenario.max_model_len) or None,
    }
    if case.gpu_known:
        values |= {
            "pred_available_kv_gib": memory.kv_pool_bytes / GIB,
            "pred_kv_tokens": memory.kv_tokens,
            "pred_max_concurrency": memory.max_concurrency,
        }
    return values
