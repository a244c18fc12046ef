"""Published measurements beside our predictions, and their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import planner.accuracy
from planner.accuracy import find_gpu, find_model
from planner.answer import Plan
from planner.cost import normalised
from planner.tables import read_table
from planner.units import format_percent

ROWS_FILE = Path(planner.accuracy.__file__).parent / "data" / "accuracy_rows.csv"
COLUMNS = ("source", "kind", "model", "gpu", "engine", "class", "quantity", "measured", "predicted")


@lru_cache(maxsize=1)
def accuracy_rows() -> pd.DataFrame | None:
    """Every measurement with its prediction; None where this copy has no such file."""
    try:
        rows = pd.read_csv(ROWS_FILE)  # its links hold #, so it has no comments
    except (OSError, ValueError):
        return None
    if not set(COLUMNS) <= set(rows.columns):
        return None
    rows = rows[(rows["measured"] > 0) & (rows["predicted"] > 0)].reset_index(drop=True)
    rows = rows.rename(columns={"peer": "peer_predicted"})
    for name in ("peer_predicted", "left_out"):
        if name not in rows:
            rows[name] = np.nan
    for name in ("model", "gpu", "engine", "class", "source"):
        rows[name] = rows[name].fillna("").astype(str)
    return rows


def rows_like(rows: pd.DataFrame, plan: Plan, scope: str) -> pd.DataFrame:
    """The rows that share one property with a plan."""
    if scope == "this GPU":
        return rows[rows["gpu"].map(_catalog_gpu) == plan.gpu.name]
    if scope == "this engine":
        return rows[rows["engine"].str.lower().str.startswith(plan.engine.family)]
    if scope == "this model":
        same = {name for name in rows["model"].unique() if _catalog_model(name) == normalised(plan.model.name)}
        return rows[rows["model"].isin(same)]
    if scope.startswith("this class"):
        return rows[rows["class"].str.lower().str.contains("moe" if plan.model.is_moe else "dense")]
    return rows


@lru_cache(maxsize=512)
def _catalog_gpu(published: str) -> str:
    return find_gpu(published) or published


@lru_cache(maxsize=512)
def _catalog_model(published: str) -> str:
    return normalised(find_model(published) or published)


def unseen(rows: pd.DataFrame) -> pd.Series:
    """What we predict without a row's source in the fit; as it is where nothing was fitted to its kind of row."""
    return rows["left_out"].fillna(rows["predicted"])


