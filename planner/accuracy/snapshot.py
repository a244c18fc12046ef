"""The accuracy page's data: measured against predicted, written once from measurement files.

    python -m planner.accuracy.snapshot [memory.csv steps.csv serving.csv] [--peer PEER.csv] [--left-out ROWS.csv]

writes `planner/accuracy/data/accuracy_rows.csv` (rows with their source), `accuracy_summary.csv` (errors by class) and,
with the rows of `python -m planner.accuracy.folds --rows`, `error_bands.csv` (the bands of headline figures); without
files it only joins these to the rows that are there. The files are in `planner/accuracy/data/measured/`. Run it again
whenever the model changes, so that the page shows today's error.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from planner.accuracy.bands import FILE as BANDS
from planner.accuracy.bands import fit_bands
from planner.accuracy.scoring import SERVING_QUANTITIES, guesses, measured_values, serving_class, serving_counts
from planner.accuracy.steps import step_class
from planner.accuracy.validation import MEMORY_QUANTITIES, Validation, read_rows, validate

ROWS = Path(__file__).parent / "data" / "accuracy_rows.csv"
SUMMARY = Path(__file__).parents[1] / "catalog" / "accuracy_summary.csv"
STEP_SOURCE = "NVIDIA AIConfigurator 0.12 kernel tables (Apache-2.0)"
STEP_ROWS_KEPT = 10  # every tenth step time: the cloud looks the same and the file stays small
_COLUMNS = ("kind", "id", "class", "engine", "model", "gpu", "quantity", "measured", "predicted", "peer", "source")


def rows_of(frame: pd.DataFrame, done: Validation, peer: pd.DataFrame | None = None) -> pd.DataFrame:
    """Join measured and predicted figures, one line per row and quantity that counts.

    Parameters
    ----------
    frame : DataFrame
        Measured rows.
    done : Validation
        Their predictions.
    peer : DataFrame, optional
        Another tool's predictions of the same rows, `id` and `pred_<quantity>`.

    Returns
    -------
    DataFrame
        Columns kind, id, class, engine, model, gpu, quantity, measured, predicted, peer, source.
    """
    parts = []
    for quantity, counts, classes in _quantities(frame, done.kind):
        measured = measured_values(frame, quantity)
        predicted = guesses(frame, done.predicted, quantity)
        keep = counts & measured.notna() & predicted.notna()
        part = pd.DataFrame(
            {
                "kind": done.kind,
                "id": frame["id"],
                "class": classes,
                "engine": frame["engine"],
                "model": frame["model"],
                "gpu": frame["gpu"].fillna(""),
                "quantity": quantity,
                "measured": measured,
                "predicted": predicted,
                "peer": guesses(frame, peer, quantity) if peer is not None else np.nan,
                "source": frame.get("url", STEP_SOURCE),
            }
        )
        parts.append(part[keep])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_COLUMNS))


def _quantities(frame: pd.DataFrame, kind: str) -> list[tuple[str, pd.Series, pd.Series]]:
    if kind == "serving":
        classes = serving_class(frame)
        return [(q, serving_counts(frame, q), classes) for q in SERVING_QUANTITIES if q in frame]
    if kind == "step":
        kept = pd.Series(np.arange(len(frame)) % STEP_ROWS_KEPT == 0, frame.index)
        return [("step_ms", kept, step_class(frame))]
    usable = frame["evidence"].ne("C") if "evidence" in frame else pd.Series(True, frame.index)
    classes = frame["arch_class"].fillna("all") if "arch_class" in frame else pd.Series("all", frame.index)
    return [(q, usable, classes) for q in MEMORY_QUANTITIES if q in frame]


def with_left_out(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Join left-out predictions to the rows of the page, in place of those that are there.

    Parameters
    ----------
    table : DataFrame
        As `rows_of` makes it.
    left_out : DataFrame
        `planner.accuracy.folds.left_out_rows`.

    Returns
    -------
    DataFrame
        With the columns family, group, evidence ("" where unknown) and left_out.
    """
    columns = ["family", "group", "evidence", "left_out"]
    kept = table.drop(columns=columns, errors="ignore")
    joined = kept.merge(left_out[["id", "quantity", *columns]], on=["id", "quantity"], how="left")
    return joined.fillna(dict.fromkeys(columns[:3], ""))


def main(argv: list[str] | None = None) -> None:
    """Write both files from the measurement files named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.csv")
    parser.add_argument("--peer", metavar="PEER.csv", help="another tool's predictions of the serving rows")
    parser.add_argument("--left-out", metavar="ROWS.csv", help="left-out predictions of the serving rows")
    options = parser.parse_args(argv)
    peer = pd.read_csv(options.peer, dtype={"id": str}) if options.peer else None
    rows, summary = [], []
    for path in options.files:
        frame, done = read_rows(path), validate(path)
        rows.append(rows_of(frame, done, peer if done.kind == "serving" else None))
        for item in done.errors:
            summary.append({"kind": done.kind, **dataclasses.asdict(item)})
        if done.num_outcomes:
            right = 100 * done.outcome_right_fraction
            summary.append(
                {
                    "kind": done.kind,
                    "quantity": "outcome",
                    "value": "all",
                    "rows": done.num_outcomes,
                    "predicted": done.num_outcomes,
                    "median_pct": 100 - right,
                }
            )
    table = pd.concat(rows, ignore_index=True) if rows else pd.read_csv(ROWS, dtype={"id": str})
    if options.left_out:
        table = with_left_out(table, pd.read_csv(options.left_out, dtype={"id": str}))
        fit_bands(table[table["kind"] == "serving"]).to_csv(BANDS, index=False, float_format="%.4g")
    table.to_csv(ROWS, index=False, float_format="%.5g")
    if not summary:
        return
    pd.DataFrame(summary).to_csv(SUMMARY, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
