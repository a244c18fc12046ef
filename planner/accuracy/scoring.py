"""Errors of predictions: how many rows count, how many are predicted, and how far off they are.

Definitions: a row counts for a quantity when it was measured (> 0) and is meaningful for it
(speculative rows are not; TTFT and TPOT only where requests arrive one by one, a burst's TTFT being
queueing). Error = predicted ÷ measured − 1. Signed median shows bias, median and 90th percentile of
the absolute error show size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

SERVING_QUANTITIES = (
    "output_tok_s_total",
    "total_tok_s",
    "req_s",
    "ttft_ms_mean",
    "ttft_ms_p50",
    "tpot_ms_mean",
    "tpot_ms_p50",
    "e2e_s_mean",
    "ttft_ms_p99",
    "tpot_ms_p99",
)
_MOE = (
    r"mixtral|a3b|a10b|a17b|a22b|a35b|a55b|moe|deepseek|gpt-oss|gptoss|minimax|kimi|glm-4\.[5-7]|glm-5|llama.?4|scout|"
    r"maverick|step-3|ernie|coder-next|qwen3-next|dbrx|nemotron-3"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Errors of one quantity on one group of rows. Percent of the measured value."""

    quantity: str
    group: str
    value: str
    rows: int
    predicted: int
    signed_median_pct: float
    median_pct: float
    p90_pct: float


def is_moe_name(model: pd.Series) -> pd.Series:
    """Mark published model names that are mixtures of experts."""
    return model.fillna("").str.contains(_MOE, case=False, regex=True)


def serving_class(frame: pd.DataFrame) -> pd.Series:
    """Class of each serving row: dense or moe on vLLM, SGLang and TensorRT-LLM, other elsewhere."""
    engine = frame["engine"].fillna("").str.lower()
    main = engine.str.contains("vllm") & ~engine.str.contains("ascend")
    main |= engine.str.contains("sglang") | engine.str.contains("tensorrt")
    family = is_moe_name(frame["model"]).map({True: "moe", False: "dense"})
    return family.where(main, "other")


def measured_values(frame: pd.DataFrame, quantity: str) -> pd.Series:
    """Measured figures of a quantity; NaN where a row has none, or none that can have been measured."""
    if quantity not in frame:
        return pd.Series(np.nan, frame.index)
    values = pd.to_numeric(frame[quantity], errors="coerce").astype(float)
    return values.where(values.gt(0) & np.isfinite(values))


def guesses(frame: pd.DataFrame, predicted: pd.DataFrame, quantity: str) -> pd.Series:
    """Look up the prediction of every row of `frame`, NaN where there is none.

    Rows belong together by their place where both tables list the same ids in the same order (ids may
    repeat), and by id otherwise, as in another tool's file.
    """
    column = f"pred_{quantity}"
    if column not in predicted:
        return pd.Series(np.nan, frame.index)
    if predicted["id"].astype(str).tolist() == frame["id"].astype(str).tolist():
        found = pd.Series(predicted[column].to_numpy(), frame.index)
    else:
        found = frame["id"].map(predicted.drop_duplicates("id").set_index("id")[column])
    return pd.to_numeric(found, errors="coerce").astype(float)


def serving_counts(frame: pd.DataFrame, quantity: str) -> pd.Series:
    """Rows on which a serving quantity is measured and meaningful."""
    counts = measured_values(frame, quantity).notna() & ~frame["notes"].fillna("").str.contains(
        "SPECULATIVE DECODING ON"
    )
    if quantity.startswith(("ttft", "tpot")):
        counts &= frame["arrival"].isin(["concurrency", "poisson"])
    if quantity.startswith("ttft"):
        counts &= ~frame["source"].fillna("").str.contains("aic-gap")
    return counts


def relative_errors(frame: pd.DataFrame, predicted: pd.DataFrame, quantity: str) -> pd.Series:
    """Predicted ÷ measured − 1 per row of `frame`, NaN where a row was not measured or is not predicted."""
    return guesses(frame, predicted, quantity) / measured_values(frame, quantity) - 1


def labels(column: pd.Series) -> pd.Series:
    """Cells as names of groups: one line each, "?" for what is not stated."""
    return column.fillna("").astype(str).str.split().str.join(" ").replace("", "?")


def summarize(error: pd.Series, rows: int, *, quantity: str, group: str, value: str) -> ErrorSummary:
    """Summarise relative errors of one group of `rows` rows that count."""
    have = 100 * error.dropna()
    return ErrorSummary(
        quantity=quantity,
        group=group,
        value=value,
        rows=rows,
        predicted=len(have),
        signed_median_pct=float(have.median()) if len(have) else float("nan"),
        median_pct=float(have.abs().median()) if len(have) else float("nan"),
        p90_pct=float(have.abs().quantile(0.9)) if len(have) else float("nan"),
    )


def serving_report(
    frame: pd.DataFrame, predicted: pd.DataFrame, *, groups: tuple[str, ...] = ("engine", "gpu", "source")
) -> list[ErrorSummary]:
    """Score serving predictions by quantity and class, and within each class by engine, GPU and source.

    Parameters
    ----------
    frame : DataFrame
        Measured rows, as published.
    predicted : DataFrame
        `id` and `pred_<quantity>` columns.
    groups : tuple of str
        Columns of `frame` to break each class down by; groups under five rows are left out.

    Returns
    -------
    list of ErrorSummary
        Class lines first (`group` = "class"), each followed by its breakdown.
    """
    classes = serving_class(frame)
    out: list[ErrorSummary] = []
    for quantity in SERVING_QUANTITIES:
        counts = serving_counts(frame, quantity)
        error = relative_errors(frame, predicted, quantity).where(counts)
        for name in sorted(classes.unique()):
            mine = counts & classes.eq(name)
            if not mine.any():
                continue
            out.append(summarize(error[mine], int(mine.sum()), quantity=quantity, group="class", value=name))
            for by in groups:
                for value, part in error[mine].groupby(labels(frame.loc[mine, by])):
                    if part.notna().sum() >= 5:
                        label = f"{name} · {value}"
                        out.append(summarize(part, len(part), quantity=quantity, group=by, value=label))
    return out
