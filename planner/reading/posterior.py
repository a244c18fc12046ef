"""Fit a few positive factors to measured figures under a Gaussian prior on their logarithms."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """What figures say about factors.

    `logs` are the fitted logarithms and `covariance` theirs; `residuals` ln(predicted ÷ measured) with them, `slopes`
    how the logarithm of each prediction follows that of each factor, `weights` how much each figure counts (1 ÷
    variance). `prior_sd` is the standard deviation of each logarithm without figures.
    """

    logs: Floats
    covariance: Floats
    residuals: Floats
    slopes: Floats
    weights: Floats
    prior_sd: Floats

    @property
    def spread(self) -> Floats:
        """Standard deviation of each logarithm; wider with few figures, as Student's distribution is."""
        freedom = len(self.residuals) + len(self.logs)  # each prior counts as a figure
        found: Floats = np.sqrt(np.diag(self.covariance) * freedom / max(freedom - 2, 1))
        return found

    def logs_without(self, left_out: np.ndarray) -> Floats:
        """The fitted logarithms without some figures, from the slopes at the optimum.

        Parameters
        ----------
        left_out : boolean array
            Which figures.
        """
        kept = np.where(left_out, 0.0, self.weights)
        # The figures as a straight line through the optimum: residual + slopes · move.
        target = self.slopes @ self.logs - self.residuals
        normal = _information(self.slopes, kept, self.prior_sd)
        return np.asarray(np.linalg.solve(normal, self.slopes.T @ (kept * target)), dtype=np.float64)


def fit(predict: Callable[[Floats], Floats], measured: Floats, noise_sd: Floats, prior_sd: Floats) -> Posterior:
    """The most probable factors, by Gauss-Newton steps.

    Parameters
    ----------
    predict : callable
        Logarithms of the factors → figures, above zero.
    measured : array
        The same figures as measured, above zero.
    noise_sd : array
        Standard deviation of ln(measured ÷ predicted) of each figure with the right factors.
    prior_sd : array
        Standard deviation of each factor's logarithm around 0 before anything is measured.

    Returns
    -------
    Posterior
        Its covariance grows where the figures scatter more than `noise_sd` says.
    """
    target, logs = np.log(measured), np.zeros(len(prior_sd))
    residuals = np.log(predict(logs)) - target
    for _ in range(MOST_STEPS):
        slopes = np.stack(
            [(np.log(predict(logs + STEP * unit)) - target - residuals) / STEP for unit in np.eye(len(logs))], axis=1
        )
        weights = _weights(residuals, noise_sd)
        normal = _information(slopes, weights, prior_sd)
        move = np.linalg.solve(normal, -slopes.T @ (weights * residuals) - logs * prior_sd**-2)
        logs, residuals, moved = _stepped(predict, target, noise_sd, prior_sd, logs, residuals, move)
        if moved < SETTLED:
            break
    weights = _weights(residuals, noise_sd)
    scatter = max(1.0, float(np.mean(weights * residuals**2)))
    known = _information(slopes, weights / scatter, prior_sd)
    return Posterior(
        logs=logs,
        covariance=np.asarray(np.linalg.inv(known), dtype=np.float64),
        residuals=residuals,
        slopes=slopes,
        weights=weights,
        prior_sd=prior_sd,
    )


def _information(slopes: Floats, weights: Floats, prior_sd: Floats) -> Floats:
    """Inverse covariance of the logarithms: what the figures and the prior say together."""
    found: Floats = slopes.T @ (weights[:, None] * slopes) + np.diag(prior_sd**-2)
    return found


def _weights(residuals: Floats, noise_sd: Floats) -> Floats:
    """1 ÷ variance of each figure, less where it lies far from all others."""
    far = np.abs(residuals) / noise_sd
    found: Floats = noise_sd**-2 * np.minimum(1.0, FAR / np.maximum(far, 1e-12))
    return found


def _stepped(
    predict: Callable[[Floats], Floats],
    target: Floats,
    noise_sd: Floats,
    prior_sd: Floats,
    logs: Floats,
    residuals: Floats,
    move: Floats,
) -> tuple[Floats, Floats, float]:
    """A step that lowers the cost, halved until it does; the place, its residuals, and how far it is."""
    before = _cost(residuals, noise_sd) + 0.5 * float(((logs / prior_sd) ** 2).sum())
    move = np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
    for _ in range(4):
        trial = logs + move
        after = np.log(predict(trial)) - target
        if _cost(after, noise_sd) + 0.5 * float(((trial / prior_sd) ** 2).sum()) < before:
            return trial, after, float(np.abs(move).max())
        move = move / 2
    return logs, residuals, 0.0


def _cost(residuals: Floats, noise_sd: Floats) -> float:
    size = np.abs(residuals) / noise_sd
    return float(np.where(size <= FAR, 0.5 * size**2, FAR * (size - 0.5 * FAR)).sum())
