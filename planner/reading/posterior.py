"""Fit a few positive factors to measured figures under a Gaussian prior on their logarithms.

What the factors leave of a figure may be alike in figures that were measured under like conditions: then the figures
share an error beside the noise of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats

STEP = math.log(1.1)  # of a logarithm, for the slope of a simulation, which is no smooth function
MOST_STEPS = 4
SETTLED = 0.01  # of a logarithm
FAR = 2.0  # standard deviations from which a figure counts less and less (Huber)
LARGEST_MOVE = math.log(2.0)  # of a factor in one step
REWEIGHTED = 3  # times that the weight of far figures is found anew for each step


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

    def left_out(self, groups: np.ndarray) -> tuple[Floats, Floats]:
        """ln(predicted ÷ measured) of each figure as figures of other groups predict it, and its standard deviation.

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
        off, spread = np.zeros(len(told)), np.zeros(len(told))
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            block = np.linalg.inv(inverse[np.ix_(own, own)])
            off[own], spread[own] = block @ told[own], np.sqrt(np.diag(block))
        return off, spread

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

    Returns
    -------
    Posterior
        Its covariance grows where the figures scatter more than `noise_sd` says.
    """
    target, common = np.log(measured), np.zeros((len(measured), len(measured))) if shared is None else shared
    logs = np.zeros(len(prior_sd))
    residuals = np.log(predict(logs)) - target
    for _ in range(MOST_STEPS):
        slopes = np.stack(
            [(np.log(predict(logs + STEP * unit)) - target - residuals) / STEP for unit in np.eye(len(logs))], axis=1
        )
        precision = _precision(residuals, noise_sd, common)
        normal = slopes.T @ precision @ slopes + np.diag(prior_sd**-2)
        move = np.linalg.solve(normal, -slopes.T @ precision @ residuals - logs * prior_sd**-2)

        def cost(trial: Floats, off: Floats, precision: Floats = precision) -> float:
            return float(off @ precision @ off + ((trial / prior_sd) ** 2).sum())

        logs, residuals, moved = _stepped(predict, target, cost, logs, residuals, move)
        if moved < SETTLED:
            break
    precision = _precision(residuals, noise_sd, common)
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


def _precision(residuals: Floats, noise_sd: Floats, shared: Floats) -> Floats:
    """Inverse covariance of the figures' errors, with more noise where a figure lies far from all others."""
    noise = noise_sd**2
    for _ in range(REWEIGHTED):
        own = noise * np.linalg.solve(shared + np.diag(noise), residuals)
        noise = noise_sd**2 / np.minimum(1.0, FAR / np.maximum(np.abs(own) / noise_sd, 1e-12))
    return np.asarray(np.linalg.inv(shared + np.diag(noise)), dtype=np.float64)


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
