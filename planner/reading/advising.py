"""Which load test to run next: the one that leaves least doubt about the plan's most doubtful target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.accuracy import serving_columns
from planner.answer import BAND_OF, Plan, bench_command, load_test_scenario
from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.reading.calibrating import FIGURES, Predict, noise_sd, prior_sd, uncalibrated, usual_error, with_factors
from planner.scenario import SCALES, Scenario, fingerprint
from planner.units import counted

STEP = math.log(1.1)  # of a factor's logarithm, as a fit changes it
USERS = (1, 8, 32, 128, 512)  # closed loops that are tried beside the plan's own load
LEAST_SHARE = 0.01  # of the prior's variance: any calibration leaves as much
WAVES, FEWEST = 10, 60  # requests of each user, and of a test at least


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedTest:
    """A load test, in words and as a command, with the error of the deciding figure that it would leave."""

    load: str
    error: float
    command: str
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Load tests by what they leave in doubt, the best first.

    `figure` is the deciding one, `error` the standard deviation of ln(measured ÷ predicted) without a test.
    """

    figure: str
    error: float
    tests: tuple[AdvisedTest, ...]


def advise(done: Plan, factor_sd: Floats | None = None, predict: Predict = serving_columns) -> Advice:
    """The load tests of one replica by how far they would narrow a plan.

    Before a test, the factors of a calibration are as uncertain as our error on published runs, or as the plan's own
    calibration leaves them. A test narrows a factor by how strongly its latencies and throughput follow it.

    Parameters
    ----------
    done : Plan
        A simulated plan; the target that is most in doubt decides.
    factor_sd : array, optional
        Standard deviation of the logarithm of each factor, in the order of `SCALES`; None: the prior.
    predict : callable
        Scenario → columns of serving_benchmarks.csv.

    Raises
    ------
    InvalidInput
        When the plan's engine does not start.
    """
    if done.verdict is None:
        raise InvalidInput("scenario", done.scenario.model, "a plan whose engine starts")
    figure = BAND_OF.get(done.verdict.narrows, "throughput")
    own = load_test_scenario(done)
    logs = np.log([getattr(done.scenario.step_scales, name) for name in SCALES])
    spread = prior_sd(uncalibrated(done.scenario)) if factor_sd is None else factor_sd
    tests = [("the plan's own load", own), *_closed_loops(done, own)]
    found = [(words, tested, slopes_of(tested, logs, predict)) for words, tested in tests]
    decides = found[0][2].get(figure)
    if decides is None:
        raise InvalidInput("scenario", done.scenario.model, "a plan of which one replica serves its load")
    left = usual_error(figure)

    def error(covariance: Floats) -> float:
        return math.sqrt(float(decides @ covariance @ decides) + left**2)

    prior = np.diag(spread**2)
    stated = done.scenario.calibrated_errors.get(figure)
    if factor_sd is None and stated is not None:  # a link carries what the runs left of the error, not of each factor
        share = (stated**2 - left**2) / float(decides @ prior @ decides)
        prior *= min(1.0, max(LEAST_SHARE, share))
    rows = [
        AdvisedTest(
            load=words,
            error=error(narrowed(prior, [slopes])),
            command=bench_command(tested, done.model.name),
            scenario=tested,
        )
        for words, tested, slopes in found
    ]
    return Advice(
        figure=done.verdict.narrows, error=error(prior), tests=tuple(sorted(rows, key=lambda row: round(row.error, 3)))
    )


def _closed_loops(done: Plan, own: Scenario) -> list[tuple[str, Scenario]]:
    most = done.memory.max_num_seqs * done.scenario.attention_data_parallel_size
    return [
        (
            f"{counted(users, 'user')} at once",
            own.replace(arrivals="closed", concurrent_users=users, num_requests=max(FEWEST, WAVES * users)),
        )
        for users in USERS
        if users <= most
    ]


def slopes_of(scenario: Scenario, logs: Floats, predict: Predict = serving_columns) -> dict[str, Floats]:
    """How the logarithm of each figure of a run follows that of each factor; empty where nothing is served.

    Parameters
    ----------
    scenario : Scenario
        The run.
    logs : array
        Logarithms of the factors around which they are changed, in the order of `SCALES`.
    predict : callable
        Scenario → columns of serving_benchmarks.csv.
    """
    of = fingerprint(scenario)
    base = predict(with_factors(scenario, logs, of))
    changed = [predict(with_factors(scenario, logs + STEP * unit, of)) for unit in np.eye(len(logs))]
    names = {figure: columns[0] for figure, columns in FIGURES.items()}
    return {
        figure: np.array([math.log(other[name] / base[name]) / STEP for other in changed])
        for figure, name in names.items()
        if all(found.get(name, 0.0) > 0 for found in (base, *changed))
    }


def narrowed(covariance: Floats, runs: Sequence[dict[str, Floats]]) -> Floats:
    """Covariance of the factors' logarithms once further runs are measured.

    Parameters
    ----------
    covariance : array
        Before.
    runs : sequence of dict
        `slopes_of` each.
    """
    noise = noise_sd()
    information = np.linalg.inv(covariance)
    for slopes in runs:
        for figure, slope in slopes.items():
            information = information + np.outer(slope, slope) / noise[figure] ** 2
    found: Floats = np.linalg.inv(information)
    return found


def advice_text(found: Advice) -> str:
    """The test to run, what it leaves in doubt, and what the others would."""
    best, *others = found.tests
    lines = [
        f"Run next: {best.load}. It narrows {found.figure} from ± {_percent(found.error)} to ± {_percent(best.error)} "
        "(standard deviation).",
        best.command,
        "",
        "Then: python -m planner calibrate OUTPUT --scenario SCENARIO",
    ]
    lines += [f"  {row.load}: ± {_percent(row.error)}" for row in others]
    return "\n".join(lines)


def _percent(error: float) -> str:
    return f"{100 * math.expm1(error):.0f} %"
