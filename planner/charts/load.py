"""Latency against load, latency distributions, and what a step spends its time on."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.charts.style import (
    COLOUR,
    DASH,
    ROWS,
    Chart,
    bars,
    end_labels,
    figure,
    label,
    layout,
    line_at,
    percent_ticks,
    percents,
    shade_from,
    time_ticks,
)
from planner.service import LoadCurve, LoadPoint
from planner.step_time import PrefillChunk, StepTimeTable
from planner.units import MS, counted, format_duration, format_number, format_percent

QUANTITIES = {"ttft_s": "Time to first token", "tpot_s": "Time per output token", "e2e_s": "End-to-end time"}
NAME_WIDE, NAME_TALL = 0.28, 0.1  # of a target's name beside its line, as shares of the plot
TERM_TITLES = {
    "linear": "Linear layers",
    "head": "Head, sampling",
    "decode_attention": "Decode attention",
    "prefill_attention": "Prefill attention",
    "host": "Host",
}
TERM_COLOUR = {
    "linear": COLOUR["weights"],
    "head": COLOUR["own"],
    "decode_attention": COLOUR["kv_used"],
    "prefill_attention": COLOUR["activations"],
    "host": COLOUR["runtime"],
}


def load_finding(curve: LoadCurve, num_replicas: int, rate_rps: float, has_targets: bool = True) -> str:
    """Up to which rate the fleet meets the targets, or keeps up where there are none, in a sentence."""
    top = curve.slo_rate_rps * num_replicas
    if curve.capacity_rps <= 0:
        return "No request fits on a replica"
    if top <= 0:
        return "One replica alone misses the targets, even at the lowest rate"
    if rate_rps > curve.capacity_rps * num_replicas:
        return (
            f"Overloaded: {format_number(rate_rps)} req/s arrive, at most "
            f"{curve.capacity_in_words(num_replicas)} finish"
        )
    does = f"{'Meets the targets up to' if has_targets else 'Keeps up with'} {curve.slo_rate_in_words(num_replicas)}"
    return f"{does}; saturates at {curve.capacity_in_words(num_replicas)}"


def latency_finding(curve: LoadCurve, quantity: str, num_replicas: int, p95_s: float) -> str:
    """One quantity at the plan's load and near saturation, in a sentence."""
    points = curve.points
    if not points:
        return "No request fits on a replica"
    rates = [point.rate_rps * num_replicas for point in points]
    p95 = [getattr(point.metrics, quantity).p95 for point in points]
    full = float(np.interp(0.95 * curve.capacity_rps * num_replicas, rates, p95))
    return f"{QUANTITIES[quantity]}, p95: {format_duration(p95_s)} as planned, {format_duration(full)} near saturation"


