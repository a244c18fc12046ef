"""What the tools answer: the JSON of plans without its long tables, rows of a search, errors."""

from __future__ import annotations

from typing import Any

from planner.answer import Candidate, Plan, candidate_of, linked, plain, plan_dict
from planner.errors import PlannerError
from planner.scenario import Scenario, fields_by_name, message

#: parts of `plan --json` that are long: whole ones, and entries of those that stay
LEFT_OUT = ("policies", "scenario", "gpu", "engine")
LEFT_OUT_OF = {"memory": ("formulas", "weights_by_group"), "curve": ("points",)}
#: of each band and each latency: what the page draws
DRAWN = ("levels", "ratios", "quantiles")


def plan_answer(done: Plan) -> dict[str, Any]:
    """A plan as `plan --json` writes it, without its long tables; `scenario` has what differs from the defaults."""
    body = {name: value for name, value in plan_dict(done).items() if name not in LEFT_OUT}
    first = {name: body.pop(name) for name in ("headline", "verdict")}
    for name, dropped in LEFT_OUT_OF.items():
        if body[name] is not None:
            body[name] = {key: value for key, value in body[name].items() if key not in dropped}
    return first | _without_drawn(body) | {"scenario": changed(done.scenario)}


def _without_drawn(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_drawn(item) for name, item in value.items() if name not in DRAWN}
    return [_without_drawn(item) for item in value] if isinstance(value, list) else value


def changed(scenario: Scenario) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    values = {name: getattr(scenario, name) for name in fields_by_name()}
    return {name: value for name, value in values.items() if value != fields_by_name()[name].default}


def compared_plan(name: str, done: Plan) -> dict[str, Any]:
    """The figures of one plan among others."""
    evidence = done.verdict.evidence if done.verdict is not None else ""
    row = candidate_answer(candidate_of(done, evidence=evidence))
    return {"name": name, "headline": done.headline, "kv_tokens": done.memory.kv_tokens, **row}


def candidate_answer(row: Candidate) -> dict[str, Any]:
    """One row of a search, with the query string of its plan."""
    scenario = row.scenario
    return {
        "model": scenario.model,
        "gpu": scenario.gpu,
        "gpus_per_replica": scenario.parallelism.gpus_per_replica,
        "engine": scenario.engine,
        "weight_dtype": scenario.weight_dtype,
        "kv_cache_dtype": scenario.kv_cache_dtype,
        **linked(row),
    }


def refusal(error: PlannerError) -> dict[str, Any]:
    """An error for a program: the sentence, the field, its value, what would be valid, what would help."""
    return {
        "error": message(error),
        "field": getattr(error, "field", None),
        "value": _shown(getattr(error, "value", None)),
        "valid": getattr(error, "valid", None),
        "remedies": list(getattr(error, "remedies", ())),
    }


def _shown(value: Any) -> Any:
    simple = plain(value) if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
    return simple[:200] if isinstance(simple, str) else simple
