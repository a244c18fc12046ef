"""Predicted against measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.charts.style import COLOUR, Chart, figure, layout
from planner.units import format_percent


def predicted_against_measured(
    quantity: str,
    measured: Floats,
    predicted: Floats,
    texts: list[str],
    peer: Floats | None = None,
    unit: str = "",
) -> Chart:
    """Log-log scatter with the line of perfect prediction; `texts` name the rows."""
    of_unit = f", {unit}" if unit else ""
    error = np.abs(predicted / measured - 1)
    median = float(np.median(error)) if len(error) else float("nan")
    low = float(min(measured.min(), predicted.min())) if len(error) else 0.1
    high = float(max(measured.max(), predicted.max())) if len(error) else 1.0
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [low, high],
            "y": [low, high],
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
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Headroom",
            "x": measured,
            "y": predicted,
            "text": texts,
            "marker": {"color": COLOUR["own"], "size": 6, "opacity": 0.65},
            "hovertemplate": "%{text}<br>measured %{x:.4g}, predicted %{y:.4g}<extra></extra>",
        }
    )
    return Chart(
        title=f"{quantity}: half of {len(error):,} published measurements are within {format_percent(median)}",
        subtitle=f"{quantity}, predicted against measured (log-log)",
        figure=figure(
            traces,
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
