"""Validation: predict every row of a measurement file and report the error per quantity."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from planner.accuracy import memory, serving, steps
from planner.accuracy.report import ErrorSummary, is_moe_name, serving_report, summarize
from planner.errors import InvalidInput

MEMORY_QUANTITIES = ("weights_gib_per_gpu", "available_kv_gib", "kv_tokens", "max_concurrency", "est_max_model_len")
_PREDICTORS = {
    "memory": ("weights_gib_per_gpu", memory.predict),
    "step": ("step_ms", steps.predict),
    "serving": ("output_tok_s_total", serving.predict),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Predictions of one measurement file and their errors.

    `kind` is memory, step or serving; `predicted` has `id` and `pred_<column>` per row; `skipped` maps
    row ids to the reason why nothing was predicted; `outcome_right_fraction` belongs to memory files.
    """

    kind: str
    num_rows: int
    predicted: pd.DataFrame
    skipped: dict[str, str]
    errors: tuple[ErrorSummary, ...]
    outcome_right_fraction: float = math.nan
    num_outcomes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Everything but the row-by-row predictions, as plain types."""
        fields = ErrorSummary.__dataclass_fields__
        return {
            "kind": self.kind,
            "rows": self.num_rows,
            "predicted": self.num_rows - len(self.skipped),
            "skipped": len(self.skipped),
            "skip_reasons": dict(Counter(self.skipped.values()).most_common()),
            "outcome_right_fraction": None if math.isnan(self.outcome_right_fraction) else self.outcome_right_fraction,
            "errors": [{name: _plain(getattr(item, name)) for name in fields} for item in self.errors],
        }


def validate(path: str | Path) -> Validation:
    """Predict every row of a measurement file.

    Parameters
    ----------
    path : str or Path
        CSV of memory cases, kernel step times or serving benchmarks; the header tells which.

    Returns
    -------
    Validation

    Raises
    ------
    InvalidInput
        When the file cannot be read or is none of the three kinds.
    """
    frame = read_rows(path)
    kind = kind_of(frame)
    predicted, skipped = _PREDICTORS[kind][1](frame)
    right, outcomes = math.nan, 0
    if kind == "serving":
        errors = serving_report(frame, predicted, groups=("engine",))
    elif kind == "step":
        errors = _step_report(frame, predicted)
    else:
        errors = _memory_report(frame, predicted)
        right, outcomes = _outcomes(frame, predicted)
    return Validation(
        kind=kind,
        num_rows=len(frame),
        predicted=predicted,
        skipped=skipped,
        errors=tuple(errors),
        outcome_right_fraction=right,
        num_outcomes=outcomes,
    )


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read a measurement file as text columns, with row numbers where it has no `id`."""
    try:
        frame = pd.read_csv(path, dtype=str)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InvalidInput("FILE.csv", str(path), f"a readable CSV file ({error})") from error
    if "id" not in frame:
        frame.insert(0, "id", [str(i) for i in range(len(frame))])
    return frame


def kind_of(frame: pd.DataFrame) -> str:
    """Tell the kind of a measurement file by its header."""
    for kind, (column, _) in _PREDICTORS.items():
        if column in frame:
            return kind
    columns = ", ".join(column for column, _ in _PREDICTORS.values())
    raise InvalidInput(
        "FILE.csv", ", ".join(map(str, frame.columns[:6])), f"a header with one of the columns {columns}"
    )


def _errors_of(frame: pd.DataFrame, predicted: pd.DataFrame, quantity: str) -> tuple[pd.Series, pd.Series]:
    truth = pd.to_numeric(frame[quantity], errors="coerce")
    guess = pd.Series(np.nan, frame.index)
    if f"pred_{quantity}" in predicted:
        by_id = predicted.drop_duplicates("id").set_index("id")[f"pred_{quantity}"]
        guess = pd.to_numeric(frame["id"].map(by_id), errors="coerce")
    counts = truth.gt(0)
    return counts, (guess / truth - 1).where(counts)


def _step_report(frame: pd.DataFrame, predicted: pd.DataFrame) -> list[ErrorSummary]:
    counts, error = _errors_of(frame, predicted, "step_ms")
    classes = is_moe_name(frame["model"]).map({True: "moe", False: "dense"}) + " " + frame["phase"]
    out = []
    for name in sorted(classes.dropna().unique()):
        mine = counts & classes.eq(name)
        out.append(summarize(error[mine], int(mine.sum()), quantity="step_ms", group="class", value=name))
        for value, part in error[mine].groupby(frame.loc[mine, "gpu"].fillna("?")):
            out.append(summarize(part, len(part), quantity="step_ms", group="gpu", value=f"{name} · {value}"))
    return out


def _memory_report(frame: pd.DataFrame, predicted: pd.DataFrame) -> list[ErrorSummary]:
    out = []
    usable = frame["evidence"].ne("C") if "evidence" in frame else pd.Series(True, frame.index)
    for quantity in MEMORY_QUANTITIES:
        if quantity in frame:
            counts, error = _errors_of(frame, predicted, quantity)
            counts &= usable
            out.append(summarize(error[counts], int(counts.sum()), quantity=quantity, group="class", value="all"))
    return out


def _outcomes(frame: pd.DataFrame, predicted: pd.DataFrame) -> tuple[float, int]:
    if "outcome" not in frame or "pred_outcome" not in predicted:
        return math.nan, 0
    guess = frame["id"].map(predicted.drop_duplicates("id").set_index("id")["pred_outcome"])
    known = frame["outcome"].notna() & guess.notna() & ~frame["outcome"].fillna("").str.contains("runtime")
    if "evidence" in frame:
        known &= frame["evidence"].ne("C")
    same = frame["outcome"].fillna("").str.startswith("started") == guess.fillna("").str.startswith("started")
    return (float(same[known].mean()) if known.any() else math.nan), int(known.sum())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def format_validation(done: Validation) -> str:
    """Write a validation as a table for the terminal."""
    lines = [
        f"{done.kind}: {done.num_rows:,} rows, {done.num_rows - len(done.skipped):,} predicted, "
        f"{len(done.skipped):,} skipped"
    ]
    lines += [f"  skipped {count:>4}: {reason}" for reason, count in Counter(done.skipped.values()).most_common(12)]
    lines.append(f"{'quantity':20} {'class':30} {'rows':>6} {'pred.':>6} {'signed %':>9} {'median %':>9} {'p90 %':>9}")
    for item in done.errors:
        label = item.value if item.group == "class" else f"  {item.value}"
        lines.append(
            f"{item.quantity:20} {label[:30]:30} {item.rows:>6} {item.predicted:>6} {item.signed_median_pct:>9.2f} "
            f"{item.median_pct:>9.2f} {item.p90_pct:>9.2f}"
        )
    if not math.isnan(done.outcome_right_fraction):
        lines.append(f"started or refused right: {100 * done.outcome_right_fraction:.1f} % of {done.num_outcomes} rows")
    return "\n".join(lines)
