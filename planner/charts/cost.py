"""Cost charts: why this many GPUs, the bill beside a hosted API, and price against utilisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from planner.answer import ChainLink
from planner.arrays import Floats
from planner.charts.policies import in_sentence
from planner.charts.style import (
    COLOUR,
    Chart,
    bars,
    figure,
    label,
    layout,
    line_at,
    log_ticks,
    percent_ticks,
    percents,
)
from planner.cost import CostMap, CostPlan, OwnSteps, cost_map
from planner.units import counted, format_number, format_percent, format_usd

MOST_STEPS = 400


def gpu_chain(links: tuple[ChainLink, ...], num_gpus: int) -> Chart:
    """GPUs that each reason alone would need."""
    finite = [link.gpus for link in links if math.isfinite(link.gpus)]
    top = max([*finite, num_gpus, 1])
    decisive = max(links, key=lambda link: link.gpus)
    level = len({link.gpus for link in links} | {float(num_gpus)}) == 1
    values = [link.gpus if math.isfinite(link.gpus) else top * 1.2 for link in links]
    return Chart(
        title=_chain_title(decisive, num_gpus, level=level),
        subtitle="GPUs that each reason alone would need",
        figure=figure(
            [
                bars(
                    [link.reason for link in links],
                    values,
                    [format_number(link.gpus) for link in links],
                    "%{text} GPUs",
                    marker={
                        "color": [
                            COLOUR["here"] if link is decisive and not level else COLOUR["neutral"] for link in links
                        ]
                    },
                )
            ],
            layout(
                x="GPUs",
                height=60 + 42 * len(links),
                showlegend=False,
                yaxis={"autorange": "reversed"},
                xaxis={"rangemode": "tozero", "tickformat": ",d", **({"dtick": 1} if top <= 8 else {})},
                shapes=[line_at("x", num_gpus, COLOUR["here"], "dot")],
            ),
        ),
        alt="; ".join(f"{link.reason}: {format_number(link.gpus)} GPUs" for link in links),
    )


def _chain_title(decisive: ChainLink, num_gpus: int, *, level: bool) -> str:
    have, reason = counted(num_gpus, "GPU"), in_sentence(decisive.reason)
    if level:
        return f"{have} {'is' if num_gpus == 1 else 'are'} enough on every count"
    if decisive.gpus == num_gpus:
        return f"{have}, set by {reason}"
    if math.isinf(decisive.gpus):
        return f"{have}; no number of GPUs meets the {reason}"
    return f"{have}; {reason} needs {format_number(decisive.gpus)}"


def api_comparison(cost: CostPlan) -> Chart | None:
    """Monthly bill against requests per month, own GPUs in steps and hosted API; None where one of them is unknown."""
    own, each, now = cost.own_steps, cost.api_usd_per_request, cost.requests_per_month
    if own is None or not each or not now:
        return None
    even = cost.break_even_requests_per_month
    right = 2.2 * max(even or now, now)
    x, y = _staircase(own, right)
    estimate = " (estimate)" if cost.api_is_estimate else ""
    shapes = [line_at("x", now, COLOUR["here"], "solid")]
    marks: list[tuple[str, float, float, str]] = []
    if even:
        marks.append((f"break-even {format_number(even)}", even, even * each, COLOUR["neutral"]))
    return Chart(
        title=_api_title(cost, even),
        subtitle="USD a month against requests a month; own GPUs grow with the volume",
        figure=figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "own GPUs",
                    "x": x,
                    "y": y,
                    "line": {"color": COLOUR["own"], "width": 2.5},
                    "hovertemplate": "own %{y:,.0f} USD at %{x:,.3s} requests<extra></extra>",
                },
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"hosted API{estimate}",
                    "x": [0.0, right],
                    "y": [0.0, right * each],
                    "line": {"color": COLOUR["peer"], "width": 2.5, "dash": "dash"},
                    "hovertemplate": "API %{y:,.0f} USD at %{x:,.3s} requests<extra></extra>",
                },
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"this plan ({counted(cost.num_gpus, 'GPU')})",
                    "x": [now],
                    "y": [cost.usd_per_month],
                    "marker": {"color": COLOUR["here"], "size": 10},
                    "hovertemplate": "this plan: %{y:,.0f} USD<extra></extra>",
                },
            ],
            layout(
                x="requests a month",
                y="USD a month",
                height=340,
                yaxis={"rangemode": "tozero", "tickformat": ",.0f"},
                xaxis={"range": [0, right]},
                shapes=shapes,
                annotations=[label(text, at, high, colour, yanchor="top") for text, at, high, colour in marks],
            ),
        ),
        alt=f"Own GPUs cost {format_usd(cost.usd_per_month)} a month, the API "
        f"{format_usd(cost.api_usd_per_month or 0.0)}. {_api_title(cost, even)}",
    )


def _staircase(own: OwnSteps, right: float) -> tuple[list[float], list[float]]:
    """The corners of the own bill up to a volume; of very many steps, evenly chosen ones."""
    in_round = np.array(own.ends())
    rounds, rest = divmod(right, own.round_requests)
    last = int(rounds) * len(in_round) + int(np.searchsorted(in_round, rest)) - (0 if rest else 1)
    steps = np.unique(np.linspace(0, last, min(last + 1, MOST_STEPS)).round()).astype(np.int64)
    ends = steps // len(in_round) * own.round_requests + in_round[steps % len(in_round)]
    bill = own.usd_per_month(ends)
    starts = np.concatenate([[0.0], ends[:-1]])
    x, y = np.stack([starts, np.minimum(ends, right)], axis=1), np.stack([bill, bill], axis=1)
    return x.ravel().tolist(), y.ravel().tolist()


def _api_title(cost: CostPlan, even: float | None) -> str:
    cheaper = "a hosted API is cheaper" if cost.api_is_cheaper else "own GPUs are cheaper"
    here = f"At {format_number(cost.requests_per_month)} requests a month {cheaper}"
    if even is None:
        return "With this peak ÷ mean, the API stays cheaper at every volume"
    assert cost.break_even is not None
    return f"{here}; own GPUs begin to pay at {format_number(even)} ({counted(_gpus_at_even(cost), 'GPU')})"


def _gpus_at_even(cost: CostPlan) -> int:
    assert cost.break_even is not None
    assert cost.own_steps is not None
    return (cost.break_even.replicas or 0) * cost.own_steps.gpus_per_replica


def break_even_map(cost: CostPlan) -> Chart | None:
    """Own bill ÷ API bill over volume and utilisation; None where one of them is unknown."""
    own, each, now = cost.own_steps, cost.api_usd_per_request, cost.requests_per_month
    if own is None or not each or not now:
        return None
    month, most = (item.requests_per_s for item in cost.prices[:2])
    utilisation = min(1.0, month / most)
    low, high = now / 10, max(now * 30, 4 * own.requests_per_replica_month)
    volumes = np.geomspace(low, high, 90)
    shares = np.linspace(0.02, 1.0, 50)
    found = cost_map(own, each, volumes, shares)
    cheap = float((found.own_over_api < 1).mean())
    title = "The API is cheaper at every volume and utilisation drawn" if cheap == 0 else _map_title(found)
    return Chart(
        title=title,
        subtitle="Own bill ÷ API bill, by requests a month (log) and by mean use of what the targets allow",
        figure=figure(
            _map_traces(found, volumes, shares, (now, utilisation)),
            layout(
                x="requests a month",
                y="mean use of what the targets allow",
                height=340,
                showlegend=False,
                xaxis={**log_ticks(low, high, _short, most_decades=2.0), "range": [math.log10(low), math.log10(high)]},
                yaxis={**percent_ticks(), "range": [0, 1.02]},
            ),
        ),
        alt=f"{title}. This plan: {format_number(now)} requests a month at {format_percent(utilisation)} of what the "
        "targets allow",
    )


def _map_traces(found: CostMap, volumes: Floats, shares: Floats, plan: tuple[float, float]) -> list[dict[str, Any]]:
    """The map, the line where both bills are equal, and the plan at its volume and utilisation."""
    ratio = np.log10(np.maximum(found.own_over_api, 1e-6))
    return [
        {
            "type": "heatmap",
            "x": volumes,
            "y": shares,
            "z": ratio,
            "zmin": -1,
            "zmax": 1,
            "colorscale": [[0.0, COLOUR["own"]], [0.5, "rgba(134,143,156,0.12)"], [1.0, COLOUR["here"]]],
            "customdata": found.own_over_api,
            "text": [[share] * len(volumes) for share in percents(shares)],
            "hovertemplate": "%{x:,.3s} requests, %{text}: own ÷ API %{customdata:.2f}<extra></extra>",
            "colorbar": {
                "tickvals": [-1, 0, 1],
                "ticktext": ["own 10×", "equal", "API 10×"],
                "title": {"text": "cheaper", "side": "top"},
                "thickness": 12,
                "len": 0.9,
            },
        },
        {
            "type": "contour",
            "x": volumes,
            "y": shares,
            "z": ratio,
            "contours": {"start": 0, "end": 0, "size": 1, "coloring": "none"},
            "line": {"color": COLOUR["neutral"], "width": 2},
            "showscale": False,
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [plan[0]],
            "y": [plan[1]],
            "text": ["you"],
            "textposition": "top center",
            "marker": {"color": COLOUR["here"], "size": 11, "line": {"color": "white", "width": 1.5}},
            "hovertemplate": "this plan<extra></extra>",
        },
    ]


def _short(count: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{format_number(count / size)}{letter}"
    return format_number(count)


def _map_title(found: CostMap) -> str:
    least = found.utilisation[np.flatnonzero((found.own_over_api < 1).any(axis=1))[0]]
    return f"Own GPUs can be cheaper only above {format_percent(least)} use, and not at small volumes"


def cost_against_utilisation(
    usd_per_hour: float, capacity_tokens_per_s: float, used_fraction: float, api_usd_per_mtok: float | None
) -> Chart:
    """USD per million tokens against the mean share of the fleet's throughput in use."""
    share = np.linspace(0.02, 1.0, 80)
    price = usd_per_hour / 3600 / (capacity_tokens_per_s * share) * 1e6
    here = usd_per_hour / 3600 / (capacity_tokens_per_s * max(used_fraction, 1e-12)) * 1e6
    shapes = [line_at("x", used_fraction, COLOUR["here"], "solid")]
    notes = [
        label(
            f"you: {format_percent(used_fraction)}, {format_usd(here)}",
            used_fraction,
            0.97,
            COLOUR["here"],
            yref="paper",
            yanchor="top",
            xanchor="right" if used_fraction > 0.5 else "left",
        )
    ]
    if api_usd_per_mtok:
        shapes.append(line_at("y", api_usd_per_mtok, COLOUR["peer"]))
        notes.append(
            label(
                f"hosted API {format_usd(api_usd_per_mtok)}",
                1.0,
                math.log10(api_usd_per_mtok),
                COLOUR["peer"],
                xanchor="right",
            )
        )
    return Chart(
        title=f"At full use a token would be {format_number(here / float(price[-1]), 2)}× cheaper than now",
        subtitle="USD per million tokens (log) against the mean share of the fleet's throughput in use",
        figure=figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": share,
                    "y": price,
                    "line": {"color": COLOUR["own"], "width": 2.5},
                    "customdata": percents(share),
                    "hovertemplate": "%{y:.3g} USD at %{customdata}<extra></extra>",
                    "showlegend": False,
                }
            ],
            layout(
                x="mean share of the fleet's throughput in use",
                y="USD per million tokens",
                height=320,
                xaxis={**percent_ticks(), "range": [0, 1.02]},
                yaxis=log_ticks(float(price[-1]), float(price[0]), format_number),
                shapes=shapes,
                annotations=notes,
            ),
        ),
        alt=f"The price of a million tokens falls with utilisation; now {format_usd(here)} at "
        f"{format_percent(used_fraction)}",
    )
