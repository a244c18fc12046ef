"""Which requests of a run show the steady state, and how far an average over them may be off.

A run begins empty and ends empty: the first requests and the last ones meet less load than the service has. What lies
between is correlated, since a queue that is long stays so for a while, and an interval that takes requests for
independent is far too narrow near saturation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.simulation import FINISHED, SimulationResult

MSER_BATCH = 5
MOST_DROPPED = 0.5  # share of the requests that warm-up, and again the end, may take
MANY_BATCHES = 256
LEAST_OBSERVATIONS = 100


class Window(NamedTuple):
    """Requests that count, by arrival: from `first` up to `last`, which is left out."""

    first: int
    last: int


def steady_window(result: SimulationResult) -> Window:
    """Requests that meet the steady state.

    Parameters
    ----------
    result : SimulationResult
        A run; its requests are in the order of arrival.

    Returns
    -------
    Window
        After warm-up: of a closed loop from when every user has had its first answer; else from where MSER-5 (White
        1997; the truncation that minimises the standard error of what is left) cuts the end-to-end times. Before the
        end: requests that arrived so late that they mostly saw the service drain are left out. All, when all arrive
        at once.
    """
    n = len(result.arrival_s)
    if n == 0 or result.arrival_s[-1] <= result.arrival_s[0]:
        return Window(0, n)
    users = result.closed_loop_users
    first = _after_first_round(result, users) if users else _mser(result)
    first = min(max(first, n // 10), int(n * MOST_DROPPED))
    return Window(first, max(_before_the_drain(result, first), first + 1))


def _after_first_round(result: SimulationResult, users: int) -> int:
    """First request that arrived when every user of a closed loop had its first answer."""
    ended = result.finish_s[:users]
    done = ended[np.isfinite(ended)]
    return int(np.searchsorted(result.arrival_s, done.max())) if len(done) else users


def _mser(result: SimulationResult) -> int:
    ended = result.status == FINISHED
    places = np.flatnonzero(ended)
    count = len(places) // MSER_BATCH
    if count < 20:
        return 0
    e2e = (result.finish_s - result.arrival_s)[places[: count * MSER_BATCH]]
    means = e2e.reshape(count, MSER_BATCH).mean(axis=1)[::-1]  # from the end, so that sums are of what is left
    left = np.arange(1, count + 1)
    spread = np.cumsum(means**2) - np.cumsum(means) ** 2 / left
    error = (spread / left**2)[::-1]
    return int(places[int(np.argmin(error[: int(count * MOST_DROPPED)])) * MSER_BATCH])


def _before_the_drain(result: SimulationResult, first: int) -> int:
    n = len(result.arrival_s)
    if result.closed_loop_users:  # each user's last request sees others leave
        return max(n - result.closed_loop_users, first + int((n - first) * (1 - MOST_DROPPED)))
    times = (result.finish_s - result.arrival_s)[first:]
    seen = times[np.isfinite(times)]
    if not len(seen):
        return n
    last = int(np.searchsorted(result.arrival_s, result.arrival_s[-1] - float(np.quantile(seen, 0.9)), side="right"))
    return max(last, first + int((n - first) * (1 - MOST_DROPPED)))


class Error(NamedTuple):
    """Uncertainty of a mean: half-width of its 95 % interval, and how many observations tell as much as one."""

    half_width: float
    correlation: float


def student_975(freedom: float) -> float:
    """97.5 % point of Student's t, by its Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5)."""
    z, v = 1.959964, max(freedom, 2.0)
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)


def mean_error(values: Floats) -> Error:
    """How far the mean of correlated observations may be off.

    Parameters
    ----------
    values : array
        Observations in their order.

    Returns
    -------
    Error
        The long-run variance is that of batch means with their autocovariances, summed while pairs of them stay
        positive (Geyer 1992, initial positive sequence). NaN below 100 observations.
    """
    n = len(values)
    if n < LEAST_OBSERVATIONS:
        return Error(math.nan, math.nan)
    size = max(1, n // MANY_BATCHES)
    count = n // size
    means = values[: count * size].reshape(count, size).mean(axis=1)
    centred = means - means.mean()
    room = 1 << (2 * count - 1).bit_length()  # zeros behind, so that no end meets a beginning; fast for a power of two
    spectrum = np.abs(np.fft.rfft(centred, room)) ** 2
    autocovariance = np.fft.irfft(spectrum)[:count] / count
    if autocovariance[0] <= 0:
        return Error(0.0, 1.0)
    pairs = autocovariance[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    kept = int(ends[0]) if len(ends) else len(pairs)
    pairs = np.minimum.accumulate(pairs[: max(kept, 1)])
    long_run = max(2 * float(pairs.sum()) - float(autocovariance[0]), float(autocovariance[0]))
    batches = count * float(autocovariance[0]) / long_run  # independent ones that would tell as much
    half_width = student_975(batches - 1) * math.sqrt(long_run / count)
    variance = float(values.var())
    correlation = long_run * size / variance if variance > 0 else 1.0
    return Error(half_width, max(1.0, correlation))


def values_at(ordered: Floats, quantiles: Floats | float) -> Floats:
    """Quantiles of sorted observations by linear interpolation, as np.quantile has them, at a fraction of its time."""
    place = np.asarray(quantiles) * (len(ordered) - 1)
    below = np.minimum(place.astype(np.int64), max(0, len(ordered) - 2))
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    found: Floats = np.where(place == below, low, (high - low) * (place - below) + low)
    return np.where(place == len(ordered) - 1, ordered[-1], found)


def quantile_error(values: Floats, quantile: float, ordered: Floats | None = None) -> Error:
    """How far a quantile of correlated observations may be off.

    Parameters
    ----------
    values : array
        Observations in their order.
    quantile : float
        0 to 1.
    ordered : array, optional
        The observations sorted, where the caller has them.

    Returns
    -------
    Error
        The error of the share below the quantile, read off the sorted observations on either side.
    """
    n = len(values)
    if n < LEAST_OBSERVATIONS:
        return Error(math.nan, math.nan)
    ordered = np.sort(values) if ordered is None else ordered
    share = mean_error((values <= values_at(ordered, quantile)).astype(np.float64))
    reach = max(share.half_width, 1 / n)
    low, high = values_at(ordered, np.clip([quantile - reach, quantile + reach], 0, 1))
    return Error(float(high - low) / 2 * share.half_width / reach, share.correlation)