def error_table(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Our errors, and AIConfigurator's on the rows that it predicts, by value of a column.

    The rows are of one quantity.
    """
    frame = rows.assign(
        absolute=(rows["predicted"] / rows["measured"] - 1).abs(),
        signed=unseen(rows) / rows["measured"] - 1,
        left=(rows["left_out"] / rows["measured"] - 1).abs(),
        peer=(rows["peer_predicted"] / rows["measured"] - 1).abs(),
    )
    frame["shared"] = frame["signed"].abs().where(frame["peer"].notna())
    grouped = frame.groupby(column, sort=False)
    table = pd.DataFrame(
        {
            "rows": grouped.size(),
            "median left out": grouped["left"].median(),
            "p90 left out": grouped["left"].quantile(0.9),
            "signed left out": grouped["signed"].median(),
            "median, all": grouped["absolute"].median(),
            "shared rows": grouped["peer"].count(),
            "ours, shared": grouped["shared"].median(),
            "AIConfigurator": grouped["peer"].median(),
        }
    )
    table = table.reset_index().sort_values("rows", ascending=False, kind="stable")
    return table.assign(**{column: table[column].map(class_in_words)}) if column == "class" else table


def class_in_words(name: str) -> str:
    """A class of models or kernel steps as an engineer says it: "moe mha" is "mixture of experts, multi-head"."""
    words = [CLASS_WORDS.get(word, word) for word in re.split(r"[ -]", name)]
    return name if "(" in name else ", ".join(dict.fromkeys(words))


#: short words of classes, as the measured rows have them
CLASS_WORDS = {
    "moe": "mixture of experts",
    "gqa": "grouped-query attention",
    "mha": "multi-head attention",
    "mla": "latent attention",
    "gdn": "gated delta net",
    "vlm": "vision",
    "all": "every class",
    "sliding": "sliding window",
    "window": "sliding window",
}
TITLES = {
    "tpot_ms_mean": "Time per output token, mean",
    "ttft_ms_mean": "Time to first token, mean",
    "output_tok_s_total": "Output tokens per second",
    "total_tok_s": "Tokens per second, prompt and output",
    "req_s": "Requests per second",
    "e2e_s_mean": "End-to-end time, mean",
    "ttft_ms_p50": "Time to first token, median",
    "tpot_ms_p50": "Time per output token, median",
    "ttft_ms_p99": "Time to first token, 99th percentile",
    "tpot_ms_p99": "Time per output token, 99th percentile",
    "step_ms": "Step time",
    "weights_gib_per_gpu": "Weights per GPU",
    "available_kv_gib": "Memory for the KV cache",
    "kv_tokens": "KV cache in tokens",
    "max_concurrency": "Full-length sequences at once",
    "est_max_model_len": "Longest context that starts",
}
UNITS = {"_ms": "ms", "e2e_s": "s", "tok_s": "tokens/s", "req_s": "req/s", "_gib": "GiB", "_tokens": "tokens"}
SCOPES = ("all", "this GPU", "this engine", "this model", "this class (dense or MoE)")


def unit_of(quantity: str) -> str:
    """Unit of a measured quantity, from its column name."""
    return next((unit for part, unit in UNITS.items() if part in quantity), "")


def quantities(rows: pd.DataFrame) -> list[str]:
    """Measured quantities, the titled ones first and in that order."""
    present = set(rows["quantity"])
    return [name for name in TITLES if name in present] + sorted(present - set(TITLES))


def sentence(rows: pd.DataFrame, memory: Iterable[Mapping[str, str]] = ()) -> str:
    """Our median errors on sources and models that the fit did not see, in one sentence.

    Parameters
    ----------
    rows : DataFrame
        `accuracy_rows`.
    memory : iterable of mappings
        `memory_left_out_rows`.
    """
    parts = []
    for name, words in (("tpot_ms_mean", "TPOT"), ("ttft_ms_mean", "TTFT")):
        of_name = rows[rows["quantity"] == name]
        if len(of_name):
            median = (unseen(of_name) / of_name["measured"] - 1).abs().median()
            parts.append(f"{words} {format_percent(median)}")
    tokens = [float(row["no_model_median_pct"]) / 100 for row in memory if row["quantity"] == "kv_tokens"]
    parts += [f"KV cache tokens {format_percent(median)}" for median in tokens]
    return f"Median error on published measurements that the fit did not see: {', '.join(parts)}"


def left_out_rows() -> tuple[Mapping[str, str], ...]:
    """Errors of rows that the fit did not see, by quantity and class; () where this copy has no such file."""
    try:
        return read_table("accuracy/data/left_out.csv")
    except OSError:
        return ()


def left_out(rows: Iterable[Mapping[str, str]]) -> str:
    """The errors to expect of a source that we have not seen, in one sentence; "" without rows.

    Parameters
    ----------
    rows : iterable of mappings
        Lines of `planner.accuracy.folds`.
    """
    words = {"tpot_ms_mean": "TPOT", "ttft_ms_mean": "TTFT", "output_tok_s_total": "output tokens per second"}
    kinds = {"dense": "dense", "moe": "mixture of experts"}
    parts = [
        f"{words[row['quantity']]} {float(row['no_source_median_pct']):.0f} % ({kinds[row['group']]}, 9 in 10 within "
        f"{float(row['no_source_p90_pct']):.0f} %)"
        for row in rows
        if row["quantity"] in words and row["group"] in kinds
    ]
    if not parts:
        return ""
    return f"On a source that was left out of the fit, the median error is: {'; '.join(parts)}."


def memory_left_out_rows() -> tuple[Mapping[str, str], ...]:
    """Errors of the memory arithmetic on models and sources left out; () where this copy has no such file."""
    try:
        return read_table("accuracy/data/memory_left_out.csv")
    except OSError:
        return ()


def memory_left_out(rows: Iterable[Mapping[str, str]]) -> str:
    """The memory errors to expect of a model that no log was read for, in one sentence; "" without rows.

    Parameters
    ----------
    rows : iterable of mappings
        Lines of `planner.accuracy.memory_folds`.
    """
    found = {row["quantity"]: row for row in rows}
    words = {"available_kv_gib": "memory for the KV cache", "kv_tokens": "KV cache in tokens"}
    parts = [
        f"{words[name]} {float(found[name]['no_model_median_pct']):.1f} % (9 in 10 within "
        f"{float(found[name]['no_model_p90_pct']):.0f} %)"
        for name in words
        if name in found
    ]
    if "outcome" in found:
        parts.append(f"start or refusal right in {float(found['outcome']['no_model_median_pct']):.0f} %")
    return f"With the logs of each model left out of the memory's constants: {', '.join(parts)}." if parts else ""


def against_peer(rows: pd.DataFrame) -> str:
    """Our median error, with each row's source left out, and AIConfigurator's on the rows that both predict."""
    shared = rows[rows["peer_predicted"].notna()]
    ours = (unseen(shared) / shared["measured"] - 1).abs().median()
    peer = (shared["peer_predicted"] / shared["measured"] - 1).abs().median()
    return (
        f"On the {len(shared):,} of these rows that AIConfigurator 0.12 predicts, its median error is "
        f"{format_percent(peer)}, ours {format_percent(ours)} with each row's source left out of the fit"
    )
