"""Calibrate a plan to runs that a user measured: five factors on the step times of that deployment.

The prior comes from our errors on published runs, so that a factor that the runs cannot see stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.accuracy import serving_columns
from planner.answer import size
from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.reading.benchmarks import Run
from planner.reading.posterior import Posterior, fit
from planner.reading.reading import Reading, run_scenario
from planner.scenario import CALIBRATION, ERRORS, SCALES, Scenario, differing, fields_by_name, fingerprint
from planner.tables import read_table

NOISE = "reading/calibration_noise.csv"
#: figure of the plan → columns of a run that state it, the first that a run has
FIGURES = {
    "ttft": ("ttft_ms_mean", "ttft_ms_p50"),
    "tpot": ("tpot_ms_mean", "tpot_ms_p50"),
    "throughput": ("output_tok_s_total", "total_tok_s", "req_s"),
}
#: which of our left-out errors is the prior of a factor; the CPU's are those of `planner.accuracy.folds`
PRIOR_BAND = {"weights": "tpot", "sequences": "tpot", "prefill": "ttft"}
CPU_PRIOR_SD = 0.4
#: how benchmark clients run one replica and report it
CLIENT = {"question": "will", "num_replicas": 1, "measured_requests": "all", "exact_output_limit": True}
SEEN = 0.8  # of the prior's standard deviation: where runs leave less, they show the factor
NINETY = 1.645  # standard deviations to each side that hold 90 % of a normal distribution
PRIOR_COUNT = 3  # runs that the usual error of a calibrated figure counts as
LEAST_RUNS = 3  # whose left-out errors narrow a band

Predict = Callable[[Scenario], Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One fitted factor, measured ÷ predicted time, with its range of 90 %; `is_seen`: the runs narrow it."""

    name: str
    label: str
    value: float
    low: float
    high: float
    is_seen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One measured figure and what the plan predicts before and after calibrating, and with its run left out."""

    run: int
    figure: str
    column: str
    measured: float
    before: float
    after: float
    left_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A fit to runs of one deployment; `scenario` is the plan's with the calibration in it."""

    scenario: Scenario
    factors: tuple[Factor, ...]
    figures: tuple[Fitted, ...]

    @property
    def factor_sd(self) -> Floats:
        """Standard deviation of each factor's logarithm, from its range of 90 %."""
        return np.array([math.log(item.high / item.low) / (2 * NINETY) for item in self.factors])

    @property
    def runs(self) -> int:
        """Runs that it is fitted to."""
        return self.scenario.calibration_runs

    def error(self, when: str, figure: str = "") -> float:
        """Median absolute error ("before", "after" or "left_out") of one figure, or of all; NaN without any."""
        rows = [row for row in self.figures if figure in ("", row.figure)]
        return float(np.median([abs(getattr(row, when) / row.measured - 1) for row in rows])) if rows else math.nan


def uncalibrated(scenario: Scenario) -> Scenario:
    """The scenario without its calibration."""
    declared = fields_by_name()
    return scenario.replace(**{name: declared[name].default for name in CALIBRATION})


def noise_sd() -> dict[str, float]:
    """Standard deviation of ln(measured ÷ predicted) of one run with the right factors, by figure."""
    return {row["quantity"]: float(row["noise_sd"]) for row in read_table(NOISE)}


def usual_error(figure: str) -> float:
    """Standard deviation of ln(measured ÷ predicted) that calibrations usually leave of a figure."""
    return next(float(row["left_sd"]) for row in read_table(NOISE) if row["quantity"] == figure)


def calibrate(reading: Reading, base: Scenario | None = None) -> Calibration:
    """Calibrate a plan to the runs of a benchmark's output.

    Parameters
    ----------
    reading : Reading
        With at least one run that states a latency or a throughput.
    base : Scenario, optional
        The plan whose deployment was measured; None: that of the reading's own scenario.

    Returns
    -------
    Calibration
        Its scenario is the base with the calibration.

    Raises
    ------
    InvalidInput
        When the file holds no run, runs of another deployment than the base, or none that the plan can simulate.
    """
    if not reading.runs or reading.runs[0].is_prediction or reading.scenario is None:
        valid = "the output of a benchmark with its latencies or throughput, such as that of vllm bench serve"
        raise InvalidInput("file", reading.problem or reading.kind, valid)
    plan = uncalibrated(base or reading.scenario)
    runs = [(run_scenario(run, plan).replace(**CLIENT), _measured(run)) for run in reading.runs]
    return calibrate_runs([(scenario, measured) for scenario, measured in runs if measured], plan)


def _measured(run: Run) -> dict[str, float]:
    """Column → figure of a run, one for each figure of the plan."""
    found = {}
    for columns in FIGURES.values():
        stated = ((name, run.columns.get(name)) for name in columns)
        for name, value in stated:
            if isinstance(value, float) and value > 0:
                found[name] = value
                break
    return found


