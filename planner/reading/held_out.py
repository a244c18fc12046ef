"""What a calibration is worth: three published runs of a deployment, and the error on its other runs.

    python -m planner.reading.held_out SERVING.csv [--runs N] [--chosen] [--deployments N] [--seed N] [--json]

Each deployment (source, model, GPU, split, engine with its release) with enough runs is calibrated to some of them,
drawn at random or chosen as `advise` chooses load tests; its other runs are predicted before and after. Nothing that
was measured of the other runs is read.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.accuracy import read_run, serving_columns
from planner.arrays import Floats
from planner.errors import PlannerError
from planner.reading.advising import slopes_of
from planner.reading.calibrating import FIGURES, fit_runs, prior_sd, uncalibrated
from planner.reading.nearness import foreseen, load_of, noise_sd
from planner.scenario import ERRORS, SCALES, Scenario, fingerprint
from planner.units import counted

Measured = tuple[Scenario, dict[str, float]]
LEAST_OTHERS = 3  # runs of a deployment beyond those that it is calibrated to
MOST_OTHERS = 7
OFF = 0.1  # from this error of the chosen runs on, a calibration is worth the effort


def deployments(rows: Iterable[Mapping[str, str]]) -> list[list[Measured]]:
    """The runs of each deployment of a serving file: what they sent, and the measured means.

    Parameters
    ----------
    rows : iterable of mapping
        Columns of serving_benchmarks.csv. Rows that cannot be planned, or whose collector takes their figure for a
        warm-up's, are left out; of a run that is published twice, one.
    """
    found: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for row in rows:
        try:
            run = read_run(row)
        except ValueError:
            continue
        scenario = run.scenario.replace(title="")
        measured = {columns[0]: _number(row.get(columns[0], "")) for columns in FIGURES.values()}
        known = {name: value for name, value in measured.items() if value > 0}
        own = found[row.get("source", "").partition("(")[0], fingerprint(scenario)]
        if known and not run.decode_only and "SUSPECT" not in row.get("notes", "") and (scenario, known) not in own:
            own.append((scenario, known))
    return [runs for runs in found.values() if runs]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def most_telling(runs: list[Measured], count: int) -> list[Measured]:
    """The runs, the most telling first: those that narrow the figures of all runs most. Reads only what they sent.

    Parameters
    ----------
    runs : list
        Of one deployment.
    count : int
        Runs to choose, one after the other.
    """
    nothing = np.zeros(len(SCALES))
    figures = [
        (number, name, slope, load_of(scenario, serving_columns(scenario)))
        for number, (scenario, _) in enumerate(runs)
        for name, slope in slopes_of(scenario, nothing).items()
        if np.isfinite(slope).all()
    ]
    if not figures:
        return runs
    numbers, names, slopes, loads = (list(column) for column in zip(*figures, strict=True))
    covariance, noise = np.diag(prior_sd(runs[0][0]) ** 2), noise_sd()
    least = np.array([noise[name] ** 2 for name in names])

    def doubt(chosen: list[int]) -> float:
        left = foreseen(np.array(slopes), np.array(loads), names, covariance, np.isin(numbers, chosen))
        return float(np.log(left + least).sum())

    order = list(range(len(runs)))
    for known in range(count):
        best = min(order[known:], key=lambda place: doubt([*order[:known], place]))
        order.remove(best)
        order.insert(known, best)
    return [runs[place] for place in order]


def held_out(runs: list[Measured], count: int, draw: random.Random, *, chosen: bool = False) -> list[dict[str, Any]]:
    """Other runs of a deployment, predicted before and after it is calibrated to `count` of its runs.

    Parameters
    ----------
    runs : list
        Of one deployment.
    count : int
        Runs to calibrate to: drawn at random, or `most_telling` where they are `chosen`.
    draw : random.Random
        For the draw.

    Returns
    -------
    list of dict
        figure, before and after (ln of predicted ÷ measured), sd (the standard deviation that the calibration states
        for further runs) and own (median absolute error of the figure in the runs that it is calibrated to, before).
    """
    mixed = draw.sample(runs, len(runs))
    if chosen:
        mixed = most_telling(mixed[: count + MOST_OTHERS], count)
    try:
        fitted = fit_runs(mixed[:count], uncalibrated(mixed[0][0]))
    except PlannerError:
        return []
    rows = []
    for scenario, measured in mixed[count : count + MOST_OTHERS]:
        calibration = fitted.at(scenario, scenario)
        made = calibration.scenario
        before, after = serving_columns(scenario), serving_columns(made)
        for figure, columns in FIGURES.items():
            name = columns[0]
            if name in measured and before.get(name, 0) > 0 and after.get(name, 0) > 0:
                logs = (math.log(found[name] / measured[name]) for found in (before, after))
                sd = getattr(made, ERRORS[figure])
                known = {"figure": figure, "sd": sd, "own": calibration.error("before", figure)}
                rows.append(known | dict(zip(("before", "after"), logs, strict=True)))
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Absolute errors of each figure before and after in percent, and the share of runs inside the stated bands."""
    lines = []
    for figure in FIGURES:
        mine = [row for row in rows if row["figure"] == figure]
        if not mine:
            continue
        before, after = (_percent([row[when] for row in mine]) for when in ("before", "after"))
        narrowed = [row for row in mine if row["sd"]]
        far: Floats = np.array([abs(row["after"]) / row["sd"] for row in narrowed])
        lines.append(
            {
                "figure": figure,
                "runs": len(mine),
                "before_median_pct": float(np.median(before)),
                "after_median_pct": float(np.median(after)),
                "before_p90_pct": float(np.quantile(before, 0.9)),
                "after_p90_pct": float(np.quantile(after, 0.9)),
                "inside_50_pct": 100 * float(np.mean(far < 0.6745)) if len(far) else None,
                "inside_90_pct": 100 * float(np.mean(far < 1.6449)) if len(far) else None,
            }
        )
    return lines


