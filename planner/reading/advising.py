"""Which load test to run next: the one that leaves least doubt about the plan's most doubtful target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.accuracy import serving_columns
from planner.answer import BAND_OF, Plan, bench_command, load_test_scenario
from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.reading.calibrating import FIGURES, Predict, prior_sd, uncalibrated, with_factors
from planner.reading.nearness import foreseen, load_of, noise_sd, rest_sd
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
    calibration leaves them. A test narrows a factor by how strongly its latencies and throughput follow it, and what no
    factor explains by how near its load is to the plan's.

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
    if figure not in found[0][2]:
        raise InvalidInput("scenario", done.scenario.model, "a plan of which one replica serves its load")
    places = [(number, name) for number, (_, _, slopes) in enumerate(found) for name in slopes]
    slopes = np.array([found[number][2][name] for number, name in places])
    loads = np.array([load_of(found[number][1], predict(found[number][1])) for number, _ in places])
    names = [name for _, name in places]
    own_place, noise = places.index((0, figure)), noise_sd()[figure]
    stated = done.scenario.calibrated_errors.get(figure)
    covariance, share = _before(slopes[own_place], figure, spread, stated, known=factor_sd is not None)

    def error(tested: int | None) -> float:
        measured = np.array([number == tested for number, _ in places])
        variance = foreseen(slopes, loads, names, covariance, measured, share)[own_place]
        return math.sqrt(variance + noise**2)

    rows = [
        AdvisedTest(load=words, error=error(number), command=bench_command(tested, done.model.name), scenario=tested)
        for number, (words, tested, _) in enumerate(found)
    ]
    return Advice(
        figure=done.verdict.narrows, error=error(None), tests=tuple(sorted(rows, key=lambda row: round(row.error, 3)))
    )


def _before(decides: Floats, figure: str, spread: Floats, stated: float | None, *, known: bool) -> tuple[Floats, float]:
    """Covariance of the factors, and the share of what no factor explains, that are in doubt before a test.

    A calibrated plan states the error of its figure. A file says beside it how far each factor is known; a link does
    not, and then both doubts are less by the same share.
    """
    prior, rest = np.diag(spread**2), rest_sd()[figure] ** 2
    if stated is None:
        return prior, 1.0
    explained, left = float(decides @ prior @ decides), max(0.0, stated**2 - noise_sd()[figure] ** 2)
    if known:
        return prior, min(1.0, max(LEAST_SHARE, (left - explained) / rest))
    share = min(1.0, max(LEAST_SHARE, left / (explained + rest)))
    return prior * share, share


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
