"""Fit a few positive factors to measured figures under a Gaussian prior on their logarithms.

What the factors leave of a figure may be alike in figures that were measured under like conditions: then the figures
share an error beside the noise of each. A figure, or all of a run, may be wrong: how likely that is follows from how
much better the others agree without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.arrays import Bools, Floats, Ints

STEP = math.log(1.1)  # of a logarithm, for the slope of a simulation, which is no smooth function
MOST_STEPS = 4
SETTLED = 0.01  # of a logarithm
LARGEST_MOVE = math.log(2.0)  # of a factor in one step
#: share of the figures, and of the runs, that are wrong, and by how much in logarithms: where a load was published more
#: than once, half of the runs agree within 1 %, and some are off by a factor of four
WRONG_SHARE, WRONG_SD = 0.01, 0.7
NEGLIGIBLE = 1e-4  # of the likeliest


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """What figures say about factors.

    `logs` are the fitted logarithms and `covariance` theirs; `residuals` ln(predicted ÷ measured) with them, `slopes`
    how the logarithm of each prediction follows that of each factor, `precision` the inverse covariance of the figures'
    errors. `prior_sd` is the standard deviation of each logarithm without figures.
    """

    logs: Floats
    covariance: Floats
    residuals: Floats
    slopes: Floats
    precision: Floats
    prior_sd: Floats

    @property
    def spread(self) -> Floats:
        """Standard deviation of each logarithm; wider with few figures, as Student's distribution is."""
        freedom = len(self.residuals) + len(self.logs)  # each prior counts as a figure
        found: Floats = np.sqrt(np.diag(self.covariance) * freedom / max(freedom - 2, 1))
        return found

    def left_out(self, groups: np.ndarray) -> Floats:
        """ln(predicted ÷ measured) of each figure as figures of other groups predict it.

        The figures are taken for a straight line through the optimum, all known to be normal: Rasmussen and Williams,
        Gaussian Processes for Machine Learning, section 5.4.2.

        Parameters
        ----------
        groups : integer array
            Of each figure.
        """
        whole = np.linalg.inv(self.precision) + self.slopes @ np.diag(self.prior_sd**2) @ self.slopes.T
        inverse = np.linalg.inv(whole)
        told = inverse @ (self.residuals - self.slopes @ self.logs)
        off = np.zeros(len(told))
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            off[own] = np.linalg.solve(inverse[np.ix_(own, own)], told[own])
        return off

    def elsewhere(self, slopes: Floats, shared: Floats, alone: Floats) -> tuple[Floats, Floats]:
        """What the factors leave of other figures, ln(predicted ÷ measured), and its standard deviation without noise.

        Parameters
        ----------
        slopes : array
            Of the other figures by the factors.
        shared : array
            Covariance of the error of each other figure with that of each fitted one.
        alone : array
            Variance of the error of each other figure before anything is measured.
        """
        whole = np.linalg.inv(self.precision) + self.slopes @ np.diag(self.prior_sd**2) @ self.slopes.T
        cross = slopes @ np.diag(self.prior_sd**2) @ self.slopes.T + shared
        before = np.einsum("ij,j,ij->i", slopes, self.prior_sd**2, slopes) + alone
        variance = before - np.einsum("ij,ji->i", cross, np.linalg.solve(whole, cross.T))
        return shared @ self.precision @ self.residuals, np.sqrt(np.maximum(variance, 0.0))


