"""Bands: how far true figures lie from predictions of sources that the fit did not see.

Fitted to the left-out predictions of the Accuracy page's rows, by quantity, by how near the measured kernels are
(`planner.step_time.EVIDENCE`), and by class and engine where enough rows are known. `planner.answer` takes the band of
every headline figure from `catalog/error_bands.csv`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.step_time import EVIDENCE

FILE = Path(__file__).parents[1] / "catalog" / "error_bands.csv"

#: shares of the true figures that lie below a quantile of the table
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99)
#: headline figure → measured quantity of its band
QUANTITIES = {"ttft": "ttft_ms_mean", "tpot": "tpot_ms_mean", "throughput": "output_tok_s_total"}
#: the same at the 99th percentile, of which too few rows and sources are published to tell classes apart
TAILS = {"ttft_tail": "ttft_ms_p99", "tpot_tail": "tpot_ms_p99"}
LEAST_ROWS = 20
LEAST_ENGINE_ROWS = 50
FULL_ROWS = 30  # rows of a source that count one by one; more of them count as their square root does
LEAST_COVERED = 0.87  # of a source's rows, by the 90 % band of all other sources
STRETCHES: Floats = np.round(np.arange(1.0, 6.01, 0.1), 1)


def weights_of(groups: pd.Series) -> Floats:
    """Weight of each row: 1 in small sources, and in large ones so that the whole weighs as √rows."""
    size = groups.groupby(groups).transform("size").to_numpy(np.float64)
    return np.minimum(1.0, np.sqrt(FULL_ROWS / size))


def quantiles(logs: Floats, weights: Floats, levels: Floats) -> Floats:
    """Weighted quantiles, linear between the middles of the weights."""
    order = np.argsort(logs)
    ordered, mass = logs[order], weights[order]
    return np.asarray(np.interp(levels, (np.cumsum(mass) - mass / 2) / mass.sum(), ordered))


def stretched(found: Floats, factor: float) -> Floats:
    """Quantiles whose parts beyond the quartiles are longer by a factor."""
    low, high = found[LEVELS.index(0.25)], found[LEVELS.index(0.75)]
    out = np.where(found < low, low + (found - low) * factor, found)
    return np.where(found > high, high + (found - high) * factor, out)


def tail_stretch(rows: pd.DataFrame) -> float:
    """Smallest stretch of the tails with which the 90 % band of all other sources covers enough of each one's rows.

    Parameters
    ----------
    rows : pandas.DataFrame
        `log` = ln(measured ÷ left out), `group` = source.

    Returns
    -------
    float
        At least 1; 1 where only one source is known.
    """
    folds = []
    for name in rows["group"].unique():
        rest = rows[rows["group"] != name]
        if len(rest) >= LEAST_ROWS // 2:
            own = rows.loc[rows["group"] == name, "log"].to_numpy()
            folds.append((own, quantiles(rest["log"].to_numpy(), weights_of(rest["group"]), np.array(LEVELS))))
    known = sum(len(own) for own, _ in folds)
    for factor in STRETCHES if known else ():
        inside = sum(_inside(own, stretched(found, factor), 0.9).sum() for own, found in folds)
        if inside >= LEAST_COVERED * known:
            return float(factor)
    return float(STRETCHES[-1]) if known else 1.0


def _inside(logs: Floats, found: Floats, share: float) -> np.ndarray:
    low, high = found[LEVELS.index(round((1 - share) / 2, 4))], found[LEVELS.index(round((1 + share) / 2, 4))]
    return (logs >= low) & (logs <= high)


def not_narrower(found: Floats, nearer: Floats) -> Floats:
    """Quantiles around their own median that lie at least as far from it as those of nearer evidence do from theirs."""
    middle = LEVELS.index(0.5)
    own, other = found - found[middle], nearer - nearer[middle]
    return found[middle] + np.where(np.array(LEVELS) < 0.5, np.minimum(own, other), np.maximum(own, other))


def fit_bands(rows: pd.DataFrame) -> pd.DataFrame:
    """Fit the table of bands.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows of `accuracy/data/accuracy_rows.csv` of kind serving: quantity, class, family (of the engine), evidence,
        group (source), measured, left_out.

    Returns
    -------
    pandas.DataFrame
        quantity, evidence, class, engine ("" = all), rows, sources, median_pct and p90_pct (absolute left-out error),
        stretch, and the quantiles of measured ÷ predicted by level.
    """
    known = rows[rows["left_out"].gt(0) & rows["evidence"].isin(EVIDENCE)].copy()
    known["log"] = np.log(known["measured"] / known["left_out"])
    lines: list[dict[str, object]] = []
    for name, quantity in (QUANTITIES | TAILS).items():
        nearer: Floats | None = None
        for evidence in EVIDENCE:
            mine = known[(known["quantity"] == quantity) & (known["evidence"] == evidence)]
            if len(mine) < LEAST_ROWS:
                continue
            factor = 1.0 if name in TAILS else tail_stretch(mine)
            whole = _line(name, evidence, mine, "", "", factor, nearer)
            lines.append(whole)
            if name not in TAILS:
                lines += _class_lines(name, evidence, mine, factor, nearer)
            nearer = np.log([float(str(whole[_column(level)])) for level in LEVELS])
    return pd.DataFrame(lines)


def _class_lines(
    name: str, evidence: str, rows: pd.DataFrame, factor: float, nearer: Floats | None
) -> list[dict[str, object]]:
    """Bands of the classes, and of an engine within a class, of which enough rows are known."""
    lines = []
    for kind, of_kind in rows.groupby("class"):
        if len(of_kind) >= LEAST_ROWS:
            lines.append(_line(name, evidence, of_kind, str(kind), "", factor, nearer))
        for family, of_family in of_kind.groupby("family"):
            if family and len(of_family) >= LEAST_ENGINE_ROWS:
                lines.append(_line(name, evidence, of_family, str(kind), str(family), factor, nearer))
    return lines


def _column(level: float) -> str:
    return f"q{100 * level:g}"


def _line(
    name: str, evidence: str, rows: pd.DataFrame, kind: str, family: str, factor: float, nearer: Floats | None
) -> dict[str, object]:
    found = stretched(quantiles(rows["log"].to_numpy(), weights_of(rows["group"]), np.array(LEVELS)), factor)
    if nearer is not None:
        found = not_narrower(found, nearer)
    error = np.abs(np.expm1(-rows["log"].to_numpy()))
    return {
        "quantity": name,
        "evidence": evidence,
        "class": kind,
        "engine": family,
        "rows": len(rows),
        "sources": rows["group"].nunique(),
        "median_pct": 100 * float(np.median(error)),
        "p90_pct": 100 * float(np.quantile(error, 0.9)),
        "stretch": factor,
        **{_column(level): float(np.exp(value)) for level, value in zip(LEVELS, found, strict=True)},
    }


def coverage(rows: pd.DataFrame, bands: pd.DataFrame) -> pd.DataFrame:
    """Share of left-out rows inside their bands.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for `fit_bands`.
    bands : pandas.DataFrame
        Its result, as read from the file ("" for all).

    Returns
    -------
    pandas.DataFrame
        quantity ("" = the three together), evidence, rows, sources, inside_50_pct, inside_90_pct.
    """
    known = rows[rows["left_out"].gt(0) & rows["evidence"].isin(EVIDENCE)]
    parts = []
    for name, quantity in QUANTITIES.items():
        of_quantity = known[known["quantity"] == quantity].assign(name=name)
        for (evidence, kind, family), part in of_quantity.groupby(["evidence", "class", "family"]):
            line = nearest(bands, name, str(evidence), str(kind), str(family))
            ratio = part["measured"] / part["left_out"]
            parts.append(
                part.assign(
                    inside_50=ratio.between(line["q25"], line["q75"]), inside_90=ratio.between(line["q5"], line["q95"])
                )
            )
    table = pd.concat(parts, ignore_index=True)
    lines = []
    for evidence in EVIDENCE:
        own = table[table["evidence"] == evidence]
        for name in ("", *QUANTITIES):
            mine = own if not name else own[own["name"] == name]
            lines.append(
                {
                    "quantity": name,
                    "evidence": evidence,
                    "rows": len(mine),
                    "sources": mine["group"].nunique(),
                    "inside_50_pct": 100 * mine["inside_50"].mean(),
                    "inside_90_pct": 100 * mine["inside_90"].mean(),
                }
            )
    return pd.DataFrame(lines)


def nearest(bands: pd.DataFrame, quantity: str, evidence: str, kind: str, family: str) -> pd.Series:
    """The band of a class and engine, else of the class on any engine, else of all."""
    mine = bands[(bands["quantity"] == quantity) & (bands["evidence"] == evidence)]
    for own in ((kind, family), (kind, ""), ("", "")):
        found = mine[(mine["class"] == own[0]) & (mine["engine"] == own[1])]
        if len(found):
            return found.iloc[0]
    raise LookupError(f"no band of {quantity} where kernels are {evidence}")
