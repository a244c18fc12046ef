"""Errors of the memory arithmetic on start-up logs that were left out: by model, and by source.

    python -m planner.accuracy.memory_folds [MEMORY.csv] [--out LEFT_OUT.csv]

`catalog/memory_constants.csv` holds what the memory stage took from logs; all else follows the engines' sources. Each
fold takes away one model, or one source, fits the constants to the other logs, starting from what would be assumed
without logs, and predicts the logs taken away. A constant that no other model's logs inform stays as assumed.
`accuracy/data/memory_left_out.csv`, which the Accuracy page shows, is written with `--out`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from planner.accuracy import memory
from planner.accuracy.memory_rows import read_case
from planner.accuracy.scoring import guesses, labels, measured_values, relative_errors
from planner.accuracy.validation import MEMORY_QUANTITIES, outcomes_right, read_rows
from planner.arrays import Floats
from planner.memory import stored_constants, values_without_logs, with_log_constants

ROWS_FILE = Path(__file__).parent / "data" / "measured" / "memory_cases.csv"
#: what logs print that the constants decide [GiB]
FITTED_TO = ("activation_peak_gib", "non_torch_gib", "cuda_graph_gib", "available_kv_gib")
CHANGE = 0.1  # of a constant, for its slope
NOISE_GIB = 0.1  # of one printed figure
HUBER_GIB = 0.2  # larger residuals pull only as much as this
#: standard deviation of a constant around what is assumed without logs, relative to its stored value: three times as
#: much as any of them moved
PRIOR_SD = 3.0
METHODS = ("stored", "no_model", "no_source")


def models_of(frame: pd.DataFrame) -> pd.Series:
    """Catalog model of each row, as its scenario has it; the published name where it cannot be read."""

    def name(row: dict[str, str]) -> str:
        try:
            return read_case(row).scenario.model
        except ValueError:
            return row["model"]

    records = frame.astype(object).fillna("").astype(str).to_dict("records")
    return pd.Series([name({str(key): value for key, value in row.items()}) for row in records], frame.index)


def sources_of(frame: pd.DataFrame) -> pd.Series:
    """Source of each row: the repository in which it was published, else its address."""
    published = labels(frame["source_repo"])
    return published.where(published.ne("?"), labels(frame["url"]))


def differences(frame: pd.DataFrame) -> Floats:
    """Predicted − measured of each row for `FITTED_TO` [GiB]; NaN where a row has or gets none."""
    predicted = memory.predict(frame)[0]
    certain = frame["evidence"].ne("C").to_numpy()
    found = [(guesses(frame, predicted, name) - measured_values(frame, name)).to_numpy(float) for name in FITTED_TO]
    return np.where(certain[:, None], np.stack(found, axis=1), np.nan)


def slopes(frame: pd.DataFrame, base: Floats) -> Floats:
    """GiB by which each figure changes as each constant goes from zero to its stored value.

    Returns
    -------
    array, rows × `FITTED_TO` × constants
    """
    found = []
    for name, value in stored_constants().items():
        with with_log_constants({name: value * (1 + CHANGE)}):
            found.append((differences(frame) - base) / CHANGE)
    return np.nan_to_num(np.stack(found, axis=-1))


def fit_constants(base: Floats, slope: Floats, without_logs: Floats) -> Floats:
    """Constants that explain these rows, each as a multiple of its stored value and none below zero.

    Parameters
    ----------
    base, slope : array
        `differences` with the stored values, and `slopes`, of the rows to fit to.
    without_logs : array
        Centre of the prior, as multiples of the stored values.
    """
    known = ~np.isnan(base)
    residual, design = base[known], slope[known]
    multiples = np.ones(slope.shape[-1])
    prior = np.eye(slope.shape[-1]) / PRIOR_SD**2
    for _ in range(30):  # iteratively reweighted least squares
        left = residual + design @ (multiples - 1)
        weight = np.minimum(1.0, HUBER_GIB / np.maximum(np.abs(left), 1e-9)) / NOISE_GIB**2
        normal = design.T @ (weight[:, None] * design) + prior
        target = design.T @ (weight * (design.sum(axis=1) - residual)) + prior @ without_logs
        multiples = np.maximum(0.0, np.linalg.solve(normal, target))
    return multiples


def assumed_without_logs() -> Floats:
    """What would be assumed of each constant if there were no log, as a multiple of its stored value."""
    assumed = values_without_logs()
    return np.array([assumed[name] / value for name, value in stored_constants().items()])


def left_out(frame: pd.DataFrame, base: Floats, slope: Floats, groups: pd.Series) -> pd.DataFrame:
    """Predictions of each row with constants fitted to the rows of all other groups."""
    stored, assumed = stored_constants(), assumed_without_logs()
    parts = []
    for group in groups.unique():
        mine = (groups == group).to_numpy()
        multiples = fit_constants(base[~mine], slope[~mine], assumed)
        fitted = {name: value * x for (name, value), x in zip(stored.items(), multiples, strict=True)}
        with with_log_constants(fitted):
            parts.append(memory.predict(frame[mine])[0])
    return pd.concat(parts).set_index("id").loc[frame["id"]].reset_index()


def report(frame: pd.DataFrame, found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare the errors with the stored constants and with those of each fold.

    Parameters
    ----------
    frame : pandas.DataFrame
        Start-up logs.
    found : mapping
        Predictions by each of `METHODS`.

    Returns
    -------
    pandas.DataFrame
        quantity, rows, and by method the median and 90th percentile of the absolute error in percent. The last line,
        `outcome`, has the share of starts and refusals that are predicted right, in percent, as median.
    """
    certain, lines = frame["evidence"].ne("C"), []
    for quantity in MEMORY_QUANTITIES:
        line: dict[str, object] = {"quantity": quantity}
        for name, predicted in found.items():
            percent = 100 * relative_errors(frame, predicted, quantity)[certain].dropna().abs()
            line |= {"rows": len(percent), f"{name}_median_pct": percent.median()}
            line[f"{name}_p90_pct"] = percent.quantile(0.9)
        lines.append(line)
    shares = {name: outcomes_right(frame, predicted) for name, predicted in found.items()}
    outcome = {f"{name}_median_pct": 100 * share for name, (share, _) in shares.items()}
    lines.append({"quantity": "outcome", "rows": shares["stored"][1]} | outcome)
    return pd.DataFrame(lines)


def main(argv: list[str] | None = None) -> None:
    """Print the errors of a memory file's rows, stored and left out, and the constants fitted to all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="MEMORY.csv", nargs="?", default=ROWS_FILE)
    parser.add_argument("--out", metavar="LEFT_OUT.csv", help="also write the table to a file")
    options = parser.parse_args(argv)
    frame = read_rows(options.file).reset_index(drop=True)
    base = differences(frame)
    slope = slopes(frame, base)
    print("constants fitted to all rows ÷ stored, and how many figures each decides")
    informed = (np.abs(slope[~np.isnan(base)]) > NOISE_GIB / 2).sum(axis=0)
    for name, x, count in zip(
        stored_constants(), fit_constants(base, slope, assumed_without_logs()), informed, strict=True
    ):
        print(f"  {name:20} {x:6.2f}  {count:4}")
    found = {
        "stored": memory.predict(frame)[0],
        "no_model": left_out(frame, base, slope, models_of(frame)),
        "no_source": left_out(frame, base, slope, sources_of(frame)),
    }
    table = report(frame, found)
    print(table.to_string(index=False, float_format="{:.2f}".format))
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.2f")


if __name__ == "__main__":
    main()