def latency_against_load(
    curve: LoadCurve,
    quantity: str,
    *,
    num_replicas: int = 1,
    rate_rps: float | None = None,
    target_s: float | None = None,
    p95_s: float | None = None,
    has_targets: bool = True,
    title: str | None = None,
    height: int = 300,
) -> Chart:
    """p50, p95 and p99 of one quantity over the offered rate of the whole fleet.

    TPOT ends where the fleet saturates: beyond, the queue grows without end, so that there is no steady TPOT to show;
    in some plans the simulated p95 falls there.

    Parameters
    ----------
    curve : LoadCurve
        One replica's sweep; rates are multiplied by `num_replicas`.
    quantity : str
        ttft_s, tpot_s or e2e_s.
    num_replicas : int
        Replicas that share the load.
    rate_rps : float, optional
        Where the plan operates. [req/s]
    target_s : float, optional
        The target line. [s]
    p95_s : float, optional
        What the plan's own simulation gave at that rate, drawn as a diamond. [s]
    has_targets : bool
        Whether the plan has any latency target; throughput alone sizes it where not.
    title : str, optional
        A finding to use instead of the rate up to which the targets hold.
    """
    points = curve.points
    if quantity == "tpot_s":
        points = tuple(point for point in points if point.rate_rps <= curve.capacity_rps)
    rates = np.array([point.rate_rps * num_replicas for point in points])
    traces, values = _percentile_lines(points, quantity, rates)
    capacity = curve.capacity_rps * num_replicas
    right = max(*(point.rate_rps * num_replicas for point in curve.points), capacity) * 1.03 if curve.points else 1.0
    inside = rate_rps is not None and rate_rps <= right  # the axis ends where the replicas do
    low, high = (min(values), max(values)) if values else (0.01, 1.0)
    if target_s:
        low, high = min(low, target_s), max(high, target_s)
    decades = math.log10(high / low)
    # the lines' names stay inside, and the target's has room below where it lies at the foot
    head = max(0.15, 0.1 * decades)
    foot = max(0.1, NAME_TALL * 1.2 * (decades + head)) if target_s == low else 0.1
    y_range = [math.log10(low) - foot, math.log10(high) + head]
    shapes = [shade_from(capacity, right)]
    notes = [label("saturated", capacity, 0.0, yref="paper", xanchor="left", textangle=-90), *_names(traces, y_range)]
    if target_s:
        shapes.append(line_at("y", target_s, COLOUR["target"]))
        share = rate_rps / right if rate_rps is not None and inside else 1.0
        notes.append(_target_name(target_s, share, traces, right, y_range))
    if values:
        marks = _rate_marks(curve, num_replicas, rate_rps, right, has_targets=has_targets)
        shapes += marks[0]
        notes += marks[1]
    if rate_rps is not None and inside and values and p95_s is not None and math.isfinite(p95_s) and p95_s > 0:
        traces.append(_you(rate_rps, p95_s))
    finding = load_finding(curve, num_replicas, rate_rps or 0.0, has_targets)
    fleet = (
        "1 replica"
        if num_replicas == 1
        else f"{num_replicas} replicas with equal shares; diamond: the fleet as simulated"
    )
    return Chart(
        title=title or finding,
        subtitle=f"{QUANTITIES[quantity]} (log) against requests per second, {fleet}",
        figure=figure(
            traces,
            layout(
                height=height,
                margin={"t": 40, "r": 48},
                xaxis={"range": [0, right], "title": {"text": "requests per second"}},
                yaxis={**time_ticks(low, high), "range": y_range},
                showlegend=False,
                shapes=shapes,
                annotations=notes,
            ),
        ),
        alt=f"{QUANTITIES[quantity]} against load. {finding}",
    )


def _target_name(
    target_s: float, share: float, traces: list[dict[str, Any]], right: float, y_range: list[float]
) -> dict[str, Any]:
    """The target's name, clear of the plan's line at a share of the width and of the rise at the right.

    Above or below its line, wherever the percentiles' lines leave more room.
    """
    aside, height = share + 0.02 if share < 0.5 else 0.02, math.log10(target_s)
    across = np.linspace(aside, aside + NAME_WIDE, 9) * right
    drawn = [np.interp(across, trace["x"], trace["y"]) for trace in traces if len(trace["x"])]
    gaps = np.log10(np.maximum(np.concatenate(drawn), 1e-9)) - height if drawn else np.array([math.inf])
    tall = NAME_TALL * (y_range[1] - y_range[0])
    above = bool(np.any((gaps > -0.2 * tall) & (gaps < tall)))
    below = bool(np.any((gaps < 0.2 * tall) & (gaps > -tall))) or height - tall < y_range[0]
    under = above and not below
    return label(
        f"target {format_duration(target_s)}",
        aside,
        height,
        COLOUR["target"],
        xref="paper",
        yanchor="top" if under else "bottom",
    )


def _rate_marks(
    curve: LoadCurve, num_replicas: int, rate_rps: float | None, right: float, *, has_targets: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines and names of the rate up to which the targets hold, and of the plan's own, which may lie beyond `right`."""
    shapes, notes, slo_rps = [], [], curve.slo_rate_rps * num_replicas
    if slo_rps > 0:
        shapes.append(line_at("x", slo_rps, COLOUR["neutral"], "dot"))
        words = "targets met" if has_targets else "keeps up"
        notes.append(
            _above(
                f"{words} to {curve.slo_rate_in_words(num_replicas).removesuffix(' req/s')}",
                slo_rps,
                right,
                1.0,
                COLOUR["neutral"],
            )
        )
    if rate_rps is not None:
        said = f"you: {format_number(rate_rps)} req/s{' →' if rate_rps > right else ''}"
        notes.append(_above(said, min(rate_rps, right), right, 1.08, COLOUR["here"]))
        if rate_rps <= right:
            shapes.append(line_at("x", rate_rps, COLOUR["here"], "solid"))
    return shapes, notes


def _percentile_lines(
    points: tuple[LoadPoint, ...], quantity: str, rates: Floats
) -> tuple[list[dict[str, Any]], list[float]]:
    traces, values = [], []
    for level in ("p50", "p95", "p99"):
        y = np.array([getattr(getattr(point.metrics, quantity), level) for point in points])
        values += [value for value in y if math.isfinite(value) and value > 0]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": level,
                "x": rates,
                "y": y,
                "line": {"color": COLOUR[level], "width": 2.5, "dash": DASH[level]},
                "marker": {"size": 5},
                "hovertemplate": f"{level} %{{y:.3g}} s at %{{x:.3g}} req/s<extra></extra>",
            }
        )
    return traces, values


def _names(traces: list[dict[str, Any]], y_range: list[float]) -> list[dict[str, Any]]:
    """The name of each percentile beside the end of its line."""
    ends = []
    for trace in traces:
        seen = np.isfinite(trace["y"]) & (trace["y"] > 0)
        if seen.any():
            last = int(np.flatnonzero(seen)[-1])
            place = float(trace["x"][last]), math.log10(float(trace["y"][last]))
            ends.append((trace["name"], trace["line"]["color"], *place))
    return end_labels(ends, y_range[0], y_range[1], 210)


def _you(rate_rps: float, p95_s: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "you, p95",
        "x": [rate_rps],
        "y": [p95_s],
        "marker": {"symbol": "diamond", "size": 12, "color": COLOUR["here"], "line": {"color": "#ffffff", "width": 1}},
        "hovertemplate": f"as planned: p95 {format_duration(p95_s)} at {format_number(rate_rps)} req/s<extra></extra>",
    }


def _above(text: str, x: float, right: float, y: float, colour: str) -> dict[str, Any]:
    # The line can be at either edge; the label goes where there is room.
    return label(text, x, y, colour, yref="paper", xanchor="right" if x > 0.6 * right else "left")


def distribution(seconds: Floats, quantity: str, target_s: float | None) -> Chart:
    """Cumulative distribution of one latency over the requests at the peak."""
    finite = np.sort(seconds[np.isfinite(seconds)])
    keep = np.unique(np.linspace(0, max(len(finite) - 1, 0), 400).astype(int)) if len(finite) else np.array([], int)
    x = finite[keep]
    y = (keep + 1) / max(len(finite), 1)
    within = float(np.mean(finite <= target_s)) if target_s and len(finite) else math.nan
    title = (
        f"{format_percent(within)} of the requests served meet the target of {format_duration(target_s)}"
        if target_s and len(finite)
        else f"{QUANTITIES[quantity]} by request"
    )
    shapes, notes = [], []
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        if len(finite):
            value = float(np.quantile(finite, q))
            shapes.append(line_at("x", value, COLOUR[name], DASH[name]))
            notes.append(
                label(
                    name,
                    math.log10(max(value, 1e-9)),
                    {"p50": 0.0, "p95": 0.12, "p99": 0.24}[name],
                    COLOUR[name],
                    yref="paper",
                    xanchor="right" if name == "p95" else "left",  # clear of the line of p99
                )
            )
    if target_s:
        shapes.append(line_at("x", target_s, COLOUR["target"]))
        notes.append(
            label("target", math.log10(target_s), 1.0, COLOUR["target"], yref="paper", xanchor="right", yanchor="top")
        )
    return Chart(
        title=title,
        subtitle=f"{QUANTITIES[quantity]} (log): share of requests at or below each value",
        figure=figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": x,
                    "y": y,
                    "line": {"color": COLOUR["neutral"], "width": 2.5},
                    "customdata": percents(y),
                    "hovertemplate": "%{customdata} within %{x:.3g} s<extra></extra>",
                    "showlegend": False,
                }
            ],
            layout(
                height=280,
                xaxis=_times(float(x[0]), max(float(x[-1]), target_s or 0.0)) if len(x) else {},
                yaxis={**percent_ticks(), "range": [0, 1.02]},
                shapes=shapes,
                annotations=notes,
            ),
        ),
        alt=title,
    )


