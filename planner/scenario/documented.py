"""The fields of a Scenario as a table, so that a person or a program can write a link or a JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario

KINDS = {"text": "text", "flag": "true or false", "count": "a whole number", "number": "a number"}


def field_rows() -> list[dict[str, Any]]:
    """One row for each field: name (of JSON), link name, label, unit, default, what is valid, help.

    Returns
    -------
    list of dict
        In the order of the form. A link writes flags as 1 and 0 and leaves out what has its default.
    """
    rows = []
    for name, item in fields_by_name().items():
        meta = item.metadata
        rows.append(
            {
                "name": name,
                "link": meta["key"],
                "label": meta["label"],
                "unit": meta["unit"],
                "default": item.default,
                "valid": _valid(meta),
                "group": meta["group"],
                "help": meta["help"],
            }
        )
    return rows


def differing_fields(scenarios: Sequence[Scenario]) -> list[str]:
    """Names of the inputs that differ, in form order; the plan's name does not count."""
    return [
        name
        for name in fields_by_name()
        if name != "title" and any(getattr(item, name) != getattr(scenarios[0], name) for item in scenarios[1:])
    ]


def _valid(meta: Any) -> str:
    if meta["choices"]:
        return "one of " + ", ".join(choice or "(empty)" for choice in meta["choices"])
    text = KINDS[meta["kind"]]
    if meta["minimum"] is not None:
        text += f" from {meta['minimum']:,g} to {meta['maximum']:,g}"
    return f"{text}, or empty" if meta["optional"] else text
