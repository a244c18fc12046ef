"""Cost against latency: each point a real plan."""

from __future__ import annotations

import math
from textwrap import shorten
from typing import Any

from planner.answer import EVIDENCE, SURE, Candidate, cheapest_as_sure
from planner.charts.style import COLOUR, Chart, figure, label, layout, line_at, time_ticks
from planner.units import format_duration, format_percent, format_usd

SHAPES = dict(zip(EVIDENCE, ("circle", "diamond-open", "x-thin-open"), strict=True))
SIGNS = dict(zip(EVIDENCE, ("●", "◇", "×"), strict=True))
NAME_WIDTH, NAME_HEIGHT = 0.55, 0.07  # shares of the plot that a name takes on a phone
NAME_SIDE = 0.4  # of the width: points left of it have their name at the right
MOST_OF_NAME = 20  # characters
MOST_LABELS = 6  # more would lie on each other
LEAST_SAVED = 0.005  # of the bill: less is rounding


def named(row: Candidate) -> str:
    """A deployment in short: "4 × H200 SXM"."""
    return f"{row.num_gpus or 0:,} × {row.scenario.gpu}"


def cost_against_latency(rows: tuple[Candidate, ...], now: Candidate | None, target_s: float | None) -> Chart | None:
    """USD a month against TTFT at the plan's share of requests, one point for each deployment.

    Parameters
    ----------
    rows : tuple of Candidate
        Deployments that meet the targets, the cheapest first; those without figures are left out.
    now : Candidate, optional
        The present plan, drawn as a ring.
    target_s : float, optional
        TTFT target. [s]

    Returns
    -------
    Chart or None
        None without a point.
    """
    shown = [row for row in rows if row.usd_per_month is not None and row.ttft_s]
    points = [*shown, *([now] if now is not None and now.ttft_s and now.usd_per_month is not None else [])]
    if not shown or not points:
        return None
    times = [row.ttft_s or 0.0 for row in points]
    quantile = f"p{points[0].scenario.target_quantile * 100:g}"
    data = [_trace(kind, [row for row in shown if row.evidence == kind]) for kind in EVIDENCE]
    if now is not None and len(points) > len(shown):
        data.append(_ring(now))
    right = max(*times, target_s or 0.0) * 1.6
    first, last = _log(min(times) / 1.3), _log(right * 1.5)
    most_usd = max(row.usd_per_month or 0.0 for row in points) or 1.0
    places = [
        ((_log(row.ttft_s or 1.0) - first) / (last - first), (row.usd_per_month or 0.0) / most_usd) for row in points
    ]
    notes = [_name(points[k], places[k][0]) for k in _labelled(places, len(shown))]
    shapes: list[dict[str, Any]] = []
    if target_s is not None:
        shapes.append(line_at("x", target_s, COLOUR["target"]))
        text = f"target {format_duration(target_s)}"
        notes.append(
            label(text, _log(target_s), 1.0, COLOUR["target"], yref="paper", xanchor="right", yanchor="bottom")
        )
    key = ", ".join(f"{SIGNS[kind]} {kind}" for kind in EVIDENCE if any(row.evidence == kind for row in shown))
    return Chart(
        title=finding(rows, now),
        subtitle=f"USD a month against {quantile} TTFT (log), each point a plan of its own: {key}; ○ this plan",
        figure=figure(
            [trace for trace in data if trace["x"]],
            layout(
                x=f"{quantile} time to first token",
                height=340,
                showlegend=False,
                xaxis={**time_ticks(min(times), right), "range": [first, last]},
                yaxis={"rangemode": "tozero", "tickformat": ",.0f", "title": {"text": "USD a month"}},
                shapes=shapes,
                annotations=notes,
            ),
        ),
        alt="; ".join(_said(row) for row in points),
    )


def _name(row: Candidate, across: float) -> dict[str, Any]:
    """A row's short name, on the side of its point where a narrow chart has room."""
    left = across < NAME_SIDE
    return label(
        shorten(named(row), MOST_OF_NAME, placeholder="…"),
        _log(row.ttft_s or 1.0),
        row.usd_per_month or 0.0,
        xshift=8 if left else -8,
        yanchor="middle",
        xanchor="left" if left else "right",
    )


def _labelled(places: list[tuple[float, float]], num_rows: int) -> list[int]:
    """Which of the first rows get a name: the cheapest first, none whose name would lie on a point or another name."""
    found: list[int] = []
    taken: list[tuple[float, float, float]] = []  # left end, right end and height of each name
    for k, (across, up) in enumerate(places[:num_rows]):
        low, high = (across, across + NAME_WIDTH) if across < NAME_SIDE else (across - NAME_WIDTH, across)
        on_point = any(
            low < x < high and abs(y - up) < NAME_HEIGHT for place, (x, y) in enumerate(places) if place != k
        )
        on_name = any(low < end and begin < high and abs(y - up) < NAME_HEIGHT for begin, end, y in taken)
        if not on_point and not on_name and len(found) < MOST_LABELS:
            found.append(k)
            taken.append((low, high, up))
    return found


def _log(value: float) -> float:
    return math.log10(max(value, 1e-9))


def finding(rows: tuple[Candidate, ...], now: Candidate | None) -> str:
    """What the cheapest deployment saves that is as sure as this plan, and what a less sure one would."""
    if not rows:
        return "No deployment tried meets the targets"
    if now is None or not now.usd_per_month or now.status != rows[0].status:
        best = cheapest_as_sure(rows, SURE) or rows[0]
        sure = f" and {best.chance_in_words}" if best.chance_in_words else ""
        return f"{named(best)} is the cheapest tried{sure}: {format_usd(best.usd_per_month or 0.0)} a month"
    equal = cheapest_as_sure(rows, min(SURE, now.probability)) if now.chance_in_words else rows[0]
    if equal is not None and _saved(equal, now) > LEAST_SAVED:
        sure = f" and is {equal.chance_in_words}" if now.chance_in_words else ""
        return f"{_costs_less(equal, now)}{sure}: {format_usd(equal.usd_per_month or 0.0)} a month"
    if _saved(rows[0], now) > LEAST_SAVED:
        return f"{_costs_less(rows[0], now)}, but is only {rows[0].chance_in_words}"
    return f"None of the deployments tried is cheaper than this plan: {format_usd(now.usd_per_month)} a month"


def _saved(row: Candidate, now: Candidate) -> float:
    """The share of this plan's bill that a row saves."""
    return 1 - (row.usd_per_month or 0.0) / (now.usd_per_month or math.inf)


def _costs_less(row: Candidate, now: Candidate) -> str:
    return f"{named(row)} costs {format_percent(_saved(row, now))} less than this plan"


def _trace(kind: str, rows: list[Candidate]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [row.ttft_s for row in rows],
        "y": [row.usd_per_month for row in rows],
        "marker": {"symbol": SHAPES[kind], "size": 11, "color": COLOUR["own"], "line": {"width": 2}},
        "text": [_said(row) for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _ring(now: Candidate) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [now.ttft_s],
        "y": [now.usd_per_month],
        "marker": {"symbol": "circle-open", "size": 20, "color": COLOUR["here"], "line": {"width": 3}},
        "text": [f"this plan: {_said(now)}"],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _said(row: Candidate) -> str:
    return (
        f"{named(row)}: {format_usd(row.usd_per_month or 0.0)} a month, TTFT "
        f"{format_duration(row.ttft_s or 0.0)}, TPOT {format_duration(row.tpot_s or 0.0)}, {row.evidence}"
    )