def calibrate_runs(
    runs: Sequence[tuple[Scenario, Mapping[str, float]]], plan: Scenario, predict: Predict = serving_columns
) -> Calibration:
    """Calibrate a plan to runs of its deployment.

    Parameters
    ----------
    runs : sequence of (Scenario, mapping)
        What each run sent, and column of serving_benchmarks.csv → measured figure (ms, s, per second).
    plan : Scenario
        The plan; its traffic may differ from that of the runs, its deployment may not.
    predict : callable
        Scenario → the same columns.

    Raises
    ------
    InvalidInput
        When a run is of another deployment, or none can be simulated.
    """
    of = fingerprint(plan)
    for scenario, _ in runs:
        other = differing(scenario, of)
        if other:
            raise InvalidInput("file", f"a run with another {other[0]}", f"runs of the plan's own {', '.join(other)}")
    plain = [uncalibrated(scenario) for scenario, _ in runs]
    before = [predict(scenario) for scenario in plain]
    rows = [
        (number, figure, name, value)
        for number, (_, measured) in enumerate(runs)
        for figure, columns in FIGURES.items()
        for name, value in measured.items()
        if name in columns and before[number].get(name, 0.0) > 0
    ]
    if not rows:
        refusal = size(plan, explain=False).memory.refusal
        raise InvalidInput("file", refusal or "no figure", "runs that the plan can simulate, with a latency or rate")

    def figures(logs: Floats) -> Floats:
        scaled = [predict(with_factors(scenario, logs, of)) for scenario in plain]
        return np.array([scaled[number].get(name, before[number][name]) for number, _, name, _ in rows])

    noise = noise_sd()
    measured = np.array([value for *_, value in rows])
    found = fit(figures, measured, np.array([noise[figure] for _, figure, *_ in rows]), prior_sd(plan))
    numbers = np.array([number for number, *_ in rows])
    left_out = np.array([before[number][name] for number, _, name, _ in rows])
    for number in set(numbers.tolist()):
        alone = predict(with_factors(plain[number], found.logs_without(numbers == number), of))
        for place in np.flatnonzero(numbers == number):
            left_out[place] = alone.get(rows[place][2], left_out[place])
    return _calibration(plan, of, rows, [before[number][name] for number, _, name, _ in rows], found, left_out)


def prior_sd(plan: Scenario) -> Floats:
    """Standard deviation of the logarithm of each factor before anything is measured, in the order of `SCALES`."""
    bands = size(plan.replace(target_quantile=0.5), explain=False).bands
    widths = {
        name: math.log(bands[band].factor(0.95) / bands[band].factor(0.05)) / (2 * NINETY)
        for name, band in PRIOR_BAND.items()
    }
    return np.array([widths.get(name, CPU_PRIOR_SD) for name in SCALES])


def with_factors(scenario: Scenario, logs: Floats, of: str) -> Scenario:
    """A scenario whose times take factors, by their logarithms in the order of `SCALES`; `of` is its fingerprint."""
    factors = dict(zip(SCALES.values(), np.exp(logs).tolist(), strict=True))
    return scenario.replace(**_within_bounds(factors), calibration_runs=1, calibration_of=of)


def _within_bounds(factors: Mapping[str, float]) -> dict[str, float]:
    declared = fields_by_name()
    return {
        name: min(max(value, declared[name].metadata["minimum"]), declared[name].metadata["maximum"])
        for name, value in factors.items()
    }


def _calibration(
    plan: Scenario,
    of: str,
    rows: Sequence[tuple[int, str, str, float]],
    before: Sequence[float],
    found: Posterior,
    left_out: Floats,
) -> Calibration:
    numbers, figures = {number for number, *_ in rows}, np.array([figure for _, figure, *_ in rows])
    off = np.log(left_out / np.array([value for *_, value in rows]))
    factors = _within_bounds(dict(zip(SCALES.values(), np.exp(found.logs).tolist(), strict=True)))
    errors = {field: _left_error(figure, off[figures == figure]) for figure, field in ERRORS.items()}
    rounded = {name: float(f"{value:.4g}") for name, value in (factors | errors).items()}
    return Calibration(
        scenario=plan.replace(**rounded, calibration_runs=len(numbers), calibration_of=of),
        factors=_factors(found),
        figures=tuple(
            Fitted(
                run=number + 1,
                figure=figure,
                column=name,
                measured=value,
                before=before[place],
                after=value * math.exp(found.residuals[place]),
                left_out=float(left_out[place]),
            )
            for place, (number, figure, name, value) in enumerate(rows)
        ),
    )


def _factors(found: Posterior) -> tuple[Factor, ...]:
    spread, declared = np.minimum(found.spread, found.prior_sd), fields_by_name()
    return tuple(
        Factor(
            name=name,
            label=str(declared[field].metadata["label"]).partition(",")[0],
            value=math.exp(found.logs[place]),
            low=math.exp(found.logs[place] - NINETY * spread[place]),
            high=math.exp(found.logs[place] + NINETY * spread[place]),
            is_seen=bool(spread[place] < SEEN * found.prior_sd[place]),
        )
        for place, (name, field) in enumerate(SCALES.items())
    )


def _left_error(figure: str, off: Floats) -> float:
    """Standard deviation of ln(measured ÷ predicted) to expect of further runs; 0 where too few were measured.

    The usual error of calibrated runs counts as three of the runs. The factor is that of Student's distribution, whose
    standard deviation is wider with few of them.
    """
    if len(off) < LEAST_RUNS:
        return 0.0
    freedom = PRIOR_COUNT + len(off)
    variance = (PRIOR_COUNT * usual_error(figure) ** 2 + float((off**2).sum())) / freedom
    return min(5.0, math.sqrt(variance * freedom / (freedom - 2)))
