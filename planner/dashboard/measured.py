"""Published measurements beside the predictions: the rows, their errors, and the band of a headline figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import planner.catalog
from planner.planning import Plan
from planner.units import format_percent

ROWS_FILE = Path(planner.catalog.__file__).with_name("accuracy_rows.csv")
COLUMNS = ("source", "url", "kind", "model", "gpu", "engine", "class", "quantity", "measured", "predicted")
FEWEST = 20  # rows below which a class says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The likely error of one figure: half of the published measurements of its class lie within."""

    relative: float  # NaN when nothing is known
    text: str  # "± 12 % · " or ""
    meaning: str


@lru_cache(maxsize=1)
def accuracy_rows() -> pd.DataFrame | None:
    """Every compared measurement with its prediction; None when this copy ships without them."""
    try:
        rows = pd.read_csv(ROWS_FILE, comment="#")
    except (OSError, ValueError):
        return None
    if not set(COLUMNS) <= set(rows.columns):
        return None
    rows = rows[(rows["measured"] > 0) & (rows["predicted"] > 0)].reset_index(drop=True)
    if "peer_predicted" not in rows:
        rows["peer_predicted"] = np.nan
    return rows


@lru_cache(maxsize=64)
def _error(word: str, klass: str) -> tuple[float, int]:
    rows = accuracy_rows()
    if rows is None:
        return math.nan, 0
    kept = rows[rows["quantity"].str.contains(word, case=False) & (rows["class"].str.lower() == klass)]
    if len(kept) < FEWEST:
        return math.nan, len(kept)
    return float((kept["predicted"] / kept["measured"] - 1).abs().median()), len(kept)


def band_of(plan: Plan, word: str) -> Band:
    """The band of a latency figure (ttft, tpot, e2e): from published rows of the model's class, else step times.

    Returns
    -------
    Band
        Empty text when nothing is known, and the meaning says so.
    """
    klass = "moe" if plan.model.is_moe else "dense"
    relative, count = _error(word, klass)
    if math.isfinite(relative):
        meaning = f"The band: half of {count:,} published {klass} measurements lie within {format_percent(relative)}."
        return Band(relative=relative, text=f"± {format_percent(relative)} · ", meaning=meaning)
    step = plan.step_time.relative_error if plan.step_time is not None else 0.0
    if step > 0:
        meaning = f"The band: median error of step times of this class, {format_percent(step)}; queueing adds to it."
        return Band(relative=step, text=f"± {format_percent(step)} · ", meaning=meaning)
    return Band(
        relative=math.nan, text="", meaning="No published measurement of this class: an estimate of unknown error."
    )


def rows_like(rows: pd.DataFrame, plan: Plan, scope: str) -> pd.DataFrame:
    """The rows that resemble a plan in one respect."""
    if scope == "this GPU":
        return rows[rows["gpu"] == plan.gpu.name]
    if scope == "this engine":
        return rows[rows["engine"].str.lower().str.startswith(plan.engine.family)]
    if scope == "this model":
        return rows[rows["model"].str.rsplit("/", n=1).str[-1] == plan.model.name.rsplit("/", 1)[-1]]
    if scope.startswith("this class"):
        return rows[rows["class"].str.lower() == ("moe" if plan.model.is_moe else "dense")]
    return rows


def error_table(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Errors of ours, and of AIConfigurator on the rows that it predicts, per quantity and value of a column."""
    frame = rows.assign(
        signed=rows["predicted"] / rows["measured"] - 1,
        peer=(rows["peer_predicted"] / rows["measured"] - 1).abs(),
    )
    frame["absolute"] = frame["signed"].abs()
    frame["shared"] = frame["absolute"].where(frame["peer"].notna())
    grouped = frame.groupby(["quantity", column], sort=False)
    table = pd.DataFrame(
        {
            "rows": grouped.size(),
            "median error": grouped["absolute"].median(),
            "p90 error": grouped["absolute"].quantile(0.9),
            "signed median": grouped["signed"].median(),
            "shared rows": grouped["peer"].count(),
            "ours, shared": grouped["shared"].median(),
            "AIConfigurator": grouped["peer"].median(),
        }
    )
    return table.reset_index().sort_values(["quantity", "rows"], ascending=[True, False])
