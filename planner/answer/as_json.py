"""A Plan, or any value object, as plain types for JSON: the fields under their own names, unrounded."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from planner.answer.outcome import Plan
from planner.scenario import to_query
from planner.service import ServingMetrics


def plan_dict(done: Plan) -> dict[str, Any]:
    """A plan as plain types for JSON: units in the names, without the per-request arrays."""
    body = {
        item.name: plain(getattr(done, item.name))
        for item in dataclasses.fields(done)
        if item.name not in ("result", "step_time", "policies", "model")
    }
    body["model"] = {
        "name": done.model.name,
        "num_parameters": done.model.num_parameters,
        "num_active_parameters": done.model.num_active_parameters,
        "num_layers": done.model.num_layers,
    }
    body["policies"] = [
        {item.name: plain(getattr(outcome, item.name)) for item in dataclasses.fields(outcome) if item.name != "result"}
        for outcome in done.policies
    ]
    body["link"] = to_query(done.scenario)
    return body


def linked(row: Any) -> dict[str, Any]:
    """A row with a scenario as plain types for JSON, with the link of its plan in place of the scenario."""
    body = {item.name: plain(getattr(row, item.name)) for item in dataclasses.fields(row) if item.name != "scenario"}
    return body | {"link": to_query(row.scenario)}


def plain(value: Any) -> Any:
    """Value objects as plain types for JSON; NaN and infinity become null."""
    if isinstance(value, ServingMetrics) or dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
