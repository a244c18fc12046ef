"""Calibrate a plan to runs that a user measured: five factors on the step times of that deployment.

The prior comes from our errors on published runs, so that a factor that the runs cannot see stays where it is. What no
factor explains is alike in runs under a like load: the factors of a plan give the figures to be expected at its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.accuracy import serving_columns
from planner.answer import load_test_scenario, size
from planner.answer import plan as solved
from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.reading.nearness import load_of, noise_sd, rest_sd, shared
from planner.reading.posterior import LARGEST_MOVE, STEP, Posterior, fit
from planner.reading.reading import Reading, run_scenario
from planner.reading.runs import Run
from planner.scenario import CALIBRATION, ERRORS, SCALES, Scenario, differing, fields_by_name, fingerprint

#: figure of the plan → columns of a run that state it, the first that a run has
FIGURES = {
    "ttft": ("ttft_ms_mean", "ttft_ms_p50"),
    "tpot": ("tpot_ms_mean", "tpot_ms_p50"),
    "throughput": ("output_tok_s_total", "total_tok_s", "req_s"),
}
#: which of our left-out errors is the prior of a factor; the CPU's are those of `planner.accuracy.folds`
PRIOR_BAND = {"weights": "tpot", "sequences": "tpot", "prefill": "ttft"}
PREFILL_SHARE = 0.5  # of the error of TTFT that a longer prefill explains: the rest is queueing and the client
CPU_PRIOR_SD = 0.4
#: how benchmark clients run one replica and report it
CLIENT = {"question": "will", "num_replicas": 1, "measured_requests": "all", "exact_output_limit": True}
SEEN = 0.8  # of the prior's standard deviation: where runs leave less, they show the factor
NINETY = 1.645  # standard deviations to each side that hold 90 % of a normal distribution
PRIOR_COUNT = 2  # figures that the usual error of a calibrated figure counts as
#: of what a fit leaves in doubt of a figure, and of its error before, what is left in published runs: with these the
#: bands hold about 90 % of further runs where the figure was off and where it was not (held_out.py)
USUAL_SHARE, CORRECTION_SHARE = 0.4, 0.3
LEAST_RUNS = 3  # whose left-out errors narrow a band
CLOSE = 0.5  # of the noise of a figure, to which the factors for one load give those that are expected there
MOST_ERROR = 5.0

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
    return fit_runs(runs, plan, predict).at(plan)


def fit_runs(
    runs: Sequence[tuple[Scenario, Mapping[str, float]]], plan: Scenario, predict: Predict = serving_columns
) -> Fit:
    """What runs say of a deployment, for plans with any traffic; arguments and errors as `calibrate_runs` has them."""
    of = fingerprint(plan)
    for scenario, _ in runs:
        other = differing(scenario, of)
        if other:
            raise InvalidInput("file", f"a run with another {other[0]}", f"runs of the plan's own {', '.join(other)}")
    plain = [uncalibrated(scenario) for scenario, _ in runs]
    before = [predict(scenario) for scenario in plain]
    rows = tuple(
        Row(
            run=number,
            figure=figure,
            column=name,
            measured=value,
            before=before[number][name],
            load=load_of(plain[number], before[number]),
        )
        for number, (_, measured) in enumerate(runs)
        for figure, columns in FIGURES.items()
        for name, value in measured.items()
        if name in columns and before[number].get(name, 0.0) > 0
    )
    if not rows:
        refusal = size(plan, explain=False).memory.refusal
        raise InvalidInput("file", refusal or "no figure", "runs that the plan can simulate, with a latency or rate")

    def figures(logs: Floats) -> Floats:
        scaled = [predict(with_factors(scenario, logs, of)) for scenario in plain]
        return np.array([scaled[row.run].get(row.column, row.before) for row in rows])

    noise, names, loads = noise_sd(), [row.figure for row in rows], np.array([row.load for row in rows])
    found = fit(
        figures,
        np.array([row.measured for row in rows]),
        np.array([noise[name] for name in names]),
        prior_sd(plan),
        shared=shared(loads, names, loads, names),
        runs=np.array([row.run for row in rows]),
    )
    return Fit(rows=rows, found=found, predict=predict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure of a run, as predicted before, and the run's load."""

    run: int
    figure: str
    column: str
    measured: float
    before: float
    load: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Factors of a deployment, and what they leave of each figure near the loads that were measured."""

    rows: tuple[Row, ...]
    found: Posterior
    predict: Predict

    def at(self, plan: Scenario, tested: Scenario | None = None) -> Calibration:
        """The calibration for the load of a plan.

        Its factors give the figures to be expected there: those of the factors that fit all runs best, off as much as
        runs under a like load are.

        Parameters
        ----------
        plan : Scenario
            The plan.
        tested : Scenario, optional
            A run under the plan's own load; None: that of `own_load`.
        """
        numbers = np.array([row.run for row in self.rows])
        off = self.found.left_out(numbers)
        logs, doubt = self._near(own_load(uncalibrated(plan)) if tested is None else tested)
        errors = dict.fromkeys(ERRORS.values(), 0.0)
        if len(set(numbers.tolist())) >= LEAST_RUNS:
            for figure, spread in doubt.items():
                mine = np.array([row.figure == figure for row in self.rows])
                before = np.array([math.log(row.before / row.measured) for row in self.rows])
                usual = math.hypot(USUAL_SHARE * spread, noise_sd()[figure])
                errors[ERRORS[figure]] = min(MOST_ERROR, further_error(usual, off[mine], before[mine]))
        factors = _within_bounds(dict(zip(SCALES.values(), np.exp(logs).tolist(), strict=True)))
        rounded = {name: float(f"{value:.4g}") for name, value in (factors | errors).items()}
        return Calibration(
            scenario=plan.replace(
                **rounded,
                calibration_runs=len(set(numbers)),
                calibration_of=fingerprint(plan),
                calibration_load=plan.load.text,
            ),
            factors=_factors(self.found, logs),
            figures=tuple(
                Fitted(
                    run=row.run + 1,
                    figure=row.figure,
                    column=row.column,
                    measured=row.measured,
                    before=row.before,
                    after=row.measured * math.exp(self.found.residuals[place] - self._rest[place]),
                    left_out=row.measured * math.exp(off[place]),
                )
                for place, row in enumerate(self.rows)
            ),
        )

    @property
    def _rest(self) -> Floats:
        """What the factors leave of the fitted figures themselves, without their noise."""
        return self._elsewhere([row.figure for row in self.rows], [row.load for row in self.rows], self.found.slopes)[0]

    def _elsewhere(self, figures: list[str], loads: list[Floats], slopes: Floats) -> tuple[Floats, Floats]:
        places, known = np.array(loads), np.array([row.load for row in self.rows])
        common = shared(places, figures, known, [row.figure for row in self.rows])
        alone = np.array([rest_sd()[figure] ** 2 for figure in figures])
        return self.found.elsewhere(slopes, common, alone)

    def _near(self, tested: Scenario) -> tuple[Floats, dict[str, float]]:
        """Logarithms of the factors for the load of a run, and by how much each figure may be off with them.

        Standard deviations without the noise of a figure.

        The least move from the common factors that gives the figures expected there, each taken for a straight line.
        """
        common, of = self.found.logs, fingerprint(tested)
        there = self.predict(with_factors(tested, common, of))
        changed = [self.predict(with_factors(tested, common + STEP * unit, of)) for unit in np.eye(len(common))]
        names = {
            figure: columns[0]
            for figure, columns in FIGURES.items()
            if all(figures.get(columns[0], 0.0) > 0 for figures in (there, *changed))
        }
        if not names:
            return common, {}
        slopes = np.array(
            [[math.log(figures[name] / there[name]) / STEP for figures in changed] for name in names.values()]
        )
        rest, spread = self._elsewhere(list(names), [load_of(tested, there)] * len(names), slopes)
        noise = np.array([noise_sd()[figure] for figure in names])
        reach = slopes * self.found.prior_sd**2
        move = -reach.T @ np.linalg.solve(reach @ slopes.T + np.diag((CLOSE * noise) ** 2), rest)
        doubt = dict(zip(names, spread.tolist(), strict=True))
        return common + np.clip(move, -LARGEST_MOVE, LARGEST_MOVE), doubt


def own_load(plan: Scenario) -> Scenario:
    """A run of the plan's own load: the plan itself where it says how many replicas there are, else one replica's."""
    if plan.num_replicas:
        return plan
    done = solved(plan, with_policies=False)
    return load_test_scenario(done) if done.fits else plan


def prior_sd(plan: Scenario) -> Floats:
    """Standard deviation of the logarithm of each factor before anything is measured, in the order of `SCALES`."""
    bands = size(plan.replace(target_quantile=0.5), explain=False).bands
    widths = {
        name: math.log(bands[band].factor(0.95) / bands[band].factor(0.05)) / (2 * NINETY)
        for name, band in PRIOR_BAND.items()
    }
    widths["prefill"] *= PREFILL_SHARE
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


def _factors(found: Posterior, logs: Floats) -> tuple[Factor, ...]:
    spread, declared = np.minimum(found.spread, found.prior_sd), fields_by_name()
    return tuple(
        Factor(
            name=name,
            label=str(declared[field].metadata["label"]).partition(",")[0],
            value=math.exp(logs[place]),
            low=math.exp(logs[place] - NINETY * spread[place]),
            high=math.exp(logs[place] + NINETY * spread[place]),
            is_seen=bool(spread[place] < SEEN * found.prior_sd[place]),
        )
        for place, (name, field) in enumerate(SCALES.items())
    )


def further_error(usual: float, off: Floats, before: Floats) -> float:
    """Standard deviation of a normal distribution that holds 90 % of a figure's further errors.

    What is left differs from deployment to deployment. The usual error counts as two figures beside those that were
    left out, and few figures widen the range as Student's distribution does. Where much had to be corrected, a share of
    the correction is in doubt at other loads.

    Parameters
    ----------
    usual : float
        Standard deviation of the logarithm of a calibrated figure in published runs.
    off : array
        ln(predicted ÷ measured) of the figure in each run, as the others predict it.
    before : array
        The same before calibrating.
    """
    freedom = PRIOR_COUNT + len(off)
    variance = (PRIOR_COUNT * usual**2 + float((off**2).sum())) / freedom
    if len(before):
        variance += CORRECTION_SHARE**2 * float((before**2).mean())
    return _student_ninety(freedom) / NINETY * math.sqrt(variance)


def _student_ninety(freedom: int) -> float:
    """What to each side holds 90 % of Student's distribution: Abramowitz and Stegun, 26.7.5, within 1.3 % from two on.

    Parameters
    ----------
    freedom : int
        Degrees of freedom.
    """
    x, n = NINETY, float(freedom)
    terms = (
        (x**3 + x) / (4 * n),
        (5 * x**5 + 16 * x**3 + 3 * x) / (96 * n**2),
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * n**3),
    )
    return x + sum(terms)
