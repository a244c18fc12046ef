"""Published sweeps over concurrency: errors as another tool states its own, and what following our advice would lose.

In: rows of the Accuracy page and the measured file with the settings of each run. Out: one line per run with both
latencies, its deployment, and the errors of level, of shape and of decisions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).parent / "data"
MEASURED = DATA / "measured" / "serving_benchmarks.csv"
STATED = DATA / "stated_by_peers.csv"
#: the runs that peers state their error on
INFERENCEX = "inferencex-db"
LATENCIES = {"ttft": "ttft_ms_mean", "tpot": "tpot_ms_mean"}
TOOLS = ("predicted", "left_out", "peer")
DEPLOYMENT = ("gpu", "engine", "engine_version", "date", "weight_dtype", "kv_dtype", "tp", "pp", "ep", "n_gpus")
WORKLOAD = ("source", "model", "isl", "osl")
#: speeds that a user may want, and how far a pick may fall short of one [tokens/s per user]
SPEEDS = (15, 30, 60, 100)
SHORT = 0.95
LEAST_POINTS, LEAST_DEPLOYMENTS = 6, 2


@lru_cache(maxsize=1)
def measured_runs() -> pd.DataFrame:
    """Settings of every published serving run, from the project's copy of the measurements."""
    return pd.read_csv(MEASURED, dtype={"id": str, "engine_version": str}, low_memory=False)


