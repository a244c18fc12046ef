"""JSON schemas of what the tools take, made from the declared fields of a Scenario."""

from __future__ import annotations

from typing import Any

from planner.catalog import engine_names
from planner.scenario import fields_by_name, preset_names

TYPES = {"text": "string", "flag": "boolean", "count": "integer", "number": "number"}
Schema = dict[str, Any]


def scenario_fields() -> dict[str, Schema]:
    """A schema for each field of a Scenario under its name in JSON, as `python -m planner fields` lists them."""
    found = {}
    for name, item in fields_by_name().items():
        meta = item.metadata
        kind = TYPES[meta["kind"]]
        schema: Schema = {"type": [kind, "null"] if meta["optional"] else kind, "default": item.default}
        if meta["choices"]:
            schema["enum"] = list(meta["choices"])
        if meta["minimum"] is not None:
            schema |= {"minimum": meta["minimum"], "maximum": meta["maximum"]}
        schema["description"] = f"{meta['label']} [{meta['unit']}]" if meta["unit"] else meta["label"]
        found[name] = schema
    return found


def source(properties: dict[str, Schema] | None = None) -> dict[str, Schema]:
    """The arguments that describe one scenario; `properties` None: its fields are those of the tool `plan`."""
    fields: Schema = {"type": "object", "description": "Fields of the scenario; what is not named keeps its default."}
    if properties is None:
        fields["description"] += " The fields are those of the tool plan."
    else:
        fields |= {"properties": properties, "additionalProperties": False}
    return {
        "scenario": fields,
        "link": text("A link of the dashboard, or its query string, to start from."),
        "preset": {"type": "string", "enum": list(preset_names()), "description": "A named scenario to start from."},
    }


def text(description: str) -> Schema:
    """A string."""
    return {"type": "string", "description": description}


def count(description: str, *, default: int, at_most: int, at_least: int = 1) -> Schema:
    """A whole number within bounds."""
    bounds = {"minimum": at_least, "maximum": at_most}
    return {"type": "integer", "default": default, **bounds, "description": description}


def engines() -> Schema:
    """A list of engine presets."""
    items = {"type": "string", "enum": list(engine_names())}
    return {
        "type": "array",
        "items": items,
        "minItems": 1,
        "description": "Engines to try; vLLM and llama-server without it.",
    }


def arguments(properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """The schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }
