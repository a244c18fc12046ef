"""The batching policies side by side on the same requests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from planner.arrays import Floats, Ints
from planner.charts.style import (
    COLOUR,
    HATCH,
    INK,
    POLICY_DASH,
    ROWS,
    Chart,
    Figure,
    bars,
    end_labels,
    figure,
    fill,
    layout,
    linear_time_ticks,
    percent_ticks,
    percents,
)
from planner.service import PolicyOutcome
from planner.units import format_duration, format_number, format_percent

POINTS = 90  # of a line over time
SHORT = {"one-at-a-time": "One at a time", "static": "Static", "reserve-max": "Reserve-max", "paged": "Paged"}


def in_sentence(title: str) -> str:
    """A title for use inside a sentence; abbreviations keep their capitals."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _bars(
    outcomes: tuple[PolicyOutcome, ...], values: list[float], texts: list[str], hover: str, **more: Any
) -> dict[str, Any]:
    return bars([SHORT.get(item.name, item.title) for item in outcomes], values, texts, hover, **more)


def _one_bar_each(
    outcomes: tuple[PolicyOutcome, ...], values: list[float], hover: str, axis: str, height: int = 210
) -> Figure:
    """One bar for each policy; that of the last, paged batching, stands out."""
    colours = [COLOUR["own"] if item is outcomes[-1] else COLOUR["neutral"] for item in outcomes]
    shown = [value if math.isfinite(value) else 0.0 for value in values]
    trace = _bars(outcomes, shown, [format_number(value) for value in values], hover, marker={"color": colours})
    trace |= {"textposition": "outside"}
    right = 1.18 * max([*shown, 1e-12])  # room for the figure beside the longest bar
    return figure(
        [trace],
        layout(x=axis, height=height, showlegend=False, yaxis=ROWS, xaxis={"range": [0, right]}),
    )


def throughput_finding(outcomes: tuple[PolicyOutcome, ...]) -> str:
    """How far apart the policies' throughputs are, in a sentence."""
    first, last = outcomes[0], outcomes[-1]
    if first.capacity_tokens_per_s <= 0:
        return f"{first.title} finishes no request here"
    ratio = last.capacity_tokens_per_s / first.capacity_tokens_per_s
    if 0.95 < ratio < 1.05:
        return "All policies have the same throughput here"
    return f"{last.title}: {format_number(ratio, 2)}× the throughput of {in_sentence(first.title)}"


def throughput(outcomes: tuple[PolicyOutcome, ...]) -> Chart:
    """Tokens per second of each policy on a saturated replica."""
    values = [item.capacity_tokens_per_s for item in outcomes]
    return Chart(
        title=throughput_finding(outcomes),
        subtitle="Prompt and output tokens per second of one saturated replica, on the same requests",
        figure=_one_bar_each(outcomes, values, "%{x:,.0f} tokens/s", "tokens per second", height=240),
        alt="; ".join(f"{item.title}: {item.capacity_tokens_per_s:,.0f} tokens per second" for item in outcomes),
    )


def slots(outcomes: tuple[PolicyOutcome, ...], max_num_seqs: int) -> Chart:
    """Sequences running on average at the offered rate."""
    values = [item.result.mean_running for item in outcomes]
    most = max(values)
    which = [in_sentence(item.title) for item, v in zip(outcomes, values, strict=True) if v >= 0.99 * most]
    return Chart(
        title=f"Most sequences at once: {format_number(most, 2)}, with {' and '.join(which)}",
        subtitle=f"Mean sequences running at once at the offered rate (max_num_seqs {max_num_seqs:,})",
        figure=_one_bar_each(outcomes, values, "%{x:.1f} running", "sequences running"),
        alt="; ".join(f"{item.title}: {v:.1f} running" for item, v in zip(outcomes, values, strict=True)),
    )


def kv_use(outcomes: tuple[PolicyOutcome, ...]) -> Chart:
    """Mean shares of the KV pool that hold tokens and that are reserved but empty."""
    written = [item.result.mean_kv_written_fraction for item in outcomes]
    empty = [max(0.0, item.result.mean_kv_used_fraction - w) for item, w in zip(outcomes, written, strict=True)]
    worst = max(range(len(outcomes)), key=lambda i: empty[i])
    return Chart(
        title=f"{outcomes[worst].title}: {format_percent(empty[worst])} of the KV pool is reserved and stays empty",
        subtitle="Mean share of the KV pool at the offered rate",
        figure=figure(
            [
                _bars(
                    outcomes,
                    written,
                    [""] * len(written),
                    "%{customdata} holds tokens",
                    customdata=percents(written),
                    name="KV used",
                    marker=fill("kv_used"),
                ),
                _bars(
                    outcomes,
                    empty,
                    [_shares(w, e) for w, e in zip(written, empty, strict=True)],
                    "%{customdata} reserved, empty",
                    customdata=percents(empty),
                    name="KV reserved",
                    textposition=["inside" if w + e > 0.6 else "outside" for w, e in zip(written, empty, strict=True)],
                    insidetextanchor="end",
                    marker=fill("kv_reserved", pattern=HATCH),
                    insidetextfont={"color": INK},
                ),
            ],
            layout(
                x="",
                height=210,
                barmode="stack",
                showlegend=False,
                yaxis=ROWS,
                xaxis={**percent_ticks(), "range": [0, 1]},
            ),
        ),
        alt="; ".join(
            f"{item.title}: {format_percent(w)} used, {format_percent(e)} reserved but empty"
            for item, w, e in zip(outcomes, written, empty, strict=True)
        ),
    )


def _shares(written: float, empty: float) -> str:
    return f"{format_percent(empty)} empty" if empty >= 0.0005 else f"{format_percent(written)} in use"