def _percent(logs: list[float]) -> Floats:
    found: Floats = 100 * np.abs(np.expm1(np.array(logs)))
    return found


def main(argv: list[str] | None = None) -> None:
    """Print the errors of held-out runs before and after calibrating."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="SERVING.csv")
    parser.add_argument("--runs", type=int, default=3, help="runs that each deployment is calibrated to")
    parser.add_argument("--deployments", type=int, default=0, help="at most so many deployments; 0 = all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw of deployments and runs")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("--chosen", action="store_true", help="choose the runs by what they tell, not at random")
    options = parser.parse_args(argv)
    draw = random.Random(options.seed)
    with Path(options.file).open(encoding="utf-8", newline="") as file:
        found = deployments(csv.DictReader(file))
    known = [runs for runs in found if len(runs) >= options.runs + LEAST_OTHERS]
    draw.shuffle(known)
    known = known[: options.deployments or None]
    each = [held_out(runs, options.runs, draw, chosen=options.chosen) for runs in known]
    rows = [row for found in each for row in found]
    parts = {"all": summary(rows), "off": summary([row for row in rows if row["own"] > OFF])}
    if options.json:
        print(json.dumps(parts, indent=2))
        return
    print(f"{counted(len(known), 'deployment')}, each calibrated to {options.runs} of its runs: error of its others")
    _print(parts["all"])
    print(f"Where the figure of those runs was off by more than {100 * OFF:.0f} %:")
    _print(parts["off"])


def _print(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        print(
            f"{line['figure']:>10}: {line['runs']:,} runs, median {line['before_median_pct']:.1f} % → "
            f"{line['after_median_pct']:.1f} %, 90th percentile {line['before_p90_pct']:.0f} % → "
            f"{line['after_p90_pct']:.0f} %; {line['inside_90_pct'] or math.nan:.0f} % in the band of 90 %"
        )


if __name__ == "__main__":
    main()
