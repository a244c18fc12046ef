"""Published sweeps on the Accuracy page: errors by model and deployment, decisions, and the coverage of our bands."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from planner.accuracy import bands, sweeps
from planner.arrays import Floats
from planner.dashboard.published import accuracy_rows
from planner.step_time import KERNELS_MEASURED, NOTHING_MEASURED, SAME_ARCHITECTURE
from planner.units import counted

LATENCY_TITLES = {"tpot": "Time per output token", "ttft": "Time to first token"}
LINES = {"measured": "measured", "predicted": "Headroom", "left_out": "Headroom, source left out",
         "peer": "AIConfigurator 0.12"}  # fmt: skip
MEASURED_ON = {
    KERNELS_MEASURED: "this GPU with this engine",
    SAME_ARCHITECTURE: "this architecture",
    NOTHING_MEASURED: "neither",
}
COLUMNS = {"tpot_mape_pct": "TPOT error", "ttft_mape_pct": "TTFT error", "tpot_shape_pct": "TPOT shape",
           "ttft_shape_pct": "TTFT shape", "coverage_pct": "coverage"}  # fmt: skip


@lru_cache(maxsize=1)
def swept() -> pd.DataFrame:
    """`planner.accuracy.sweeps.sweeps` of the page's rows, once per process; empty where this copy has none."""
    rows = accuracy_rows()
    return pd.DataFrame() if rows is None or "left_out" not in rows else sweeps.sweeps(rows)


def by_model(table: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute errors of left-out predictions by model: deployments, runs, level and shape of both latencies."""
    parts = {}
    for latency in LATENCY_TITLES:
        errors = sweeps.curve_errors(table, "left_out", latency)
        parts[f"{LATENCY_TITLES[latency]}"] = errors["level"]
        parts[f"{LATENCY_TITLES[latency]}, shape"] = errors["shape"]
    frame = pd.DataFrame(parts).assign(model=table["model"], first=table["first"])
    grouped = frame.groupby("model")
    out = grouped[list(parts)].mean()
    out.insert(0, "runs", grouped.size())
    out.insert(0, "deployments", grouped["first"].nunique())
    return out.sort_values("runs", ascending=False).reset_index()


def deployments(table: pd.DataFrame, model: str) -> dict[str, str]:
    """Deployments of a model with its workload, by the id of their first run; those with most runs first."""
    own = table[table["model"] == model]
    found = {}
    for first, sweep in sorted(own.groupby("first"), key=lambda item: -len(item[1])):
        row, runs = sweep.iloc[0], counted(len(sweep), "run")
        found[str(first)] = f"{row['deployment']}: {row['isl']:,.0f} → {row['osl']:,.0f} tokens, {runs}"
    return found


def lines_of(table: pd.DataFrame, first: str, latency: str) -> tuple[Floats, dict[str, Floats]]:
    """Concurrency and the lines to draw for one deployment: measured, ours, ours left out, AIConfigurator's."""
    own = table[table["first"] == first].drop_duplicates("concurrency")
    values = {title: own[f"{latency}_{name}"].to_numpy(np.float64) for name, title in LINES.items()}
    return own["concurrency"].to_numpy(np.float64), values


def model_of(table: pd.DataFrame, first: str) -> str:
    """Model of a deployment by the id of its first run; "" where the link names none that is known."""
    own = table.loc[table["first"] == first, "model"]
    return str(own.iloc[0]) if len(own) else ""


def peer_table(table: pd.DataFrame) -> pd.DataFrame:
    """Our mean errors on InferenceX beside those that AISimulate states, as shares."""
    found = sweeps.peer_measures(table)
    for name in COLUMNS:
        found[name] = found[name] / 100
    return found.rename(columns=COLUMNS)[["tool", "points", *COLUMNS.values()]]


def decision_table(table: pd.DataFrame) -> pd.DataFrame:
    """What following each tool's advice loses, as shares."""
    found = sweeps.decision_figures(table)
    names = {"mean_regret_pct": "mean loss", "p90_regret_pct": "p90 loss", "miss_pct": "too slow"}
    for name in names:
        found[name] = found[name] / 100
    return found.rename(columns=names)


def coverage_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How many left-out rows lie inside the bands that the pages show, by evidence, as shares."""
    serving = rows[rows["kind"] == "serving"].fillna({"family": "", "evidence": "", "group": ""})
    stored = pd.read_csv(bands.FILE, keep_default_na=False)
    found = bands.coverage(serving, stored)
    titles = {"": "TTFT, TPOT and throughput", "ttft": "TTFT", "tpot": "TPOT", "throughput": "throughput"}
    return pd.DataFrame(
        {
            "kernels measured on": found["evidence"].map(MEASURED_ON),
            "quantity": found["quantity"].map(titles),
            "rows": found["rows"],
            "sources": found["sources"],
            "in the 50 % band": found["inside_50_pct"] / 100,
            "in the 90 % band": found["inside_90_pct"] / 100,
        }
    )
