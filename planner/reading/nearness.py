"""How far the errors of two runs are alike: the nearer their loads, the more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats
from planner.scenario import Scenario
from planner.tables import read_table

NOISE = "reading/calibration_noise.csv"
#: doublings of requests at once, of the prompt and of the answer over which an error is forgotten to 0.61 (e^−½)
REACH = np.array([2.0, 3.0, 3.0])


def noise_sd() -> dict[str, float]:
    """Standard deviation of ln(measured ÷ predicted) between repeated runs with the right factors, by figure."""
    return {row["quantity"]: float(row["noise_sd"]) for row in read_table(NOISE)}


def rest_sd() -> dict[str, float]:
    """Standard deviation of what the right factors leave of ln(measured ÷ predicted) at one load, by figure."""
    return {row["quantity"]: float(row["rest_sd"]) for row in read_table(NOISE)}


def load_of(scenario: Scenario, figures: Mapping[str, float]) -> Floats:
    """Doublings of a run's requests at once on one replica, of its prompt and of its answer.

    Parameters
    ----------
    scenario : Scenario
        The run.
    figures : mapping
        Its predicted columns of serving_benchmarks.csv; a rate and the time of a request tell how many are under way.
    """
    replicas = scenario.num_replicas or 1
    if scenario.arrivals == "closed":
        at_once = float(scenario.concurrent_users)
    elif scenario.arrivals == "once":
        at_once = float(scenario.num_requests)
    else:
        at_once = figures.get("req_s", 1.0) * figures.get("e2e_s_mean", 1.0)
    sizes = (at_once / replicas, scenario.prompt_mean_tokens, scenario.output_mean_tokens)
    return np.array([math.log2(max(1.0, size)) for size in sizes])


def shared(loads: Floats, figures: Sequence[str], other_loads: Floats, other_figures: Sequence[str]) -> Floats:
    """Covariance of the errors that figures share: squared exponential in the distance of their loads.

    Parameters
    ----------
    loads, other_loads : array
        `load_of` of each figure's run, one row each.
    figures, other_figures : sequence of str
        Their names; different figures share nothing.
    """
    rest = rest_sd()
    same = np.array([[one == other for other in other_figures] for one in figures])
    sd = np.array([rest[figure] for figure in figures])
    apart = ((loads[:, None] - other_loads[None]) / REACH) ** 2
    found: Floats = sd[:, None] ** 2 * same * np.exp(-0.5 * apart.sum(axis=-1))
    return found


def foreseen(
    slopes: Floats,
    loads: Floats,
    figures: Sequence[str],
    covariance: Floats,
    measured: NDArray[np.bool_],
    share: float = 1.0,
) -> Floats:
    """Variance of what will be off in each figure, its noise left aside, once some of them are measured.

    Parameters
    ----------
    slopes : array
        How the logarithm of each figure follows that of each factor.
    loads : array
        `load_of` of each figure's run, one row each.
    figures : sequence of str
        Their names.
    covariance : array
        Of the factors' logarithms, before.
    measured : boolean array
        Which figures are measured.
    share : float
        Of the variance that no factor explains, what is still unknown before.
    """
    noise = np.array([noise_sd()[figure] ** 2 for figure in figures])
    whole = slopes @ covariance @ slopes.T + share * shared(loads, figures, loads, figures)
    seen = whole[:, measured]
    inner = seen[measured] + np.diag(noise[measured])
    told: Floats = np.maximum(np.diag(whole) - np.einsum("ij,ji->i", seen, np.linalg.solve(inner, seen.T)), 0.0)
    return told
