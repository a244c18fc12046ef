"""What a recording looks like, and the scenario that stands for it in a link."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner.scenario import LENGTH_LEVELS, Scenario, quantiles_text
from planner.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from planner.workload.requests import Requests

BINS = 120  # of the curve of the rate over time
LEAST_FOR_BURSTS = 100  # requests below which the spread of the gaps says nothing
POISSON_CV = 1.1  # spread of the gaps that chance alone may give
MOST_BURSTY = 20.0
HOURS_PER_DAY, DAYS_PER_WEEK = 24, 7
LEAST_FOR_A_DAY_S = 20 * SECONDS_PER_HOUR
LEAST_FOR_A_WEEK_S = 6 * SECONDS_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraceSummary:
    """A recording in figures.

    `rate_rps` per bin of `bin_s` seconds; `gap_cv` is the standard deviation ÷ mean of the gaps between requests
    (1: Poisson), `gap_quantiles` the gaps ÷ their mean at LENGTH_LEVELS, none where there are too few.
    `prompt_quantiles` and `output_quantiles` hold tokens at LENGTH_LEVELS. `reused_fraction` is the share of prompt
    tokens that an earlier request had already. `by_hour_rps` has 24 figures where the recording covers most of a day,
    `by_day_rps` seven where it covers most of a week, else none; both count from its first request.
    """

    num_requests: int
    span_s: float
    mean_rps: float
    peak_rps: float
    bin_s: float
    rate_rps: Floats
    gap_cv: float
    gap_quantiles: Floats
    prompt_quantiles: Floats
    output_quantiles: Floats
    mean_prompt_tokens: float
    mean_output_tokens: float
    reused_fraction: float
    by_hour_rps: Floats
    by_day_rps: Floats


def summary_of(requests: Requests) -> TraceSummary:
    """Rate over time, burstiness, lengths, reuse of prefixes, and the shape of the day.

    Parameters
    ----------
    requests : Requests
        As `read_trace` gives them.

    Returns
    -------
    TraceSummary
        A recording of one instant has no rate: 0, and one bin.
    """
    arrival = requests.arrival_s
    span = float(arrival[-1] - arrival[0])
    count = len(requests)
    bins = min(BINS, max(1, count // 10)) if span > 0 else 1
    counts, edges = np.histogram(arrival, bins=bins, range=(float(arrival[0]), float(arrival[0]) + max(span, 1e-9)))
    bin_s = float(edges[1] - edges[0])
    rate = counts / bin_s if span > 0 else np.zeros(1)
    gaps = np.diff(arrival)
    enough = count > LEAST_FOR_BURSTS and gaps.mean() > 0
    reused = _reused(requests.prefix_group, requests.prefix_tokens)
    return TraceSummary(
        num_requests=count,
        span_s=span,
        mean_rps=count / span if span > 0 else 0.0,
        peak_rps=float(rate.max()),
        bin_s=bin_s,
        rate_rps=rate,
        gap_cv=float(gaps.std() / gaps.mean()) if enough else 1.0,
        gap_quantiles=np.quantile(gaps, LENGTH_LEVELS) / gaps.mean() if enough else np.zeros(0),
        prompt_quantiles=np.quantile(requests.prompt_tokens, LENGTH_LEVELS),
        output_quantiles=np.quantile(requests.output_tokens, LENGTH_LEVELS),
        mean_prompt_tokens=float(requests.prompt_tokens.mean()),
        mean_output_tokens=float(requests.output_tokens.mean()),
        reused_fraction=reused / float(requests.prompt_tokens.sum()),
        by_hour_rps=_in_turn(arrival, span, SECONDS_PER_HOUR, HOURS_PER_DAY, LEAST_FOR_A_DAY_S),
        by_day_rps=_in_turn(arrival, span, SECONDS_PER_DAY, DAYS_PER_WEEK, LEAST_FOR_A_WEEK_S),
    )


def _reused(group: Ints, prefix: Ints) -> float:
    """Prompt tokens that an earlier request of the same group had already."""
    return float(prefix[group >= 0].sum())


def _in_turn(arrival: Floats, span: float, part_s: float, parts: int, least_s: float) -> Floats:
    """Requests per second in each part of a period, such as the hours of a day; none of a recording too short."""
    if span < least_s:
        return np.zeros(0)
    part = ((arrival - arrival[0]) // part_s).astype(np.int64) % parts
    # a part lasts as long as the recording has such parts; one that it barely reaches says nothing of a rate
    begun = np.arange(math.ceil(span / part_s)) * part_s
    lasted_s = np.bincount((begun / part_s).astype(int) % parts, np.minimum(part_s, span - begun), minlength=parts)
    return np.bincount(part, minlength=parts) / np.maximum(lasted_s, part_s / 2)


def fitted(scenario: Scenario, recording: Requests | TraceSummary) -> Scenario:
    """The scenario whose drawn traffic stands for a recording: its rate, bursts, lengths and reuse.

    Parameters
    ----------
    scenario : Scenario
        Everything but the traffic stays.
    recording : Requests or TraceSummary
        The recording, or its summary where that is known already.

    Returns
    -------
    Scenario
        Lengths as sixteen quantiles a side; arrivals Poisson or bursty by the spread of the gaps; prefixes that are
        reused as one shared prefix of their mean length. A recording of one instant becomes a burst.
    """
    told = recording if isinstance(recording, TraceSummary) else summary_of(recording)
    shared = round(told.reused_fraction * told.mean_prompt_tokens)
    lengths = {
        "lengths": "quantiles",
        "prompt_quantiles": quantiles_text(told.prompt_quantiles),
        "output_quantiles": quantiles_text(told.output_quantiles),
        "shared_prefix_tokens": min(shared, scenario.max_model_len - 1),
        "num_prefix_groups": 1,
        "output_limit_tokens": None,
        "max_prompt_tokens": None,
    }
    if told.mean_rps <= 0:
        return scenario.replace(**lengths, arrivals="once", num_requests=told.num_requests)
    steady = told.gap_cv <= POISSON_CV  # steadier than chance: Poisson errs on the safe side
    return scenario.replace(
        **lengths,
        demand="rate",
        rate_rps=min(1e6, max(1e-6, told.mean_rps)),
        peak_factor=1.0,
        arrivals="poisson" if steady else "bursty",
        burst_cv=scenario.burst_cv if steady else min(MOST_BURSTY, told.gap_cv),
    )
