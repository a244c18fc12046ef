"""Two plans side by side: headline figures, differences, and the inputs that differ. No streamlit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planner.answer import Plan, run_at_once, serving_replicas
from planner.dashboard.headlines import Table, busy_share, table
from planner.dashboard.words import field_label, field_value
from planner.scenario import Scenario, fields_by_name
from planner.units import GIB, format_duration, format_number, format_percent, format_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One headline figure, NaN where the plan has none. `less_is_better` is None where less is neither."""

    label: str
    value: float
    text: str
    less_is_better: bool | None = None


def figures(plan: Plan) -> tuple[Figure, ...]:
    """The figures of a comparison, always the same ones in the same order."""
    m, cost, curve, memory = plan.metrics, plan.cost, plan.curve, plan.memory
    nan, q = math.nan, plan.scenario.target_quantile
    ttft, tpot = (m.ttft_s.at(q), m.tpot_s.at(q)) if m is not None else (nan, nan)
    meet = m.slo_attainment if m is not None else nan
    holds = curve.slo_rate_rps * serving_replicas(plan) if curve is not None else nan
    month, per_token = (cost.usd_per_month, cost.usd_per_million_tokens) if cost is not None else (nan, nan)
    gpus = float(plan.num_gpus) if plan.fits else nan
    busy, running = (busy_share(plan), run_at_once(plan)) if plan.fits else (nan, nan)
    weights, pool = memory.weights_bytes / GIB, max(0.0, memory.kv_pool_bytes) / GIB
    rows: list[tuple[str, float, str, bool | None]] = [
        ("GPUs", gpus, format_number(gpus), True),
        (f"p{q * 100:g} TTFT", ttft, format_duration(ttft), True),
        (f"p{q * 100:g} TPOT", tpot, format_duration(tpot), True),
        ("Meet every target", meet, format_percent(meet), False),
        ("Meets the targets up to", holds, f"{format_number(holds)} req/s", False),
        ("Busy at peak", busy, format_percent(busy), None),
        ("Cost per month", month, format_usd(month), True),
        ("Cost per million tokens", per_token, format_usd(per_token), True),
        ("Weights on each GPU", weights, f"{weights:,.2f} GiB", True),
        ("KV pool on each GPU", pool, f"{pool:,.2f} GiB", False),
        ("KV tokens per replica", float(memory.kv_tokens), f"{memory.kv_tokens:,}", False),
        ("Sequences at once, per replica", running, format_number(running), False),
    ]
    return tuple(
        Figure(label=label, value=value, text=text if math.isfinite(value) else "—", less_is_better=less)
        for label, value, text, less in rows
    )


def difference(ours: Figure, other: Figure) -> str:
    """The other plan's figure relative to ours, and whether that is better."""
    a, b = ours.value, other.value
    if not (math.isfinite(a) and math.isfinite(b)):
        return "—"
    if math.isclose(a, b, rel_tol=5e-4, abs_tol=1e-12) or (ours.text and ours.text == other.text):
        return "same"
    share = "" if a == 0 else f"{'+' if b > a else '−'}{format_percent(abs(b / a - 1))}"
    if a > 0 and b / a >= 2:
        share = f"{format_number(b / a, 2)}×"
    verdict = ""
    if ours.less_is_better is not None:
        verdict = ", better" if (b < a) is ours.less_is_better else ", worse"
    return (share or "more") + verdict


def figure_table(ours: Plan, other: Plan) -> Table:
    """Both plans' figures, and the difference."""
    rows = [(a.label, a.text, b.text, difference(a, b)) for a, b in zip(figures(ours), figures(other), strict=True)]
    rows.insert(0, ("Starts", "yes" if ours.fits else "no", "yes" if other.fits else "no", ""))
    return table(("Figure", "This plan", "The other", "The other against this"), rows)


def differing(ours: Scenario, other: Scenario) -> list[str]:
    """Names of the inputs that differ, in form order; the plan's name does not count."""
    return [name for name in fields_by_name() if name != "title" and getattr(ours, name) != getattr(other, name)]


def input_table(ours: Scenario, other: Scenario) -> Table:
    """The inputs that differ, in the words of the form."""
    rows = [
        (field_label(name), _shown(name, getattr(ours, name)), _shown(name, getattr(other, name)))
        for name in differing(ours, other)
    ]
    return table(("Input", "This plan", "The other"), rows)


def _shown(name: str, value: Any) -> str:
    text = field_value(name, value)
    return text if len(text) <= 60 else text[:59] + "…"


def asks_another_question(ours: Scenario, other: Scenario) -> bool:
    """Whether traffic or targets differ, so that the figures are not like for like."""
    known = fields_by_name()
    return any(known[name].metadata["group"] in ("traffic", "targets") for name in differing(ours, other))


def sentence(ours: Plan, other: Plan) -> str:
    """The result of the comparison in one sentence."""
    if not ours.fits and not other.fits:
        return "Neither plan starts"
    if not ours.fits or not other.fits:
        return f"Only {'this plan' if ours.fits else 'the other plan'} starts"
    if not differing(ours.scenario, other.scenario):
        return "Both links open the same plan"
    assert ours.cost is not None
    assert other.cost is not None
    if ours.slo_met != other.slo_met:
        which = "this plan" if ours.slo_met else "the other plan"
        return f"Only {which} meets the targets; {_money(ours.cost.usd_per_month, other.cost.usd_per_month)}"
    both = "Both plans meet the targets" if ours.slo_met else "Neither plan meets the targets"
    return f"{both}; {_money(ours.cost.usd_per_month, other.cost.usd_per_month)}"


def _money(ours: float, other: float) -> str:
    if math.isclose(ours, other, rel_tol=5e-4, abs_tol=0.005):
        return f"both cost {format_usd(ours)} a month"
    cheaper = "this plan" if ours < other else "the other plan"
    return (
        f"{cheaper} costs {format_usd(abs(ours - other))} less a month ({format_usd(ours)} against {format_usd(other)})"
    )
