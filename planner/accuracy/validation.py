"""Validation: predict every row of a measurement file and report the error per quantity."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from planner.accuracy import memory, serving, steps
from planner.accuracy.scoring import (
    SERVING_QUANTITIES,
    ErrorSummary,
    labels,
    measured_values,
    relative_errors,
    serving_report,
    summarize,
)
from planner.errors import InvalidInput

MEMORY_QUANTITIES = ("weights_gib_per_gpu", "available_kv_gib", "kv_tokens", "max_concurrency", "est_max_model_len")
_PREDICTORS = {
    "memory": ("weights_gib_per_gpu", memory.predict),
    "step": ("step_ms", steps.predict),
    "serving": ("output_tok_s_total", serving.predict),
}
# columns that say what ran: a file with none of them says nothing, one that lacks some has blanks there
_NEEDED = {
    "memory": ("model", "gpu", "engine"),
    "step": ("model", "gpu", "phase", "batch", "isl", "ctx"),
    "serving": ("model", "gpu", "isl", "osl", "arrival", "concurrency"),
}
# columns that only one kind has, for files without their main figure
_OWN = {
    "memory": (*MEMORY_QUANTITIES, "max_model_len", "gpu_memory_utilization"),
    "step": ("phase", "ctx"),
    "serving": (*SERVING_QUANTITIES, "osl"),
}
_OPTIONAL = ("engine", "arrival", "notes", "source")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Predictions of one measurement file and their errors.

    `kind` is memory, step or serving; `predicted` has `id` and `pred_<column>` of every row; `skipped` maps
    row numbers (from 0; ids may repeat) to the reason why nothing was predicted; `outcome_right_fraction`
    belongs to memory files.
    """

    kind: str
    num_rows: int
    predicted: pd.DataFrame
    skipped: dict[int, str]
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
        When the file cannot be read, is none of the three kinds, or has no column that says what ran.
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
        right, outcomes = outcomes_right(frame, predicted)
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
    """Read a measurement file as text columns; a missing column is one of blanks, a missing id the row number.

    Parameters
    ----------
    path : str or Path
        CSV file with a header.

    Returns
    -------
    DataFrame

    Raises
    ------
    InvalidInput
        As for `validate`.
    """
    try:
        frame = pd.read_csv(path, dtype=str)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InvalidInput("FILE.csv", str(path), f"a readable CSV file ({error})") from error
    kind = kind_of(frame)
    if not any(name in frame for name in _NEEDED[kind]):
        raise InvalidInput("FILE.csv", _header(frame), f"also columns that say what ran: {', '.join(_NEEDED[kind])}")
    for name in (*_NEEDED[kind], *_OPTIONAL):
        if name not in frame:
            frame[name] = ""
    numbers = pd.Series([str(number) for number in range(len(frame))], frame.index, dtype=object)
    if "id" in frame:
        frame["id"] = frame["id"].astype(object).where(frame["id"].notna(), numbers)
    else:
        frame.insert(0, "id", numbers)
    return frame


def kind_of(frame: pd.DataFrame) -> str:
    """Tell the kind of a measurement file by its header: its main figure, else any column that only that kind has."""
    for own in ({kind: (column,) for kind, (column, _) in _PREDICTORS.items()}, _OWN):
        for kind, columns in own.items():
            if any(column in frame for column in columns):
                return kind
    figures = ", ".join(column for column, _ in _PREDICTORS.values())
    raise InvalidInput("FILE.csv", _header(frame), f"a header with one of the columns {figures}")


def _header(frame: pd.DataFrame) -> str:
    return ", ".join(map(str, frame.columns[:6]))


def _step_report(frame: pd.DataFrame, predicted: pd.DataFrame) -> list[ErrorSummary]:
    if "step_ms" not in frame:
        return []
    counts = measured_values(frame, "step_ms").notna()
    error = relative_errors(frame, predicted, "step_ms")
    classes = steps.step_class(frame)
    out = []
    for name in sorted(classes.unique()):
        mine = counts & classes.eq(name)
        out.append(summarize(error[mine], int(mine.sum()), quantity="step_ms", group="class", value=name))
        for value, part in error[mine].groupby(labels(frame.loc[mine, "gpu"])):
            out.append(summarize(part, len(part), quantity="step_ms", group="gpu", value=f"{name} · {value}"))
    return out


def _memory_report(frame: pd.DataFrame, predicted: pd.DataFrame) -> list[ErrorSummary]:
    out = []
    usable = frame["evidence"].ne("C") if "evidence" in frame else pd.Series(True, frame.index)
    for quantity in MEMORY_QUANTITIES:
        if quantity in frame:
            counts = usable & measured_values(frame, quantity).notna()
            error = relative_errors(frame, predicted, quantity)
            out.append(summarize(error[counts], int(counts.sum()), quantity=quantity, group="class", value="all"))
    return out


def outcomes_right(frame: pd.DataFrame, predicted: pd.DataFrame) -> tuple[float, int]:
    """Share of the logged starts and refusals that are predicted as such, and how many rows that is.

    Parameters
    ----------
    frame : DataFrame
        Start-up logs; rows of evidence C and failures during operation do not count.
    predicted : DataFrame
        `pred_outcome` of every row, in the same order.

    Returns
    -------
    float, int
        NaN and 0 where no row counts.
    """
    if "outcome" not in frame:
        return math.nan, 0
    guess = pd.Series(predicted["pred_outcome"].astype(object).fillna("").to_numpy(), frame.index)
    truth = frame["outcome"].fillna("")
    known = truth.ne("") & guess.ne("") & ~truth.str.contains("runtime")
    if "evidence" in frame:
        known &= frame["evidence"].ne("C")
    same = truth.str.startswith("started") == guess.str.startswith("started")
    return (float(same[known].mean()) if known.any() else math.nan), int(known.sum())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
