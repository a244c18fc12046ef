"""A saved plan planned again: whether its verdict still stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.answer.outcome import Plan
from planner.errors import InvalidInput
from planner.units import format_usd

#: a bill that moves by less is no other decision
SAME_COST = 0.005


def changed_verdict(saved: Mapping[str, Any], again: Plan) -> tuple[str, ...]:
    """What the verdict of a saved plan says otherwise today, a sentence each.

    Parameters
    ----------
    saved : mapping
        A plan as `plan --json` writes it.
    again : Plan
        The same scenario, planned now.

    Returns
    -------
    tuple of str
        Empty where it still starts, meets or misses its targets as before, and takes as many GPUs at the same cost
        (within 0.5 %).

    Raises
    ------
    InvalidInput
        When `saved` holds no verdict.
    """
    verdict = ("fits", "slo_met", "num_gpus")
    missing = [name for name in verdict if name not in saved]
    if missing:
        raise InvalidInput("PLAN.json", f"no {missing[0]}", "a plan as `python -m planner plan --json` writes it")
    found: list[str] = []
    if bool(saved["fits"]) != again.fits:
        found.append("The engine starts now." if again.fits else f"The engine no longer starts: {again.memory.refusal}")
    if bool(saved["slo_met"]) != again.slo_met:
        found.append("The targets are met now." if again.slo_met else "The targets are no longer met.")
    if saved["num_gpus"] != again.num_gpus:
        found.append(f"GPUs: {saved['num_gpus']} before, {again.num_gpus} now.")
    before = (saved.get("cost") or {}).get("usd_per_month")
    now = again.cost.usd_per_month if again.cost is not None else None
    if before and now and not math.isclose(before, now, rel_tol=SAME_COST):
        found.append(f"Cost a month: {format_usd(before)} before, {format_usd(now)} now.")
    return tuple(found)
