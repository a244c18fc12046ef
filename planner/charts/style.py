"""Colours by meaning, and the layout that all charts share.

Figures are plain dicts in Plotly's schema: building a `go.Figure` costs more than drawing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from planner.units import format_duration, format_percent

Figure = dict[str, Any]

# At least 3:1 on white, on the light sidebar and on near-black (WCAG 2.1, 1.4.11); paler fills are OUTLINED. No colour
# reaches the 4.5:1 of text on both grounds, so words have the page's own colour, and a swatch of theirs before them.
COLOUR = {
    "weights": "#5b6fd8",
    "kv_used": "#2e9e6b",
    "kv_reserved": "#a3d9ba",
    "kv_unused": "#cfe8da",
    "states": "#1f7a8c",
    "activations": "#b98500",
    "cuda_graphs": "#8a5a3c",
    "runtime": "#8a76b5",
    "occupied": "#5d6470",
    "free": "#87908c",
    "p50": "#1d8fc2",
    "p95": "#c2488f",
    "p99": "#8e4ec6",
    "target": "#e5484d",
    "here": "#e05a0c",
    "own": "#1d8fc2",
    "peer": "#868f9c",
    "neutral": "#7d8796",
}
OUTLINED = ("kv_reserved", "kv_unused")
DASH = {"p50": "dot", "p95": "solid", "p99": "dash"}
POLICY_DASH = {"one-at-a-time": "dot", "static": "dash", "reserve-max": "dashdot", "paged": "solid"}
INK = "#14241c"  # of figures on pale fills and on green
HATCH = {"shape": "/", "bgcolor": "#a3d9ba", "fgcolor": "#2e9e6b", "size": 7, "solidity": 0.2}
GRID = "rgba(128,136,150,0.22)"
SHADE = "rgba(229,72,77,0.10)"
FEW = 5  # whole things, each with its own tick
INTERVALS = 4  # of a linear time axis, at most
MOST_SHARES = 5  # intervals of an axis of shares, at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chart:
    """A figure with its finding (a sentence), its axes in words and a text for screen readers."""

    title: str
    subtitle: str
    figure: Figure
    alt: str


def ready(chart: Chart) -> Any:
    """The chart's figure as `st.plotly_chart` takes it."""
    from planner.charts.unchecked import Unchecked  # noqa: PLC0415 - plotly takes half a second, which only pages pay

    return Unchecked(chart.figure)


def layout(*, x: str = "", y: str = "", height: int = 300, **more: Any) -> dict[str, Any]:
    """The layout that all charts share; `more` overrides it."""
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 28, "b": 8},
        "xaxis": {
            "title": {"text": x},
            "automargin": True,
            "gridcolor": GRID,
            "zeroline": False,
            "tickangle": 0,
            "nticks": 6,
        },
        "yaxis": {"title": {"text": y}, "automargin": True, "gridcolor": GRID, "zeroline": False},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "xanchor": "left"},
        "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "dragmode": False,
    }
    for key, value in more.items():
        base[key] = {**base[key], **value} if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return base


def legend_below(width_px: int = 90) -> dict[str, Any]:
    """A legend under the chart, in trace order, each entry this wide."""
    return {
        "y": -0.22,
        "yanchor": "top",
        "traceorder": "normal",
        "entrywidthmode": "pixels",
        "entrywidth": width_px,
        "font": {"size": 11},
    }


def log_ticks(low: float, high: float, write: Callable[[float], str], *, most_decades: float = 2.5) -> dict[str, Any]:
    """Ticks of a logarithmic axis at 1, 2 and 5 (only at 1 over more decades than given), labelled by `write`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = 0.1, 1.0
    low, high = max(low, 1e-9), max(high, 1e-9)
    steps = (1, 2, 5) if math.log10(high / low) < most_decades else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10.0**power for power in powers for step in steps]
    return {"type": "log", "tickmode": "array", "tickvals": values, "ticktext": [write(value) for value in values]}


def time_ticks(low_s: float, high_s: float) -> dict[str, Any]:
    """Ticks of a logarithmic time axis, each in its natural unit: 10 min, not 600 or 1,000 s."""
    ticks = log_ticks(low_s, high_s, format_duration)
    if not (math.isfinite(high_s) and high_s > 100):
        return ticks
    many = math.log10(high_s / max(low_s, 1e-9)) < 2.5
    longer = (60, 120, 300, 600, 1200, 3600, 7200, 18000, 36000) if many else (60, 600, 3600, 36000)
    values = [value for value in ticks["tickvals"] if value < 50] + [float(value) for value in longer]
    return {**ticks, "tickvals": values, "ticktext": [format_duration(value) for value in values]}


def linear_time_ticks(high_s: float) -> dict[str, Any]:
    """Ticks of a linear time axis from 0, all in the unit that suits its end."""
    if not math.isfinite(high_s) or high_s <= 0:
        return {}
    scale = next(
        (size for limit, size in ((2e-3, 1e-6), (2, 1e-3), (120, 1.0), (7200, 60.0)) if high_s < limit), 3600.0
    )
    power = 10.0 ** math.floor(math.log10(high_s / scale / INTERVALS))
    step = scale * next(k * power for k in (1, 2, 5, 10) if k * power * INTERVALS * scale >= high_s * (1 - 1e-9))
    values = [k * step for k in range(int(high_s / step + 1e-9) + 1)]
    unit = {1e-6: "µs", 1e-3: "ms", 1.0: "s", 60.0: "min", 3600.0: "h"}[scale]
    texts = ["0", *(f"{value / scale:,.6g} {unit}" for value in values[1:])]
    return {"tickmode": "array", "tickvals": values, "ticktext": texts, "rangemode": "tozero"}


def percent_ticks(low: float = 0.0, high: float = 1.0, *, signed: bool = False) -> dict[str, Any]:
    """Ticks of a linear axis of shares from `low` to `high`, written as the texts write them: 20 %, not 20%."""
    apart = max(high - low, 1e-9) / MOST_SHARES
    power = 10.0 ** math.floor(math.log10(apart))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= apart * (1 - 1e-9))
    values = [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    texts = [f"{100 * value:{'+' if signed and value else ''},.4g}\u00a0%".replace("-", "−") for value in values]
    return {"tickmode": "array", "tickvals": values, "ticktext": texts}


def percents(shares: Iterable[float]) -> list[str]:
    """Shares as the texts write them, for `%{customdata}` of a hover text: Plotly's own format gives 20%, not 20 %."""
    return [format_percent(float(share)).replace(" ", "\u00a0") for share in shares]


