"""Recorded traffic: how long its requests are, how they bunch, and the shape of its day and week."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.charts.style import (
    COLOUR,
    Chart,
    figure,
    label,
    layout,
    legend_below,
    line_at,
    log_ticks,
    percent_ticks,
    percents,
)
from planner.scenario import LENGTH_LEVELS
from planner.units import format_number
from planner.workload import TraceSummary

LEAST_GAP = 1e-3  # of the mean gap: the left edge of a logarithmic axis, where requests that arrive together stand
SAME = 0.005  # spread of gaps that differ by rounding alone
EVEN = 0.1  # gaps whose spread differs by less from chance's are as irregular as chance
MEDIAN = 0.5


def recorded_lengths(told: TraceSummary) -> Chart:
    """Share of requests with at most so many tokens, of prompts and of answers."""
    sides = {"prompt": (told.prompt_quantiles, COLOUR["own"]), "answer": (told.output_quantiles, COLOUR["here"])}
    lines = [_share(name, np.maximum(1.0, values), colour, "tokens") for name, (values, colour) in sides.items()]
    prompt, output = (float(np.interp(MEDIAN, LENGTH_LEVELS, values)) for values, _ in sides.values())
    low = max(1.0, min(float(values[0]) for values, _ in sides.values()))
    high = max(2 * low, *(float(values[-1]) for values, _ in sides.values()))
    title = f"Half of the prompts have at most {prompt:,.0f} tokens, half of the answers {output:,.0f}"
    shape = layout(
        height=260,
        xaxis=log_ticks(low, high, lambda value: f"{value:,.0f}"),
        yaxis={**percent_ticks(), "range": [0, 1.02]},
        legend=legend_below(),
    )
    return Chart(
        title=title,
        subtitle="Share of requests with at most so many tokens (log)",
        figure=figure(lines, shape),
        alt=title,
    )


def recorded_gaps(told: TraceSummary) -> Chart | None:
    """Share of gaps between requests up to a length, against those of independent users; None with too few gaps."""
    if not len(told.gap_quantiles):
        return None
    levels = np.asarray(LENGTH_LEVELS)
    chance = -np.log1p(-np.minimum(levels, 0.9999))
    lines = [
        _share("recorded", np.maximum(LEAST_GAP, told.gap_quantiles), COLOUR["own"], "× the mean gap"),
        _share("independent users", np.maximum(LEAST_GAP, chance), COLOUR["neutral"], "× the mean gap", dash="dash"),
    ]
    high = max(float(told.gap_quantiles[-1]), float(chance[-1]))
    shape = layout(
        height=260,
        xaxis=log_ticks(LEAST_GAP, high, lambda value: f"{value:g}"),
        yaxis={**percent_ticks(), "range": [0, 1.02]},
        legend=legend_below(130),
    )
    title = burstiness(told.gap_cv)
    return Chart(
        title=title,
        subtitle="Share of the gaps between requests that are at most so many times the mean gap (log)",
        figure=figure(lines, shape),
        alt=title,
    )


def burstiness(gap_cv: float) -> str:
    """How the requests bunch, in a sentence; `gap_cv` is the spread of their gaps, 1 for independent users."""
    if gap_cv > 1 + EVEN:
        return f"Bursty: the gaps vary {format_number(gap_cv, 2)} times as much as those of independent users"
    if gap_cv < SAME:
        return "Steady: the gaps between requests are all the same"
    if gap_cv < 1 - EVEN:
        return f"Steady: the gaps vary {format_number(gap_cv, 2)} times as much as those of independent users"
    return "Requests arrive as irregularly as those of independent users"


def recorded_day(told: TraceSummary) -> Chart | None:
    """Requests per second in each hour of the day, counted from the first request; None below most of a day."""
    hours = [f"{hour} h" for hour in range(24)]
    return _in_turn(told.by_hour_rps, told.mean_rps, hours, "hour", "a day")


def recorded_week(told: TraceSummary) -> Chart | None:
    """Requests per second in each day of the week, counted from the first request; None below most of a week."""
    days = [f"day {day}" for day in range(1, 8)]
    return _in_turn(told.by_day_rps, told.mean_rps, days, "day", "a week")


def _in_turn(rates_rps: Floats, mean_rps: float, names: list[str], part: str, period: str) -> Chart | None:
    if not len(rates_rps):
        return None
    busiest = int(np.argmax(rates_rps))
    times = float(rates_rps[busiest]) / mean_rps
    title = f"The busiest {part} of {period} has {format_number(times, 2)} times the mean rate"
    bar = {
        "type": "bar",
        "x": names,
        "y": rates_rps,
        "marker": {"color": COLOUR["own"]},
        "hovertemplate": "%{x}: %{y:.3g} req/s<extra></extra>",
    }
    shape = layout(
        height=240,
        xaxis={"type": "category", "nticks": 8},
        yaxis={"rangemode": "tozero"},
        shapes=[line_at("y", mean_rps, COLOUR["neutral"])],
        annotations=[label("mean", 1.0, mean_rps, xref="paper", xanchor="right", yanchor="bottom")],
        showlegend=False,
    )
    return Chart(
        title=title,
        subtitle=f"Requests per second in each {part} of {period} that begins with the first request",
        figure=figure([bar], shape),
        alt=f"{title}: {names[busiest]}.",
    )


def _share(name: str, values: Floats, colour: str, unit: str, dash: str = "solid") -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": values,
        "y": list(LENGTH_LEVELS),
        "line": {"color": colour, "width": 2, "dash": dash},
        "customdata": percents(LENGTH_LEVELS),
        "hovertemplate": f"%{{customdata}} have at most %{{x:,.3g}} {unit}<extra>{name}</extra>",
    }
