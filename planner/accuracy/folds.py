"""Errors on rows that were left out of the fit: by source, and by model and GPU.

    python -m planner.accuracy.folds SERVING.csv [--rows-per-pair N] [--out LEFT_OUT.csv] [--rows ROWS.csv]

The serving overheads (`catalog/serving_overheads.csv`) are the parameters that were chosen with serving rows in view.
Each fold takes one source, or one pair of model and GPU, away, fits a scale of each of an engine's overheads to the
rows that remain, and predicts those taken away. The simulator is run once per overhead, not once per fold: the
logarithm of a prediction is taken as linear in the logarithm of an overhead, from a change of 25 %. Rows on GPUs of an
architecture whose kernels nobody timed are predicted, but inform no fit: their kernels' errors would pass for
overheads. On GPUs without kernel tables, leaving a source out also takes away what published runs taught about the
class's kernels (`evidence` "measured" in `catalog/efficiency_classes.csv`).
`accuracy/data/left_out.csv`, which the Accuracy page shows, is written with `--rows-per-pair 0`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from planner.accuracy import serving
from planner.accuracy.calibration import gauss_newton
from planner.accuracy.names import find_engine_preset
from planner.accuracy.scoring import labels, measured_values, relative_errors, serving_class, serving_counts
from planner.accuracy.serving_rows import read_run
from planner.accuracy.validation import read_rows
from planner.arrays import Bools, Floats
from planner.catalog import get_engine
from planner.step_time import (
    KERNELS_MEASURED,
    SAME_ARCHITECTURE,
    kernel_evidence,
    scaled_overheads,
    without_published_runs,
)

QUANTITIES = ("ttft_ms_mean", "tpot_ms_mean", "output_tok_s_total")  # that the scales are fitted to
#: also predicted, with the same scales
FURTHER = ("total_tok_s", "req_s", "e2e_s_mean", "ttft_ms_p50", "tpot_ms_p50", "ttft_ms_p99", "tpot_ms_p99")
#: overheads that a fold fits, one scale per engine over all of its versions and architectures
FITTED = (
    "request_overhead_ms",
    "prompt_step_us",
    "prompt_launch_us_per_layer",
    "prompt_expert_factor",
    "host_us",
    "host_us_per_sequence",
    "api_ms_per_request",
    "api_us_per_token",
)
ENGINES = ("vllm", "sglang", "trtllm")
CHANGE = 1.25
SCALE_PRIOR_SD = 0.4  # of the logarithm of a scale: the stored overheads are right within a factor of 1.5
LEAST_ROWS = 20  # of a group that is printed
METHODS = ("stored", "fitted", "no_source", "no_pair")

Predictor = Callable[[pd.DataFrame], tuple[pd.DataFrame, dict[int, str]]]


def engine_families(frame: pd.DataFrame) -> pd.Series:
    """Engine family of each row, "" where the row names none that is known."""

    def family(name: object) -> str:
        try:
            return get_engine(find_engine_preset(str(name))).family
        except ValueError:
            return ""

    known = {name: family(name) for name in frame["engine"].unique()}
    return frame["engine"].map(known).astype(object)


def source_groups(frame: pd.DataFrame) -> pd.Series:
    """Source of each row, which folds keep together: one file of several samples ("name(sample)") is one source."""
    return labels(frame["source"]).str.replace(r"\(.*", "", regex=True).replace("", "?")


def thinned(frame: pd.DataFrame, rows_per_pair: int) -> pd.DataFrame:
    """At most so many rows of each source, model and GPU, the same at every call; 0 keeps all."""
    if not rows_per_pair:
        return frame
    mixed = frame.sample(frac=1.0, random_state=3)
    kept = mixed.groupby([labels(mixed[name]) for name in ("source", "model", "gpu")]).head(rows_per_pair)
    return kept.sort_index()


def log_errors(frame: pd.DataFrame, predicted: pd.DataFrame) -> Floats:
    """ln(predicted ÷ measured) of each row and quantity; NaN where it does not count."""
    columns = []
    for quantity in (*QUANTITIES, *FURTHER):
        error = relative_errors(frame, predicted, quantity).where(serving_counts(frame, quantity))
        columns.append(np.log1p(error.to_numpy(np.float64)))
    return np.stack(columns, axis=1)


def sensitivities(frame: pd.DataFrame, base: Floats, predict: Predictor = serving.predict) -> Floats:
    """How the logarithm of each prediction follows the logarithm of each overhead of its engine.

    Parameters
    ----------
    frame : pandas.DataFrame
        Serving rows.
    base : array, rows × quantities
        `log_errors` with the stored overheads.
    predict : callable
        Rows → predictions.

    Returns
    -------
    array, rows × quantities × parameters
        Zero for rows of engines without overheads of their own.
    """
    families = engine_families(frame).to_numpy()
    slopes = np.zeros((*base.shape, len(FITTED)))
    for engine in ENGINES:
        mine = families == engine
        if not mine.any():
            continue
        for number, parameter in enumerate(FITTED):
            with scaled_overheads({(engine, parameter): CHANGE}):
                changed = log_errors(frame[mine], predict(frame[mine])[0])
            slopes[mine, :, number] = (changed - base[mine]) / np.log(CHANGE)
    return np.nan_to_num(slopes)


def fit_scales(errors: Floats, slopes: Floats) -> Floats:
    """Fit the scales of one engine's overheads to its rows.

    Parameters
    ----------
    errors : array, rows × quantities
        ln(predicted ÷ measured) with the stored overheads.
    slopes : array, rows × quantities × parameters
        `sensitivities` of the same rows.

    Returns
    -------
    array
        Logarithm of each parameter's scale: Huber weights and a prior at no change. Fitted to `QUANTITIES` alone.
    """
    errors, slopes = errors[:, : len(QUANTITIES)], slopes[:, : len(QUANTITIES)]
    known = ~np.isnan(errors)
    if not known.any():
        return np.zeros(slopes.shape[-1])
    error, slope = errors[known], slopes[known]
    scales, _ = gauss_newton(
        lambda x: np.exp(error + slope @ np.log(x)),
        np.ones(len(error)),
        np.ones(slope.shape[1]),
        prior_sd=SCALE_PRIOR_SD,
    )
    return np.asarray(np.log(scales))


def left_out(errors: Floats, slopes: Floats, groups: Sequence[str], informs: Bools | None = None) -> Floats:
    """ln(predicted ÷ measured) of each row, with scales fitted to the rows of all other groups that inform a fit."""
    names = np.asarray(groups)
    usable = np.ones(len(names), dtype=bool) if informs is None else informs
    out = errors.copy()
    for name in np.unique(names):
        mine = names == name
        others = usable & ~mine
        out[mine] = errors[mine] + slopes[mine] @ fit_scales(errors[others], slopes[others])
    return out


def evidence_of_rows(frame: pd.DataFrame) -> list[str]:
    """How near measured kernels are to those of each row (`planner.step_time.kernel_evidence`).

    Returns
    -------
    list of str
        "" where a row tells nothing of a service that runs: a first run's warm-up, or a row that is not planned.
    """
    return [_evidence({str(key): value for key, value in row.items()}) for row in frame.to_dict("records")]


def all_errors(
    frame: pd.DataFrame, base: Floats, slopes: Floats, foreign: Floats, evidence: Sequence[str]
) -> dict[str, Floats]:
    """ln(predicted ÷ measured) of each row and quantity by each of `METHODS`.

    Parameters
    ----------
    frame : pandas.DataFrame
        Serving rows.
    base, slopes : array
        `log_errors` and `sensitivities`.
    foreign : array
        As `base`, without what published runs taught about GPU classes.
    evidence : sequence of str
        `evidence_of_rows`.
    """
    families = engine_families(frame).to_numpy()
    known = np.isin(evidence, (KERNELS_MEASURED, SAME_ARCHITECTURE))
    found = {name: (foreign if name.startswith("no_") else base).copy() for name in METHODS}
    pairs = labels(frame["model"]) + " · " + labels(frame["gpu"])
    for engine in ENGINES:
        mine = families == engine
        error, slope, apart, informs = base[mine], slopes[mine], foreign[mine] - base[mine], known[mine]
        found["fitted"][mine] = error + slope @ fit_scales(error[informs], slope[informs])
        found["no_source"][mine] = apart + left_out(error, slope, source_groups(frame[mine]).tolist(), informs)
        found["no_pair"][mine] = apart + left_out(error, slope, pairs[mine].tolist(), informs)
    return found


def left_out_rows(frame: pd.DataFrame, no_source: Floats, evidence: Sequence[str]) -> pd.DataFrame:
    """Predictions of each row and quantity when its source was left out.

    Returns
    -------
    pandas.DataFrame
        id, quantity, family (of the engine, "" where it has no overheads of its own), group (source), evidence
        (`planner.step_time.kernel_evidence`) and left_out, in the quantity's unit.
    """
    own = pd.DataFrame({"id": frame["id"], "family": engine_families(frame), "group": source_groups(frame)})
    own["evidence"] = evidence
    parts = []
    for number, quantity in enumerate((*QUANTITIES, *FURTHER)):
        value = measured_values(frame, quantity) * np.exp(no_source[:, number])
        parts.append(own.assign(quantity=quantity, left_out=value)[value.notna()])
    return pd.concat(parts, ignore_index=True)


def _evidence(row: dict[str, object]) -> str:
    if "SUSPECT" in str(row.get("notes")):  # whoever collected the row takes its figure for a first run's warm-up
        return ""
    try:
        scenario = read_run(row).scenario
    except ValueError:  # the row is not predicted either
        return ""
    return kernel_evidence(scenario.model_shape, scenario.gpu_spec, scenario.engine_settings, scenario.weight_dtype)


def report(frame: pd.DataFrame, found: dict[str, Floats]) -> pd.DataFrame:
    """Compare stored, fitted and left-out errors by class, engine and GPU.

    Parameters
    ----------
    frame : pandas.DataFrame
        Serving rows.
    found : dict
        `all_errors`.

    Returns
    -------
    pandas.DataFrame
        quantity, group, rows, and signed median, median and 90th percentile in percent of: the stored overheads, scales
        fitted to all rows, scales fitted without the row's source, and without its model and GPU (`METHODS`).
    """
    classes = serving_class(frame)
    groups = pd.concat([classes, classes + " · " + labels(frame["engine"]), classes + " · " + labels(frame["gpu"])])
    lines = []
    for number, quantity in enumerate(QUANTITIES):
        for group in sorted(groups.unique()):
            mine = np.asarray((groups == group).groupby(level=0).any().reindex(frame.index))
            rows = int((~np.isnan(found["stored"][mine, number])).sum())
            if rows < LEAST_ROWS:
                continue
            line: dict[str, object] = {"quantity": quantity, "group": group, "rows": rows}
            for name, errors in found.items():
                percent = 100 * np.expm1(errors[mine, number])
                percent = percent[~np.isnan(percent)]
                line[f"{name}_signed_pct"] = np.median(percent)
                line[f"{name}_median_pct"] = np.median(np.abs(percent))
                line[f"{name}_p90_pct"] = np.quantile(np.abs(percent), 0.9)
            lines.append(line)
    return pd.DataFrame(lines)


def main(argv: list[str] | None = None) -> None:
    """Print the errors of a serving file's rows, fitted and left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="SERVING.csv")
    parser.add_argument("--rows-per-pair", type=int, default=3, help="rows of each source, model and GPU; 0 = all")
    parser.add_argument("--out", metavar="LEFT_OUT.csv", help="also write the table to a file")
    parser.add_argument("--rows", metavar="ROWS.csv", help="also write each row's left-out predictions to a file")
    options = parser.parse_args(argv)
    frame = thinned(read_rows(options.file), options.rows_per_pair).reset_index(drop=True)
    base = log_errors(frame, serving.predict(frame)[0])
    slopes = sensitivities(frame, base)
    with without_published_runs():
        foreign = log_errors(frame, serving.predict(frame)[0])
    families, evidence = engine_families(frame).to_numpy(), evidence_of_rows(frame)
    print(
        f"{len(frame):,} rows, {len(FITTED) * len(ENGINES)} scales: {len(FITTED)} overheads of {len(ENGINES)} engines"
    )
    for engine in ENGINES:
        mine = (families == engine) & np.isin(evidence, (KERNELS_MEASURED, SAME_ARCHITECTURE))
        scales = np.exp(fit_scales(base[mine], slopes[mine]))
        print(f"  {engine}: " + ", ".join(f"{name} × {x:.2f}" for name, x in zip(FITTED, scales, strict=True)))
    print("signed median, median and p90 of the error in %")
    found = all_errors(frame, base, slopes, foreign, evidence)
    table = report(frame, found)
    print(table.to_string(index=False, float_format="{:.1f}".format))
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.1f")
    if options.rows:
        left_out_rows(frame, found["no_source"], evidence).to_csv(options.rows, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