def whole_ticks(most: float) -> dict[str, Any]:
    """Ticks of a linear axis of things that come whole, up to the most of them."""
    return {"tickformat": ",d", "dtick": 1} if most <= FEW else {"tickformat": ",d"}


def bars(names: list[str], values: list[float], texts: list[str], hover: str, **more: Any) -> dict[str, Any]:
    """One trace of horizontal bars with their figures; `hover` follows the name, `more` overrides the trace."""
    wide = 0.22 * max(values, default=0.0)  # a figure fits inside longer bars only
    return {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "text": texts,
        "textposition": ["inside" if value > wide else "outside" for value in values],
        "textangle": 0,
        "constraintext": "none",
        "cliponaxis": False,
        "hovertemplate": "%{y}: " + hover + "<extra></extra>",
        **more,
    }


#: the vertical axis of named bars, the first at the top
ROWS = {"autorange": "reversed", "showgrid": False}


def fill(*kinds: str, **more: Any) -> dict[str, Any]:
    """The marker of a trace of bars by their meaning; pale fills get an outline that stands out from the page."""
    colours, widths = [COLOUR[kind] for kind in kinds], [int(kind in OUTLINED) for kind in kinds]
    one = len(kinds) == 1  # the legend takes the colour of a trace, not of its first bar
    outline = {"color": COLOUR["kv_used"], "width": widths[0] if one else widths}
    return {"color": colours[0] if one else colours, "line": outline, **more}


def line_at(axis: str, value: float, colour: str, dash: str = "dash") -> dict[str, Any]:
    """A straight line across the whole chart at one value of an axis."""
    other = "y" if axis == "x" else "x"
    return {
        "type": "line",
        f"{axis}0": value,
        f"{axis}1": value,
        f"{axis}ref": axis,
        f"{other}0": 0,
        f"{other}1": 1,
        f"{other}ref": "paper",
        "line": {"color": colour, "width": 2, "dash": dash},
    }


def shade_from(x0: float, x1: float) -> dict[str, Any]:
    """A shaded region between two values of x."""
    return {
        "type": "rect",
        "x0": x0,
        "x1": x1,
        "xref": "x",
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": SHADE,
        "line": {"width": 0},
        "layer": "below",
    }


def swatch(colour: str) -> str:
    """A small square of a colour, to stand before a word."""
    return f"<span style='color:{colour}'>■</span> "


def label(text: str, x: float, y: float | str, colour: str = "", **more: Any) -> dict[str, Any]:
    """A text annotation at (x, y) after a swatch of the colour; y may be a name; `more` sets references and anchors."""
    return {
        "text": (swatch(colour) if colour else "") + text,
        "x": x,
        "y": y,
        "showarrow": False,
        "font": {"size": 12},
        "xanchor": "left",
        "yanchor": "bottom",
        **more,
    }


def end_labels(ends: list[tuple[str, str, float, float]], low: float, high: float, height: int) -> list[dict[str, Any]]:
    """Names beside the right ends of lines, moved apart where they would overlap.

    Parameters
    ----------
    ends : list of (name, colour, x, y)
        Where each line ends, y as the axis counts it (its logarithm on a logarithmic axis).
    low, high : float
        The range of that axis.
    height : int
        Of the plot. [pixels]
    """
    apart = 15 * (high - low) / max(1, height)
    ordered = sorted(ends, key=lambda end: end[3])
    places: list[float] = []
    for *_, y in ordered:
        places.append(max(y, places[-1] + apart) if places else y)
    ceiling = high
    for k in range(len(places) - 1, -1, -1):  # what was pushed out at the top comes down again
        places[k] = min(places[k], ceiling)
        ceiling = places[k] - apart
    return [
        label(name, x, at, colour, xanchor="left", yanchor="middle", xshift=4)
        for (name, colour, x, _), at in zip(ordered, places, strict=True)
    ]


def figure(data: list[dict[str, Any]], shape: dict[str, Any]) -> Figure:
    """Put traces and layout together."""
    return {"data": data, "layout": shape}
