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


def serving_counts(frame: pd.DataFrame, quantity: str) -> pd.Series:
    """Rows on which a serving quantity is measured and meaningful."""
    measured = pd.to_numeric(frame[quantity], errors="coerce") if quantity in frame else pd.Series(np.nan, frame.index)
    counts = measured.gt(0) & ~frame["notes"].fillna("").str.contains("SPECULATIVE DECODING ON")
    if quantity.startswith(("ttft", "tpot")):
        counts &= frame["arrival"].isin(["concurrency", "poisson"])
    if quantity.startswith("ttft"):
        counts &= ~frame["source"].fillna("").str.contains("aic-gap")
    return counts


def relative_errors(frame: pd.DataFrame, predicted: pd.DataFrame, quantity: str) -> pd.Series:
    """Predicted ÷ measured − 1 per row of `frame`, NaN where a row does not count or is not predicted."""
    column = f"pred_{quantity}"
    if column not in predicted or quantity not in frame:
        return pd.Series(np.nan, frame.index)
    guess = frame["id"].map(predicted.drop_duplicates("id").set_index("id")[column])
    error = pd.to_numeric(guess, errors="coerce") / pd.to_numeric(frame[quantity], errors="coerce") - 1
    return error.where(serving_counts(frame, quantity))


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
        error = relative_errors(frame, predicted, quantity)
        for name in sorted(classes.unique()):
            mine = counts & classes.eq(name)
            if not mine.any():
                continue
            out.append(summarize(error[mine], int(mine.sum()), quantity=quantity, group="class", value=name))
            for by in groups:
                for value, part in error[mine].groupby(frame.loc[mine, by].fillna("?")):
                    if part.notna().sum() >= 5:
                        label = f"{name} · {value}"
                        out.append(summarize(part, len(part), quantity=quantity, group=by, value=label))
    return out
