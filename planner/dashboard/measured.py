"""Published measurements beside the predictions: the rows and their errors."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import planner.catalog
from planner.answer import Plan

ROWS_FILE = Path(planner.catalog.__file__).with_name("accuracy_rows.csv")
COLUMNS = ("source", "kind", "model", "gpu", "engine", "class", "quantity", "measured", "predicted")


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
    rows = rows.rename(columns={"peer": "peer_predicted"})
    if "peer_predicted" not in rows:
        rows["peer_predicted"] = np.nan
    for name in ("model", "gpu", "engine", "class", "source"):
        rows[name] = rows[name].fillna("").astype(str)
    return rows


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