def sweeps(rows: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Closed-loop runs with TTFT and TPOT, measured and as each tool predicts them.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of `accuracy/data/accuracy_rows.csv`: id, quantity, measured, predicted, left_out, peer.
    runs : pandas.DataFrame, optional
        Settings by id; those of the project's measurements without it.

    Returns
    -------
    pandas.DataFrame
        id, the columns of `WORKLOAD` and `DEPLOYMENT`, concurrency, deployment (a text that names it), first (id of its
        run at the lowest concurrency), and `<latency>_<tool>` in ms: NaN where a tool predicts nothing.
    """
    runs = measured_runs() if runs is None else runs
    closed = runs[
        (runs["arrival"] == "concurrency") & ~runs["notes"].fillna("").str.contains("SPECULATIVE DECODING ON")
    ]
    table = closed[["id", *WORKLOAD, *DEPLOYMENT, "concurrency"]].copy()
    for name, quantity in LATENCIES.items():
        table[f"{name}_measured"] = table["id"].map(closed.set_index("id")[quantity].astype(float))
        known = rows[rows["quantity"] == quantity].drop_duplicates("id").set_index("id")
        for tool in TOOLS:
            column = next((column for column in (tool, f"{tool}_predicted") if column in known), None)
            table[f"{name}_{tool}"] = np.nan if column is None else table["id"].map(known[column])
    table = table[table["tpot_measured"].gt(0)]
    table["deployment"] = [_named(row) for row in table.to_dict("records")]
    own = [*WORKLOAD, "deployment"]
    table = table.sort_values([*own, "concurrency"], kind="stable").reset_index(drop=True)
    table["first"] = table.groupby(own, dropna=False)["id"].transform("first")
    return table


def _named(row: Mapping[Hashable, object]) -> str:
    """Deployment in words: GPUs, engine and version, weights, split, and when it ran."""

    def text(name: str) -> str:
        value = row[name]
        return "" if value is None or value != value else str(value)

    width = " × ".join(f"{kind} {float(text(name)):.0f}" for kind, name in (("TP", "tp"), ("PP", "pp"), ("EP", "ep"))
                       if text(name) and float(text(name)) > 1) or "TP 1"  # fmt: skip
    engine = f"{text('engine')} {text('engine_version')}".strip()
    parts = (text("gpu"), engine, text("weight_dtype"), text("kv_dtype") and f"KV {text('kv_dtype')}", width)
    return ", ".join(part for part in (*parts, text("date")) if part)


def curve_errors(table: pd.DataFrame, tool: str, latency: str) -> pd.DataFrame:
    """Errors of one tool at every run of the sweeps.

    Parameters
    ----------
    table : pandas.DataFrame
        `sweeps`.
    tool : str
        One of `TOOLS`.
    latency : str
        ttft or tpot.

    Returns
    -------
    pandas.DataFrame
        level: |predicted ÷ measured − 1|; shape: the same once both curves are divided by their own value at the lowest
        concurrency of the deployment, NaN there and for deployments of one run.
    """
    measured, predicted = table[f"{latency}_measured"], table[f"{latency}_{tool}"]
    start = table["first"].map(table.set_index("id")[f"{latency}_measured"])
    guess = table["first"].map(table.set_index("id")[f"{latency}_{tool}"])
    shape = ((predicted / guess) / (measured / start) - 1).abs().where(table["first"] != table["id"])
    return pd.DataFrame({"level": (predicted / measured - 1).abs(), "shape": shape})


def peer_measures(table: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute errors as AISimulate states them, of each tool on the InferenceX runs, beside what peers state.

    Returns
    -------
    pandas.DataFrame
        tool, points, coverage_pct (of the measured runs, NaN where only stated), tpot_mape_pct, ttft_mape_pct,
        tpot_shape_pct, ttft_shape_pct.
    """
    own = table[table["source"].str.contains(INFERENCEX, regex=False)]
    names = {
        "left_out": "Headroom, source left out",
        "predicted": "Headroom, as it ships",
        "peer": "AIConfigurator 0.12, run here",
    }
    lines: list[dict[str, object]] = []
    for tool, title in names.items():
        line: dict[str, object] = {"tool": title, "points": int(own[f"tpot_{tool}"].notna().sum())}
        line["coverage_pct"] = 100 * own[f"tpot_{tool}"].notna().mean()
        for latency in ("tpot", "ttft"):
            errors = curve_errors(own, tool, latency)
            line[f"{latency}_mape_pct"] = 100 * errors["level"].mean()
            line[f"{latency}_shape_pct"] = 100 * errors["shape"].mean()
        lines.append(line)
    stated = pd.read_csv(STATED, comment="#").drop(columns="source").assign(coverage_pct=np.nan)
    stated["tool"] += ", as it states"
    return pd.concat([pd.DataFrame(lines), stated], ignore_index=True)


def decisions(table: pd.DataFrame, tool: str) -> pd.DataFrame:
    """What a user loses who follows a tool through published sweeps.

    For one source, model and workload several deployments were measured at several concurrencies. The user wants a
    speed per user and the most throughput per GPU, and takes the run that the tool's predictions make best.

    Parameters
    ----------
    table : pandas.DataFrame
        `sweeps`.
    tool : str
        One of `TOOLS`.

    Returns
    -------
    pandas.DataFrame
        source, model, isl, osl, tokens_per_s, regret (share of the best measured throughput per GPU that is lost) and
        miss (whether the run taken is more than 5 % slower than wanted).
    """
    known = table[table[[f"tpot_{tool}", f"ttft_{tool}", "ttft_measured"]].notna().all(axis=1)].copy()
    gpus = known["n_gpus"].fillna(known["tp"])
    for name in ("measured", tool):
        end_to_end_s = (known[f"ttft_{name}"] + known[f"tpot_{name}"] * (known["osl"] - 1)) / 1e3
        known[f"rate_{name}"] = known["concurrency"] * known["osl"] / end_to_end_s / gpus
    lines = []
    split = ["gpu", "engine", "tp", "ep", "weight_dtype", "n_gpus"]
    for key, sweep in known.groupby(list(WORKLOAD)):
        if len(sweep) < LEAST_POINTS or sweep.groupby(split, dropna=False).ngroups < LEAST_DEPLOYMENTS:
            continue
        for speed in SPEEDS:
            best = sweep[1e3 / sweep["tpot_measured"] >= speed]["rate_measured"].max()
            if not best > 0:
                continue
            fast = sweep[1e3 / sweep[f"tpot_{tool}"] >= speed]
            pick = fast.sort_values(f"rate_{tool}", kind="stable").iloc[-1] if len(fast) else None
            lines.append(
                {
                    **dict(zip(WORKLOAD, key, strict=True)),
                    "tokens_per_s": speed,
                    "regret": 1.0 if pick is None else max(0.0, 1 - pick["rate_measured"] / best),
                    "miss": pick is None or 1e3 / pick["tpot_measured"] < SHORT * speed,
                }
            )
    return pd.DataFrame(lines)


def decision_figures(table: pd.DataFrame) -> pd.DataFrame:
    """Decisions of each tool in figures: tool, decisions, mean and p90 regret of those that hit, and misses. [%]"""
    names = {
        "left_out": "Headroom, source left out",
        "predicted": "Headroom, as it ships",
        "peer": "AIConfigurator 0.12",
    }
    lines = []
    for tool, title in names.items():
        made = decisions(table, tool)
        if made.empty:
            continue
        hit = made.loc[~made["miss"].astype(bool), "regret"]
        lines.append(
            {
                "tool": title,
                "decisions": len(made),
                "mean_regret_pct": 100 * hit.mean(),
                "p90_regret_pct": 100 * hit.quantile(0.9),
                "miss_pct": 100 * made["miss"].mean(),
            }
        )
    return pd.DataFrame(lines)
