"""Predicted against measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.charts.style import COLOUR, Chart, figure, layout, log_ticks
from planner.units import format_number, format_percent


def predicted_against_measured(
    quantity: str,
    measured: Floats,
    predicted: Floats,
    texts: list[str],
    *,
    peer: Floats | None = None,
    unit: str = "",
    provenance: str = "",
) -> Chart:
    """Log-log scatter of predictions against measurements, with the line of perfect prediction.

    Parameters
    ----------
    quantity : str
        Its name.
    measured, predicted : array
        One value for each row, in `unit`.
    texts : list of str
        The rows in words.
    peer : array, optional
        What AIConfigurator predicts; NaN where it does not.
    unit : str
        Of the values.
    provenance : str
        Ends the title.
    """
    of_unit = f", {unit}" if unit else ""
    error = np.abs(predicted / measured - 1)
    median = float(np.median(error)) if len(error) else float("nan")
    return Chart(
        title=f"{quantity}: half of {len(error):,} published measurements are within {format_percent(median)}"
        + (f", {provenance}" if provenance else ""),
        subtitle=f"{quantity}, predicted against measured (log-log)",
        figure=figure(
            _scatter(measured, predicted, texts, peer),
            layout(
                x=f"measured{of_unit}",
                y=f"predicted{of_unit}",
                height=430,
                xaxis={"type": "log", "dtick": 1},
                yaxis={"type": "log", "dtick": 1},
            ),
        ),
        alt=f"Predicted against measured {quantity} for {len(error)} rows, median error {format_percent(median)}",
    )


def _scatter(measured: Floats, predicted: Floats, texts: list[str], peer: Floats | None) -> list[dict[str, Any]]:
    """The line of perfect prediction, the peer's points where it has any, and ours above them."""
    both = np.concatenate([measured, predicted])
    ends = [float(both.min()), float(both.max())] if len(both) else [0.1, 1.0]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": ends,
            "line": {"color": COLOUR["neutral"], "width": 1.5, "dash": "dot"},
            "hoverinfo": "skip",
            "name": "exact",
        }
    ]
    if peer is not None and np.isfinite(peer).any():
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "AIConfigurator 0.12",
                "x": measured[np.isfinite(peer)],
                "y": peer[np.isfinite(peer)],
                "marker": {"color": COLOUR["peer"], "size": 5, "opacity": 0.5, "symbol": "x"},
                "hoverinfo": "skip",
            }
        )
    own = {
        "type": "scatter",
        "mode": "markers",
        "name": "Headroom",
        "x": measured,
        "y": predicted,
        "text": texts,
        "marker": {"color": COLOUR["own"], "size": 6, "opacity": 0.65},
        "hovertemplate": "%{text}<br>measured %{x:.4g}, predicted %{y:.4g}<extra></extra>",
    }
    return [*traces, own]


def curve_over_concurrency(latency: str, concurrency: Floats, lines: dict[str, Floats], unit: str) -> Chart:
    """One latency of a deployment against the number of concurrent users, on log axes.

    Parameters
    ----------
    latency : str
        Its name.
    concurrency : array
        Concurrent users of each run.
    lines : dict
        "measured", then the name of each prediction, to its values; NaN where there is none.
    unit : str
        Of the values.
    """
    colours = {"measured": "target", "Headroom": "own", "Headroom, source left out": "own"}
    traces, measured = [], lines["measured"]
    for name, values in lines.items():
        known = np.isfinite(values)
        if not known.any():
            continue
        colour = COLOUR[colours.get(name, "peer")]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": concurrency[known],
                "y": values[known],
                "line": {"color": colour, "width": 2, "dash": "dot" if "left out" in name else "solid"},
                "marker": {"color": colour, "size": 8 if name == "measured" else 6},
                "hovertemplate": f"{name}: %{{x:.0f}} users, %{{y:.4g}} {unit}<extra></extra>",
            }
        )
    error = float(np.nanmedian(np.abs(lines["Headroom"] / measured - 1)))
    runs = f"{len(measured)} runs" if len(measured) > 1 else "1 run"
    return Chart(
        title=f"{latency}: {format_percent(error)} off at the median of {runs}",
        subtitle=f"{latency} against concurrent users, measured and predicted (log-log)",
        figure=figure(
            traces,
            layout(
                x="concurrent users",
                y=unit,
                height=330,
                xaxis={"type": "log", "tickmode": "array", "tickvals": sorted({float(x) for x in concurrency})},
                yaxis=log_ticks(*_ends(lines), format_number),
            ),
        ),
        alt=f"{latency} over {runs} at different concurrency, median error {format_percent(error)}",
    )


def _ends(lines: dict[str, Floats]) -> tuple[float, float]:
    """The smallest and the largest value drawn."""
    known = np.concatenate([values[np.isfinite(values)] for values in lines.values()])
    return (float(known.min()), float(known.max())) if len(known) else (0.1, 1.0)
