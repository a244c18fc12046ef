"""The batching policies side by side on the same requests."""

from __future__ import annotations

import math
from typing import Any

from planner.charts.style import (
    COLOUR,
    HATCH,
    POLICY_COLOUR,
    Chart,
    Figure,
    bars,
    figure,
    fill,
    layout,
    legend_below,
    time_ticks,
)
from planner.service import PolicyOutcome
from planner.units import format_duration, format_number, format_percent

SHORT = {"static": "Static", "reserve-max": "Reserve-max", "paged": "Paged"}


def in_sentence(title: str) -> str:
    """A title for use inside a sentence; abbreviations keep their capitals."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _bars(
    outcomes: tuple[PolicyOutcome, ...], values: list[float], texts: list[str], hover: str, **more: Any
) -> dict[str, Any]:
    return bars([SHORT.get(item.name, item.title) for item in outcomes], values, texts, hover, **more)


def _one_bar_each(
    outcomes: tuple[PolicyOutcome, ...], values: list[float], hover: str, axis: str, height: int = 230
) -> Figure:
    """One bar for each policy, in its colour."""
    colours = [POLICY_COLOUR.get(item.name, COLOUR["neutral"]) for item in outcomes]
    shown = [value if math.isfinite(value) else 0.0 for value in values]
    trace = _bars(outcomes, shown, [format_number(value) for value in values], hover, marker={"color": colours})
    return figure([trace], layout(x=axis, height=height, showlegend=False, yaxis={"autorange": "reversed"}))


def throughput_finding(outcomes: tuple[PolicyOutcome, ...]) -> str:
    """How far apart the policies' throughputs are, in a sentence."""
    first, last = outcomes[0], outcomes[-1]
    if first.capacity_tokens_per_s <= 0:
        return f"{first.title} finishes no request here"
    ratio = last.capacity_tokens_per_s / first.capacity_tokens_per_s
    return f"{last.title}: {format_number(ratio, 2)}× the throughput of {in_sentence(first.title)}"


def throughput(outcomes: tuple[PolicyOutcome, ...], *, height: int = 240) -> Chart:
    """Tokens per second of each policy on a saturated replica."""
    values = [item.capacity_tokens_per_s for item in outcomes]
    return Chart(
        title=throughput_finding(outcomes),
        subtitle="Prompt and output tokens per second of one saturated replica, on the same requests",
        figure=_one_bar_each(outcomes, values, "%{x:,.0f} tokens/s", "tokens per second", height),
        alt="; ".join(f"{item.title}: {item.capacity_tokens_per_s:,.0f} tokens per second" for item in outcomes),
    )


def slots(outcomes: tuple[PolicyOutcome, ...], max_num_seqs: int) -> Chart:
    """Sequences running on average at the offered rate."""
    values = [item.result.mean_running for item in outcomes]
    most = max(range(len(outcomes)), key=lambda i: values[i])
    return Chart(
        title=f"Most sequences at once: {format_number(values[most], 2)}, with {in_sentence(outcomes[most].title)}",
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
                    ["" if v < 0.12 else format_percent(v) for v in written],
                    "%{x:.1%} holds tokens",
                    name="KV used",
                    textposition="inside",
                    marker=fill("kv_used"),
                ),
                _bars(
                    outcomes,
                    empty,
                    ["" if v < 0.12 else format_percent(v) for v in empty],
                    "%{x:.1%} reserved, empty",
                    name="KV reserved",
                    textposition="inside",
                    marker=fill("kv_reserved", pattern=HATCH),
                    insidetextfont={"color": "#14241c"},
                ),
            ],
            layout(
                x="",
                height=270,
                barmode="stack",
                legend=legend_below(85),
                yaxis={"autorange": "reversed"},
                xaxis={"tickformat": ".0%", "range": [0, 1]},
            ),
        ),
        alt="; ".join(
            f"{item.title}: {format_percent(w)} used, {format_percent(e)} reserved but empty"
            for item, w, e in zip(outcomes, written, empty, strict=True)
        ),
    )


def waits(outcomes: tuple[PolicyOutcome, ...]) -> Chart:
    """Median and p95 of the end-to-end time."""
    finite = [item for item in outcomes if math.isfinite(item.metrics.e2e_s.p95)] or list(outcomes)
    best = min(reversed(finite), key=lambda item: item.metrics.e2e_s.p95)
    worst = max(item.metrics.e2e_s.p95 for item in finite)
    title = f"{best.title} is fastest: 95 % of requests finish within {format_duration(best.metrics.e2e_s.p95)}"
    traces = []
    for name in ("p50", "p95"):
        values = [getattr(item.metrics.e2e_s, name) for item in outcomes]
        traces.append(
            _bars(
                outcomes,
                values,
                [format_duration(value) for value in values],
                f"{name} %{{x:.3g}} s",
                name="median" if name == "p50" else name,
                marker={"color": COLOUR[name]},
                insidetextfont={"color": "#ffffff", "size": 11},
                outsidetextfont={"size": 11},
            )
        )
    return Chart(
        title=title if math.isfinite(worst) else "No request finishes under any policy",
        subtitle="End-to-end time, arrival to last token, at the offered rate (log)",
        figure=figure(
            traces,
            layout(
                height=330,
                barmode="group",
                bargap=0.12,
                legend=legend_below(85),
                yaxis={"autorange": "reversed"},
                xaxis=time_ticks(min(best.metrics.e2e_s.p50, best.metrics.e2e_s.p95), worst),
            ),
        ),
        alt="; ".join(
            f"{item.title}: median {format_duration(item.metrics.e2e_s.p50)}, "
            f"p95 {format_duration(item.metrics.e2e_s.p95)}"
            for item in outcomes
        ),
    )


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
    traces = []
    for item, line in sampled:
        shown = line.time_s <= right
        skip = max(1, int(shown.sum()) // 600)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": SHORT.get(item.name, item.title),
                "x": line.time_s[shown][::skip],
                "y": getattr(line, field)[shown][::skip],
                "line": {"color": POLICY_COLOUR.get(item.name, COLOUR["neutral"]), "width": 1.8, "shape": "hv"},
                "hovertemplate": f"{item.title}: %{{y:,.0f}} at %{{x:.1f}} s<extra></extra>",
            }
        )
    cut = f"; cut off, the slowest runs to {format_duration(max(ends))}" if max(ends) > right else ""
    return Chart(
        title=title,
        subtitle=f"{unit[:1].upper()}{unit[1:]} over simulated seconds, one replica at the offered rate{cut}",
        figure=figure(traces, layout(height=300, legend=legend_below(85), xaxis={"range": [0, right]})),
        alt=title,
    )