def _times(low_s: float, high_s: float) -> dict[str, Any]:
    """A logarithmic time axis with some room beyond both ends, where a tick or a target may be."""
    low, high = math.log10(max(low_s, 1e-9)), math.log10(max(high_s, 1e-9))
    room = max(0.03 * (high - low), 0.02)
    return {**time_ticks(low_s, high_s), "range": [low - room, high + room]}


def _step_text(seconds: float, name: str) -> str:
    return f"{format_duration(seconds)} {name}".strip() if seconds else ""


def step_terms(table: StepTimeTable, *, running: int, context_tokens: int, chunk_tokens: int) -> Chart:
    """Step time by part, of a step that only decodes and of one with a part of a prompt."""
    decode = table.decode_work(running, context_tokens)
    chunk = PrefillChunk(num_tokens=chunk_tokens)
    mixed = dataclasses.replace(decode, num_logit_rows=running + 1, chunks=(chunk,))
    names = ["alone", "+ prompt"]
    terms = [table.terms_s(decode), table.terms_s(mixed)]
    totals = [sum(term.values()) for term in terms]
    shown = [key for key in TERM_TITLES if max(term.get(key, 0.0) for term in terms) > 0]
    longest = max(max(term.values()) for term in terms)
    main = max(terms[0], key=lambda key: terms[0][key])  # its bars say which step is which
    traces = []
    for name, term in zip(names, terms, strict=True):
        values = [term.get(key, 0.0) / MS for key in shown]
        trace = bars(
            [TERM_TITLES[key] for key in shown],
            values,
            [_step_text(value * MS, name if key == main else "") for key, value in zip(shown, values, strict=True)],
            f"%{{x:.2f}} ms {name}",
            name=name,
            marker={"color": [TERM_COLOUR[key] for key in shown], "opacity": 1.0 if name == names[0] else 0.75},
            textposition=["inside" if value * MS > 0.6 * longest else "outside" for value in values],
            insidetextanchor="end",
            insidetextfont={"color": "#ffffff"},
        )
        traces.append(trace)
    return Chart(
        title=f"A decode step takes {format_duration(totals[0])}, mostly "
        f"{TERM_TITLES[main][0].lower() + TERM_TITLES[main][1:]}; a prompt chunk adds "
        f"{format_duration(totals[1] - totals[0])}",
        subtitle=f"One engine step: {counted(running, 'sequence')} of {context_tokens:,} tokens, alone and with "
        f"{chunk_tokens:,} prompt tokens",
        figure=figure(
            traces,
            layout(
                height=70 + 44 * len(shown),
                barmode="group",
                bargap=0.2,
                showlegend=False,
                yaxis=ROWS,
                x="ms",
                xaxis={"nticks": 5, "range": [0, 1.25 * longest / MS]},
            ),
        ),
        alt=f"Step time: {format_duration(totals[0])} for decodes only, {format_duration(totals[1])} with a prompt "
        "chunk",
    )