def fit(
    predict: Callable[[Floats], Floats],
    measured: Floats,
    noise_sd: Floats,
    prior_sd: Floats,
    *,
    shared: Floats | None = None,
    runs: Ints | None = None,
) -> Posterior:
    """The most probable factors, by Gauss-Newton steps.

    Parameters
    ----------
    predict : callable
        Logarithms of the factors → figures, above zero.
    measured : array
        The same figures as measured, above zero.
    noise_sd : array
        Standard deviation of ln(measured ÷ predicted) of each figure alone, with the right factors.
    prior_sd : array
        Standard deviation of each factor's logarithm before anything is measured.
    shared : array, optional
        Covariance of the error that figures share beside that; None: they share none.
    runs : integer array, optional
        The run of each figure; None: each is of its own.

    Returns
    -------
    Posterior
        Its covariance grows where the figures scatter more than `noise_sd` says.
    """
    target, common = np.log(measured), np.zeros((len(measured), len(measured))) if shared is None else shared
    runs = np.arange(len(measured)) if runs is None else runs
    logs = np.zeros(len(prior_sd))
    residuals = np.log(predict(logs)) - target
    for _ in range(MOST_STEPS):
        slopes = np.stack(
            [(np.log(predict(logs + STEP * unit)) - target - residuals) / STEP for unit in np.eye(len(logs))], axis=1
        )
        whole = slopes @ np.diag(prior_sd**2) @ slopes.T + common
        precision = _precision(residuals - slopes @ logs, whole, common, noise_sd**2, runs)
        normal = slopes.T @ precision @ slopes + np.diag(prior_sd**-2)
        move = np.linalg.solve(normal, -slopes.T @ precision @ residuals - logs * prior_sd**-2)

        def cost(trial: Floats, off: Floats, precision: Floats = precision) -> float:
            return float(off @ precision @ off + ((trial / prior_sd) ** 2).sum())

        logs, residuals, moved = _stepped(predict, target, cost, logs, residuals, move)
        if moved < SETTLED:
            break
    whole = slopes @ np.diag(prior_sd**2) @ slopes.T + common
    precision = _precision(residuals - slopes @ logs, whole, common, noise_sd**2, runs)
    scatter = max(1.0, float(residuals @ precision @ residuals) / len(residuals))
    known = slopes.T @ (precision / scatter) @ slopes + np.diag(prior_sd**-2)
    return Posterior(
        logs=logs,
        covariance=np.asarray(np.linalg.inv(known), dtype=np.float64),
        residuals=residuals,
        slopes=slopes,
        precision=precision,
        prior_sd=prior_sd,
    )


def _precision(off: Floats, whole: Floats, shared: Floats, noise: Floats, runs: Ints) -> Floats:
    """Inverse covariance of the figures' errors, mean over what may be wrong by how likely it makes the figures.

    Nothing, one figure or one run is wrong; where one is likelier than none, another beside it may be, and so on.

    Parameters
    ----------
    off : array
        ln(predicted ÷ measured) with all factors 1, each figure a straight line in the factors.
    whole : array
        Covariance of these but for their noise.
    shared : array
        The part of it that no factor reaches.
    noise : array
        Variance of each figure's noise.
    runs : integer array
        Of each figure.
    """
    each = [runs == run for run in np.unique(runs) if (runs == run).sum() > 1]
    suspects = [*(np.eye(len(off), dtype=bool)), *each]
    found: dict[bytes, tuple[float, Floats]] = {}

    def weighed(wrong: Bools, count: int) -> tuple[float, Bools]:
        variance = noise + WRONG_SD**2 * wrong
        seen = whole + np.diag(variance)
        chance = count * math.log(WRONG_SHARE) + (len(suspects) - count) * math.log1p(-WRONG_SHARE)
        weight = chance - 0.5 * float(np.linalg.slogdet(seen)[1] + off @ np.linalg.solve(seen, off))
        found[wrong.tobytes()] = weight, variance
        return weight, wrong

    likeliest = weighed(np.zeros(len(off), dtype=bool), 0)
    for count in range(1, len(off)):
        others = [likeliest[1] | suspect for suspect in suspects if not (suspect <= likeliest[1]).all()]
        best = max((weighed(wrong, count) for wrong in others), key=lambda item: item[0], default=likeliest)
        if best[0] <= likeliest[0]:
            break
        likeliest = best
    shares = {key: math.exp(weight - likeliest[0]) for key, (weight, _) in found.items()}
    told = {key: share / sum(shares.values()) for key, share in shares.items() if share > NEGLIGIBLE}
    return np.asarray(sum(share * np.linalg.inv(shared + np.diag(found[key][1])) for key, share in told.items()))


def _stepped(
    predict: Callable[[Floats], Floats],
    target: Floats,
    cost: Callable[[Floats, Floats], float],
    logs: Floats,
    residuals: Floats,
    move: Floats,
) -> tuple[Floats, Floats, float]:
    """A step that lowers the cost, halved until it does; the place, its residuals, and how far it is."""
    before = cost(logs, residuals)
    move = np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
    for _ in range(4):
        trial = logs + move
        after = np.log(predict(trial)) - target
        if cost(trial, after) < before:
            return trial, after, float(np.abs(move).max())
        move = move / 2
    return logs, residuals, 0.0
