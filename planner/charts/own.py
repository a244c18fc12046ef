"""What a user brought: figures beside the predicted ones, and recorded traffic over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.charts.style import COLOUR, Chart, figure, label, layout, line_at, percent_ticks
from planner.reading import Compared, Overlay, value_text
from planner.units import format_number, format_percent
from planner.workload import TraceSummary

FIGURES = {
    "weights_gib_per_gpu": "Weights",
    "activation_peak_gib": "Activation peak",
    "non_torch_gib": "Runtime (non-torch)",
    "available_kv_gib": "KV cache memory",
    "kv_tokens": "KV cache tokens",
    "max_concurrency": "Maximum concurrency",
    "est_max_model_len": "Longest context named",
    "ttft_ms_mean": "TTFT, mean",
    "ttft_ms_p50": "TTFT, median",
    "tpot_ms_mean": "TPOT, mean",
    "tpot_ms_p50": "TPOT, median",
    "e2e_s_mean": "E2E, mean",
    "ttft_ms_p95": "TTFT, 95th percentile",
    "itl_ms_p95": "ITL, 95th percentile",
    "e2e_s_p95": "E2E, 95th percentile",
    "output_tok_s_total": "Output tokens/s",
    "total_tok_s": "Tokens/s",
    "req_s": "Requests/s",
}
AT_EDGE: dict[str, Any] = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "xshift": 6}
SHOWN_ERROR = 2.0  # larger errors end at the edge of the chart; their figure says how large they are


def figure_name(row: Compared) -> str:
    """Name of a compared figure as an engineer says it."""
    return FIGURES.get(row.name, row.name)


def overlay_errors(found: Overlay) -> Chart | None:
    """Predicted ÷ measured − 1 of each figure as bars to both sides of the measured value; None without figures."""
    if not found.rows:
        return None
    rows = found.rows[::-1]
    errors = [row.error for row in rows]
    shown = [max(-1.0, min(SHOWN_ERROR, error)) for error in errors]
    reach = max(0.1, *(abs(value) for value in shown)) * 1.05
    worst = max(found.rows, key=lambda row: abs(row.error))
    said = f"what {found.predicted_by} predicts" if found.predicted_by else "what was measured"
    title = (
        f"{figure_name(worst)} is predicted {format_percent(abs(worst.error))} "
        f"{'above' if worst.error > 0 else 'below'} {said}"
        if abs(worst.error) >= 0.05
        else f"All {len(rows)} figures are predicted within 5 % of {said}"
    )
    theirs = found.predicted_by or "measured"
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": [figure_name(row) for row in rows],
        "x": shown,
        "marker": {"color": COLOUR["own"]},
        "customdata": [[value_text(row.measured), value_text(row.predicted)] for row in rows],
        "hovertemplate": f"%{{y}}: {theirs} %{{customdata[0]}}, predicted %{{customdata[1]}}<extra></extra>",
    }
    shape = layout(
        height=70 + 34 * len(rows),
        xaxis={**percent_ticks(-reach, reach, signed=True), "range": [-reach, reach]},
        yaxis={"showgrid": False},
        shapes=[line_at("x", 0.0, COLOUR["neutral"], "solid")],
        # at the right edge, where they meet no bar and no name, however narrow the screen
        annotations=[
            label(f"{error:+.1%}".replace("%", " %").replace("-", "−"), 1.0, index, **AT_EDGE)
            for index, error in enumerate(errors)
        ],
        margin={"r": 62},
        showlegend=False,
    )
    alt = "; ".join(
        f"{figure_name(row)}: {theirs} {value_text(row.measured)}, predicted {value_text(row.predicted)}"
        for row in found.rows
    )
    return Chart(title=title, subtitle=f"Predicted ÷ {theirs} − 1", figure=figure([bar], shape), alt=alt)


def rate_over_time(told: TraceSummary) -> Chart | None:
    """Requests per second over the recording, with its mean; None for a recording of one instant."""
    if told.span_s <= 0:
        return None
    long = told.span_s > 2 * 3600
    unit, scale = ("h", 3600.0) if long else ("min", 60.0)
    times = (np.arange(len(told.rate_rps)) + 0.5) * told.bin_s / scale
    line = {
        "type": "scatter",
        "mode": "lines",
        "line": {"color": COLOUR["own"], "width": 2, "shape": "hvh"},
        "fill": "tozeroy",
        "x": times,
        "y": told.rate_rps,
        "hovertemplate": f"%{{x:.3g}} {unit}: %{{y:.3g}} req/s<extra></extra>",
    }
    times_mean = told.peak_rps / told.mean_rps
    title = f"{format_number(told.mean_rps)} req/s on average, {format_number(times_mean)} times that at the peak"
    shape = layout(
        x=f"Time, {unit}",
        height=240,
        yaxis={"rangemode": "tozero"},
        shapes=[line_at("y", told.mean_rps, COLOUR["neutral"])],
        showlegend=False,
    )
    bin_s = format_number(told.bin_s)
    return Chart(
        title=title,
        subtitle=f"Requests per second, over {bin_s} s each; dashed: the mean",
        figure=figure([line], shape),
        alt=f"{told.num_requests:,} requests over {format_number(told.span_s)} s. {title}.",
    )
