"""Up to four plans side by side: headline figures, differences, and the inputs that differ. No streamlit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.answer import Plan, run_at_once, serving_replicas
from planner.charts import Chart, in_sentence, plan_bars
from planner.dashboard.markdown import escaped
from planner.dashboard.plan_tables import Table, table
from planner.dashboard.tiles import busy_share
from planner.dashboard.words import field_label, field_value
from planner.scenario import Scenario, differing_fields, fields_by_name
from planner.units import GIB, format_duration, format_number, format_percent, format_usd

DRAWN = ("Cost per month", "GPUs", "TTFT", "TPOT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One headline figure, NaN where the plan has none. `less_is_better` is None where less is neither.

    `error` is our median error of this figure as a share of it: 0 where it is exact, NaN where it is unknown. A figure
    that `is_share` is compared in points.
    """

    label: str
    value: float
    text: str
    less_is_better: bool | None = None
    error: float = 0.0
    is_share: bool = False


def figures(plan: Plan) -> tuple[Figure, ...]:
    """The figures of a comparison, always the same ones in the same order."""
    m, cost, curve, memory = plan.metrics, plan.cost, plan.curve, plan.memory
    nan, q = math.nan, plan.scenario.target_quantile
    ttft, tpot = (m.ttft_s.at(q), m.tpot_s.at(q)) if m is not None else (nan, nan)
    meet = m.slo_attainment if m is not None else nan
    holds, said = nan, "—"
    if curve is not None and plan.scenario.is_open_loop:  # users who wait queue less than the curve's Poisson arrivals
        holds, said = curve.slo_rate_rps * serving_replicas(plan), curve.slo_rate_in_words(serving_replicas(plan))
    month, per_token = (cost.usd_per_month, cost.usd_per_million_tokens) if cost is not None else (nan, nan)
    gpus = float(plan.num_gpus) if plan.fits else nan
    busy, running = (busy_share(plan), run_at_once(plan)) if plan.fits else (nan, nan)
    weights, pool = memory.weights_bytes / GIB, max(0.0, memory.kv_pool_bytes) / GIB
    error = {name: band.median_fraction for name, band in plan.bands.items()}
    rows: list[tuple[str, float, str, bool | None, float]] = [
        ("GPUs", gpus, format_number(gpus), True, 0.0),
        (f"p{q * 100:g} TTFT", ttft, format_duration(ttft), True, error["ttft"]),
        (f"p{q * 100:g} TPOT", tpot, format_duration(tpot), True, error["tpot"]),
        ("Meet every target", meet, format_percent(meet), False, 0.0),
        ("Meets the targets up to", holds, said, False, error["throughput"]),
        ("Busy at peak", busy, format_percent(busy), None, 0.0),
        ("Cost per month", month, format_usd(month), True, 0.0),
        ("Cost per million tokens", per_token, format_usd(per_token), True, 0.0),
        ("Weights on each GPU", weights, f"{weights:,.2f} GiB", True, error["weights"]),
        ("KV pool on each GPU", pool, f"{pool:,.2f} GiB", False, error["kv_pool"]),
        ("KV tokens per replica", float(memory.kv_tokens), f"{memory.kv_tokens:,}", False, error["kv_pool"]),
        ("Sequences at once, per replica", running, format_number(running), False, error["kv_pool"]),
    ]
    return tuple(
        Figure(
            label=label,
            value=value,
            text=text if math.isfinite(value) else "—",
            less_is_better=less,
            error=off,
            is_share=label in ("Meet every target", "Busy at peak"),
        )
        for label, value, text, less, off in rows
    )


def difference(ours: Figure, other: Figure) -> str:
    """The other plan's figure relative to ours, and whether that is better; "within error" where we cannot tell."""
    a, b = ours.value, other.value
    if not (math.isfinite(a) and math.isfinite(b)):
        return ""
    if math.isclose(a, b, rel_tol=5e-4, abs_tol=1e-12) or (ours.text and ours.text == other.text):
        return "same"
    sign = "+" if b > a else "−"
    if ours.is_share:
        points = 100 * abs(b - a)
        share = f"{sign}{format_number(points, 2 if points >= 1 else 1)} points"
    elif a > 0 and b / a >= 2:
        share = f"{format_number(b / a, 2)}×"
    else:
        share = f"{sign}{format_percent(abs(b / a - 1))}" if a else "more"
    if _within_error(ours, other):
        return f"{share}, within error"
    if ours.less_is_better is None:
        return share
    return share + (", better" if (b < a) is ours.less_is_better else ", worse")


def _within_error(ours: Figure, other: Figure) -> bool:
    """Whether the figures differ by less than the larger of their median errors."""
    error = max(ours.error, other.error)  # NaN: not measured, so nothing is known to be within it
    if not error > 0 or ours.value <= 0 or other.value <= 0:
        return False
    return abs(math.log(other.value / ours.value)) <= math.log1p(error)