def waits(outcomes: tuple[PolicyOutcome, ...]) -> Chart:
    """Median and p95 of the end-to-end time."""
    finite = [item for item in outcomes if math.isfinite(item.metrics.e2e_s.p95)] or list(outcomes)
    worst = max(item.metrics.e2e_s.p95 for item in finite)
    right = worst if math.isfinite(worst) else 1.0
    traces = []
    for name, word in (("p50", "median"), ("p95", "p95")):
        values = [getattr(item.metrics.e2e_s, name) for item in outcomes]
        traces.append(
            _bars(
                outcomes,
                values,
                [f"{word} {format_duration(value)}" for value in values],
                f"{word} %{{x:.3g}} s",
                name=word,
                marker={"color": COLOUR[name]},
                textposition=["inside" if value > 0.55 * right else "outside" for value in values],
                insidetextanchor="end",
                insidetextfont={"color": "#ffffff", "size": 12},
                outsidetextfont={"size": 12},
            )
        )
    return Chart(
        title=waits_finding(finite) if math.isfinite(worst) else "No request finishes under any policy",
        subtitle="End-to-end time, arrival to last token, at the offered rate",
        figure=figure(
            traces,
            layout(
                height=300,
                barmode="group",
                bargap=0.15,
                showlegend=False,
                yaxis=ROWS,
                xaxis={**linear_time_ticks(right), "range": [0, 1.05 * right]},
            ),
        ),
        alt="; ".join(
            f"{item.title}: median {format_duration(item.metrics.e2e_s.p50)}, "
            f"p95 {format_duration(item.metrics.e2e_s.p95)}"
            for item in outcomes
        ),
    )


def waits_finding(finite: list[PolicyOutcome]) -> str:
    """Who finishes 95 % of its requests first, in a sentence; those within a hundredth of it share the place."""
    best = min(item.metrics.e2e_s.p95 for item in finite)
    first = [item for item in finite if item.metrics.e2e_s.p95 <= 1.01 * best]
    within = f"95 % of requests end within {format_duration(best)}"
    if len(first) == len(finite) > 1:
        return f"Under every policy {within}"
    names = " and ".join(item.title if k == 0 else in_sentence(item.title) for k, item in enumerate(first))
    return f"{names}: {within}" + (" in both" if len(first) == 2 else "")


def cost(outcomes: tuple[PolicyOutcome, ...]) -> Chart:
    """USD per million tokens of each policy on a saturated replica."""
    values = [item.usd_per_million_tokens_at_capacity for item in outcomes]
    ratio = values[0] / values[-1] if values[-1] and values[0] != float("inf") else 0.0
    return Chart(
        title=f"{outcomes[0].title} costs {format_number(ratio, 2)}× as much per token as "
        f"{in_sentence(outcomes[-1].title)}"
        if ratio
        else "Price of a token under each policy",
        subtitle="USD per million tokens of one saturated replica",
        figure=_one_bar_each(outcomes, values, "%{x:.3g} USD per million tokens", "USD per million tokens"),
        alt="; ".join(f"{item.title}: {format_number(v)} USD" for item, v in zip(outcomes, values, strict=True)),
    )


def _thinned(time_s: Floats, values: Ints) -> tuple[Floats, Floats]:
    """The highest of so few stretches that a line can be told from the others."""
    starts = np.unique(np.linspace(0, len(values), min(len(values), POINTS), endpoint=False).astype(int))
    most = np.maximum.reduceat(values, starts) if len(values) else values
    return time_s[starts], most.astype(float)


def timeline(outcomes: tuple[PolicyOutcome, ...], field: str, title: str, unit: str) -> Chart | None:
    """One quantity over simulated time, a line per policy; None when nothing was sampled.

    The axis ends soon after the last policy in the list finishes; the slowest ones would squeeze the others.
    """
    sampled = [(item, item.result.timeline) for item in outcomes if item.result.timeline is not None]
    sampled = [(item, line) for item, line in sampled if len(line.time_s)]
    if not sampled:
        return None
    ends = [float(line.time_s[-1]) for _, line in sampled]
    right = min(max(ends), 1.3 * ends[-1])
    traces, names, high = [], [], 1.0
    for item, line in sampled:
        shown = line.time_s <= right
        x, y = _thinned(line.time_s[shown], getattr(line, field)[shown])
        is_last = item is sampled[-1][0]
        colour = COLOUR["own"] if is_last else COLOUR["neutral"]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "opacity": 1.0 if is_last else 0.7,
                "name": SHORT.get(item.name, item.title),
                "x": x,
                "y": y,
                "line": {
                    "color": colour,
                    "width": 2.4 if is_last else 1.4,
                    "dash": POLICY_DASH.get(item.name, "solid"),
                },
                "hovertemplate": f"{item.title}: %{{y:,.0f}} at %{{x:.1f}} s<extra></extra>",
            }
        )
        names.append((SHORT.get(item.name, item.title), colour, right, float(y.mean()) if len(y) else 0.0))
        high = max(high, float(y.max()) if len(y) else 0.0)
    cut = f"; cut off, the slowest runs to {format_duration(max(ends))}" if max(ends) > right else ""
    return Chart(
        title=title,
        subtitle=f"{unit[:1].upper()}{unit[1:]} over simulated time, the most in each stretch; one replica at the "
        f"offered rate{cut}",
        figure=figure(
            traces,
            layout(
                height=280,
                showlegend=False,
                margin={"r": 96},
                xaxis={"range": [0, right], "ticksuffix": " s", "nticks": 5},
                yaxis={"range": [0, 1.08 * high], "tickformat": ",.0f", "nticks": 5},
                annotations=end_labels(names, 0.0, 1.08 * high, 230),
            ),
        ),
        alt=title,
    )
