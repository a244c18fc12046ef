"""What the author of a link saw, so that whoever opens it later learns what has changed. No streamlit.

A shared link carries its date and four figures of the plan. Facts that changed since (prices, GPUs, kernels, rules of
an engine) change the figures: the page then says which, and by how much.
"""

from __future__ import annotations

import math
from datetime import date

from planner.answer import Plan
from planner.units import counted, format_duration, format_usd

NOTICED = 0.005  # smaller changes are not worth a word
BETWEEN = "~"
NAMES = ("GPUs", "price of a GPU-hour", "a month", "TTFT", "TPOT")
WORDS = (lambda value: f"{value:,.0f}", format_usd, format_usd, format_duration, format_duration)


def seen_text(plan: Plan, today: date) -> str:
    """The date and the figures, as a link holds them; empty where nothing is served."""
    cost, metrics = plan.cost, plan.metrics
    if cost is None or metrics is None:
        return ""
    q = plan.scenario.target_quantile
    figures = (plan.num_gpus, cost.usd_per_gpu_hour, cost.usd_per_month, metrics.ttft_s.at(q), metrics.tpot_s.at(q))
    return BETWEEN.join((today.isoformat(), *(f"{value:.4g}" for value in figures)))


def changed_since(text: str, plan: Plan) -> str:
    """What has changed since the link was made, in a sentence; empty where nothing has, or the text tells nothing."""
    parts = text.split(BETWEEN)
    now = seen_text(plan, date.today()).split(BETWEEN)
    if len(parts) != 6:
        return ""
    try:
        day, values = date.fromisoformat(parts[0]), [float(part) for part in parts[1:]]
    except ValueError:
        return ""
    when = f"When this link was made, on {day.isoformat()}"
    if len(now) != 6:
        return f"{when}, the plan was {counted(int(min(max(values[0], 0), 1e9)), 'GPU')}; today nothing is served."
    said = []
    for name, before, after, words in zip(NAMES, values, (float(part) for part in now[1:]), WORDS, strict=True):
        if math.isfinite(before) and abs(before - after) > NOTICED * max(abs(before), abs(after)):
            said.append(f"{name} {words(before)}, now {words(after)}")
    return f"{when}, some figures were others: {'; '.join(said)}." if said else ""