def names_of(plans: Sequence[Plan]) -> list[str]:
    """A name for each plan: its title, or its place; no two alike."""
    found: list[str] = []
    for place, plan in enumerate(plans):
        name = plan.scenario.title.strip() or ("This plan" if place == 0 else f"Plan {place + 1}")
        found.append(name if name not in found else f"{name} ({place + 1})")
    return found


def figure_table(plans: Sequence[Plan]) -> Table:
    """The figures of all plans; behind those of the others, how they differ from the first."""
    names = names_of(plans)
    rows = [("Starts", *("yes" if plan.fits else "no" for plan in plans))]
    for first, *others in zip(*(figures(plan) for plan in plans), strict=True):
        cells = [item.text + (f" ({said})" if (said := difference(first, item)) else "") for item in others]
        rows.append((first.label, first.text, *cells))
    return table(("Figure", *(escaped(name, every=True) for name in names)), rows)


def input_table(plans: Sequence[Plan]) -> Table:
    """The inputs that differ, in the words of the form."""
    scenarios = [plan.scenario for plan in plans]
    rows = [
        (field_label(name), *(_shown(name, getattr(item, name)) for item in scenarios))
        for name in differing_fields(scenarios)
    ]
    return table(("Input", *(escaped(name, every=True) for name in names_of(plans))), rows)


def _shown(name: str, value: Any) -> str:
    text = field_value(name, value)
    return text if len(text) <= 60 else text[:59] + "…"


def asks_another_question(scenarios: Sequence[Scenario]) -> bool:
    """Whether traffic or targets differ, so that the figures are not like for like."""
    known = fields_by_name()
    return any(known[name].metadata["group"] in ("traffic", "targets") for name in differing_fields(scenarios))


def sentence(plans: Sequence[Plan]) -> str:
    """The result of the comparison in one sentence."""
    names = names_of(plans)
    if not differing_fields([plan.scenario for plan in plans]):
        return "Both are the same plan" if len(plans) == 2 else "All are the same plan"
    starting = [name for name, plan in zip(names, plans, strict=True) if plan.fits]
    if not starting:
        return "None of these plans starts"
    if len(starting) == 1:
        return f"Only {_said(starting[0])} starts"
    good = [(name, plan) for name, plan in zip(names, plans, strict=True) if plan.fits and plan.slo_met]
    if len(good) == 1:
        who = f"Only {_said(good[0][0])} meets the targets"
    elif good:
        all_of = "Both plans" if len(plans) == 2 else f"All {len(plans)} plans"
        who = f"{all_of if len(good) == len(plans) else f'{len(good)} of {len(plans)} plans'} meet the targets"
    else:
        who = "No plan meets the targets"
    pool = good if len(good) > 1 else [(name, plan) for name, plan in zip(names, plans, strict=True) if plan.fits]
    return f"{who}; {_money([(name, plan.cost.usd_per_month) for name, plan in pool if plan.cost is not None])}"


def _said(name: str) -> str:
    return "this plan" if name == "This plan" else name


def _money(bills: list[tuple[str, float]]) -> str:
    (name, least), *_, (_, most) = sorted(bills, key=lambda bill: bill[1])
    if math.isclose(least, most, rel_tol=5e-4, abs_tol=0.005):
        return f"{'both' if len(bills) == 2 else 'they'} cost {format_usd(least)} a month"
    next_one = sorted(bill for _, bill in bills)[1]
    if math.isclose(least, next_one, rel_tol=5e-4, abs_tol=0.005):
        return f"the cheapest cost {format_usd(least)} a month"
    return (
        f"{_said(name)} costs {format_usd(next_one - least)} less a month ({format_usd(least)} against "
        f"{format_usd(next_one)})"
    )


def charts(plans: Sequence[Plan]) -> list[Chart]:
    """Bars of money, GPUs and latencies, a row for each plan; where we know our error it is drawn."""
    found = []
    for items in zip(*(figures(plan) for plan in plans), strict=True):
        label = items[0].label
        if label.split()[-1] not in DRAWN and label not in DRAWN:
            continue
        if any(math.isfinite(item.value) for item in items):
            found.append(
                plan_bars(
                    _finding(label, items, names_of(plans)),
                    f"{label}" + ("; the line spans our median error" if items[0].error > 0 else ""),
                    names_of(plans),
                    [item.value for item in items],
                    [item.text for item in items],
                    [item.error for item in items],
                )
            )
    return found


def _finding(label: str, items: tuple[Figure, ...], names: list[str]) -> str:
    known = [(item, name) for item, name in zip(items, names, strict=True) if math.isfinite(item.value)]
    best = min(known, key=lambda pair: pair[0].value)
    near = [name for item, name in known if item is best[0] or "better" not in difference(item, best[0])]
    if len(near) == len(known) > 1:
        same = len({item.text for item, _ in known}) == 1
        return f"{label}: {best[0].text} in each" if same else f"{label}: no difference beyond our error"
    said = [_said(name) for name in near]
    who = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    alike = {item.text for item, name in known if name in near} == {best[0].text}
    what = "Fewest GPUs" if label == "GPUs" else f"Lowest {in_sentence(label)}"
    return f"{what}: {best[0].text}, {who}" + ("" if alike else ", alike within our error")
