"""Requests whose rate changes from hour to hour, and the hours of a recorded trace."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.scenario import Scenario
from planner.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from planner.workload.drawing import draw_requests
from planner.workload.requests import Requests

HOURS = 24


def draw_spells(scenario: Scenario, rates_rps: Floats, spell_s: Floats) -> Requests:
    """The scenario's requests at a rate that changes from spell to spell.

    Parameters
    ----------
    scenario : Scenario
        Lengths, burstiness and seed; its own rate does not matter.
    rates_rps : array
        Mean rate of each spell, 0 allowed. [req/s]
    spell_s : array
        How long each spell lasts. [s]

    Returns
    -------
    Requests
        All that arrive from time 0 to the end of the last spell: an open loop by inversion of the cumulative rate.

    Raises
    ------
    InvalidInput
        When no request is expected.
    """
    expected = np.concatenate([[0.0], np.cumsum(rates_rps * spell_s)])
    times = np.concatenate([[0.0], np.cumsum(spell_s)])
    total = float(expected[-1])
    traffic = scenario.traffic
    if total < 1:
        raise InvalidInput("day_hours", total, "a day with at least one request")
    arrivals = dataclasses.replace(traffic.arrivals, rate_rps=1.0)
    count = math.ceil(total + 6 * max(1.0, arrivals.cv) * math.sqrt(total) + 20)
    drawn = draw_requests(
        dataclasses.replace(traffic, arrivals=arrivals), count, scenario.seed, max_model_len=scenario.max_model_len
    )
    keep = int(np.searchsorted(drawn.arrival_s, total))
    arrays: dict[str, Any] = {
        item.name: getattr(drawn, item.name)[:keep]
        for item in dataclasses.fields(drawn)
        if isinstance(getattr(drawn, item.name), np.ndarray)
    }
    arrays["arrival_s"] = np.interp(arrays["arrival_s"], expected, times)
    return dataclasses.replace(drawn, **arrays, rate_rps=total / float(times[-1]))


def hours_of_trace(requests: Requests) -> str:
    """The hours of a day as a recorded trace has them, for a drawn day: percentages of the busiest hour.

    Parameters
    ----------
    requests : Requests
        A trace that covers at least one day; its first request counts as midnight.

    Returns
    -------
    str
        24 whole numbers with dots between them. Hours that the trace has more than once are averaged.

    Raises
    ------
    InvalidInput
        When the trace is shorter than a day.
    """
    since = requests.arrival_s - requests.arrival_s[0]
    whole = math.floor((float(since[-1]) + SECONDS_PER_HOUR) / SECONDS_PER_DAY)
    if whole < 1:
        hours = float(since[-1]) / SECONDS_PER_HOUR
        raise InvalidInput("day_hours", f"a trace of {hours:.1f} h", "a trace that covers 24 hours")
    kept = since[since < whole * SECONDS_PER_DAY]
    counts = np.bincount((kept % SECONDS_PER_DAY // SECONDS_PER_HOUR).astype(np.int64), minlength=HOURS)
    return ".".join(str(round(100 * count / counts.max())) for count in counts.tolist())
