"""Cost charts: why this many GPUs, the bill beside a hosted API, and price against utilisation."""

from __future__ import annotations

import math

import numpy as np

from planner.answer import ChainLink
from planner.charts.policies import in_sentence
from planner.charts.style import COLOUR, Chart, bars, figure, label, layout, line_at, log_ticks
from planner.cost import CostPlan
from planner.units import counted, format_number, format_usd


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
    """Monthly bill against requests per month, own GPUs and hosted API; None without an API price."""
    if not cost.api_usd_per_month or not cost.requests_per_month:
        return None
    per_request = cost.api_usd_per_month / cost.requests_per_month
    even = cost.break_even_requests_per_month or cost.requests_per_month
    right = 2.2 * max(even, cost.requests_per_month)
    x = np.linspace(0, right, 60)
    cheaper = "a hosted API is cheaper" if cost.api_is_cheaper else "own GPUs are cheaper"
    return Chart(
        title=f"At {format_number(cost.requests_per_month)} requests a month {cheaper}; "
        f"break-even is at {format_number(even)}",
        subtitle="USD a month against requests a month, with the number of GPUs fixed",
        figure=figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"own GPUs ({cost.num_gpus})",
                    "x": x,
                    "y": np.full_like(x, cost.usd_per_month),
                    "line": {"color": COLOUR["own"], "width": 2.5},
                    "hovertemplate": "own %{y:,.0f} USD<extra></extra>",
                },
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "hosted API",
                    "x": x,
                    "y": x * per_request,
                    "line": {"color": COLOUR["peer"], "width": 2.5, "dash": "dash"},
                    "hovertemplate": "API %{y:,.0f} USD at %{x:,.3s} requests<extra></extra>",
                },
            ],
            layout(
                x="requests a month",
                y="USD a month",
                height=320,
                yaxis={"rangemode": "tozero", "tickformat": ",.0f"},
                xaxis={"range": [0, right]},
                shapes=[line_at("x", cost.requests_per_month, COLOUR["here"], "solid")],
                annotations=[
                    label(
                        "you",
                        cost.requests_per_month,
                        0.98,
                        COLOUR["here"],
                        yref="paper",
                        yanchor="top",
                        xanchor="right" if cost.requests_per_month > right / 2 else "left",
                    ),
                    label(
                        f"break-even {format_number(even)}",
                        even,
                        cost.usd_per_month,
                        COLOUR["neutral"],
                        xanchor="left",  # below the flat line and right of the rising one there is room
                        yanchor="top",
                    ),
                ],
            ),
        ),
        alt=f"Own GPUs cost {format_usd(cost.usd_per_month)} a month, the API "
        f"{format_usd(cost.api_usd_per_month)}; break-even is at {format_number(even)} requests a month",
    )


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
            f"you: {used_fraction:.0%}, {format_usd(here)}",
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
                    "hovertemplate": "%{y:.3g} USD at %{x:.0%}<extra></extra>",
                    "showlegend": False,
                }
            ],
            layout(
                x="mean share of the fleet's throughput in use",
                y="USD per million tokens",
                height=320,
                xaxis={"tickformat": ".0%", "range": [0, 1.02]},
                yaxis=log_ticks(float(price[-1]), float(price[0]), format_number),
                shapes=shapes,
                annotations=notes,
            ),
        ),
        alt=f"The price of a million tokens falls with utilisation; now {format_usd(here)} at {used_fraction:.0%}",
    )
