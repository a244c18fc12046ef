"""Charts over time: replicas and misses through a day, GPUs through the months."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.answer import growth_sentence
from planner.arrays import Floats
from planner.charts.style import (
    COLOUR,
    Chart,
    figure,
    label,
    layout,
    legend_below,
    line_at,
    percent_ticks,
    percents,
    whole_ticks,
)
from planner.cost import Growth
from planner.service import AUTOSCALED, FIXED, SCHEDULED, Day
from planner.units import counted, format_number, format_percent

POLICY = {FIXED: (COLOUR["peer"], "solid"), SCHEDULED: (COLOUR["own"], "solid"), AUTOSCALED: (COLOUR["here"], "dot")}
CLOCK = ["00:00", "04:00", "08:00", "12:00", "16:00", "20:00", "24:00"]


def _through_the_day(values: Floats) -> tuple[list[float], list[float]]:
    """Hourly values as a staircase from 0 to 24 h."""
    return [float(hour) for hour in range(len(values) + 1)], [*values.tolist(), float(values[-1])]


def _hours(**more: Any) -> dict[str, Any]:
    return {"tickvals": list(range(0, 25, 4)), "ticktext": CLOCK, "range": [0, 24], **more}


def _policy_line(name: str, hourly: Floats, hover: str) -> dict[str, Any]:
    """What one policy makes of each hour."""
    colour, dash = POLICY[name]
    x, y = _through_the_day(hourly)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": 2.5, "dash": dash, "shape": "hv"},
        "hovertemplate": f"{hover}<extra>{name}</extra>",
    }


def day_replicas(day: Day) -> Chart:
    """Replicas of each policy through the day, over the load."""
    x, load = _through_the_day(day.rates_rps)
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "load",
            "x": x,
            "y": load,
            "yaxis": "y2",
            "line": {"width": 0, "shape": "hv"},
            "fill": "tozeroy",
            "fillcolor": "rgba(128,136,150,0.18)",
            "hovertemplate": "%{y:.3g} req/s<extra>load</extra>",
        }
    ]
    traces += [_policy_line(item.name, item.replicas, "%{y:.2f} replicas") for item in day.policies]
    fixed, *others = (item.replica_hours for item in day.policies)
    least = min(others)
    title = "Following the load needs as many replica-hours as the fixed fleet"
    if least < 0.995 * fixed:
        title = f"Following the load takes {format_percent(1 - least / fixed)} fewer replica-hours than the fixed fleet"
    return Chart(
        title=title,
        subtitle="Replicas paid for, and the load (grey, right axis), by hour of the day",
        figure=figure(
            traces,
            layout(
                y="replicas",
                height=340,
                hovermode="x unified",
                xaxis=_hours(),
                yaxis={"rangemode": "tozero", **whole_ticks(max(float(item.replicas.max()) for item in day.policies))},
                yaxis2={
                    "overlaying": "y",
                    "side": "right",
                    "rangemode": "tozero",
                    "showgrid": False,
                    "title": {"text": "req/s"},
                    "tickmode": "auto",
                    "nticks": 5,
                    "automargin": True,
                },
                legend=legend_below(90),
            ),
        ),
        alt=f"{title}. " + "; ".join(f"{item.name}: {format_number(item.replica_hours)}" for item in day.policies),
    )


def day_misses(day: Day, quantile: float) -> Chart:
    """Share of requests that meet the targets, hour by hour, with each policy."""
    traces = [
        _policy_line(item.name, item.met, "%{customdata} meet the targets")
        | {"customdata": percents(_through_the_day(item.met)[1])}
        for item in day.policies
    ]
    short = {item.name: int((item.met < quantile).sum()) for item in day.policies}
    missing = [f"{name} in {counted(hours, 'hour')}" for name, hours in short.items() if hours]
    title = "Every policy keeps the targets in every hour"
    if missing:
        title = f"Too few requests meet the targets: {', '.join(missing)}"
    lowest = min(float(np.nanmin(item.met)) for item in day.policies)
    foot = max(0.0, min(lowest, quantile) - 0.05)
    return Chart(
        title=title,
        subtitle=f"Share of requests that meet the targets, by hour of the day; asked for: {format_percent(quantile)}",
        figure=figure(
            traces,
            layout(
                height=340,
                hovermode="x unified",
                xaxis=_hours(),
                yaxis={**percent_ticks(foot), "range": [foot, 1.01]},
                shapes=[line_at("y", quantile, COLOUR["target"])],
                legend=legend_below(90),
            ),
        ),
        alt=f"{title}. Lowest share in an hour: {format_percent(lowest)}",
    )


def months(found: Growth, gpus_per_replica: int, growth_per_month: float) -> Chart:
    """GPUs through the months when each order comes in time, and when to order."""
    x = [item.month for item in found.months]
    have = [item.replicas * gpus_per_replica for item in found.months]
    today = have[0]
    orders = [order for order in found.orders if order.order_month >= 0]
    shapes = [line_at("y", today, COLOUR["neutral"], "dot")]
    notes = [label(f"today: {counted(today, 'GPU')}", 24, today, COLOUR["neutral"], xanchor="right")]
    if found.runs_out_month is not None:
        shapes.append(line_at("x", found.runs_out_month, COLOUR["target"]))
        notes.append(label("runs out", found.runs_out_month, 0.0, COLOUR["target"], yref="paper"))
    return Chart(
        title=growth_sentence(found, growth_per_month),
        subtitle="GPUs by month, and the latest months in which to order them",
        figure=figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "GPUs",
                    "x": x,
                    "y": have,
                    "line": {"color": COLOUR["own"], "width": 2.5, "shape": "hv"},
                    "hovertemplate": "month %{x}: %{y} GPUs<extra></extra>",
                },
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": "order by",
                    "x": [order.order_month for order in orders],
                    "y": [have[order.needed_month] for order in orders],
                    "customdata": [order.num_gpus for order in orders],
                    "marker": {"color": COLOUR["here"], "size": 9, "symbol": "triangle-right"},
                    "hovertemplate": "order %{customdata} GPUs by month %{x:.1f}<extra></extra>",
                },
            ],
            layout(
                x="months from now",
                y="GPUs",
                height=320,
                xaxis={"range": [0, 24.3], "dtick": 3},
                yaxis={"rangemode": "tozero", "tickformat": ",d", **({"dtick": 1} if max(have) < 5 else {})},
                shapes=shapes,
                annotations=notes,
                legend=legend_below(90),
            ),
        ),
        alt=growth_sentence(found, growth_per_month),
    )
