"""Declarations of Scenario fields: link name, unit, bounds and help in one place."""

from __future__ import annotations

import dataclasses
from typing import Any

from planner.errors import InvalidInput, require_choice, require_int, require_number

MAX_TEXT = 120
MAX_CONFIG_TEXT = 20_000


def setting(
    default: Any,
    key: str,
    label: str,
    *,
    unit: str = "",
    group: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    optional: bool = False,
    help: str = "",
) -> Any:
    """One field of the Scenario with everything that form, link and errors need."""
    kind = "text" if isinstance(default, str) else "flag" if isinstance(default, bool) else "number"
    if isinstance(default, int) and not isinstance(default, bool):
        kind = "count"
    meta = {
        "key": key,
        "label": label,
        "unit": unit,
        "group": group,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "optional": optional,
        "help": help,
        "kind": kind,
    }
    return dataclasses.field(default=default, metadata=meta)


def optional_setting(key: str, label: str, *, kind: str, default: Any = None, **rest: Any) -> Any:
    """A field that may stay empty (None): left to the engine or the catalog, or no target."""
    declared = setting(default, key, label, optional=True, **rest)
    declared.metadata = {**declared.metadata, "kind": kind}
    return declared


def check_setting(item: dataclasses.Field[Any], value: Any) -> None:
    """Check one value against its field's declaration.

    Raises
    ------
    InvalidInput
        When the type is wrong or the value is out of bounds.
    """
    meta = item.metadata
    if value is None and meta["optional"]:
        return
    if meta["choices"] and not isinstance(value, str):
        raise InvalidInput(item.name, value, "one of " + ", ".join(meta["choices"]))
    if meta["kind"] == "text":
        limit = MAX_CONFIG_TEXT if item.name == "model_config" else MAX_TEXT
        if not isinstance(value, str) or len(value) > limit or not _is_printable(value):
            raise InvalidInput(item.name, value, f"text of at most {limit:,} printable characters")
        if meta["choices"]:
            require_choice(item.name, value, meta["choices"])
    elif meta["kind"] == "flag":
        if not isinstance(value, bool):
            raise InvalidInput(item.name, value, "true or false")
    elif meta["kind"] == "count":
        require_int(item.name, value, at_least=int(meta["minimum"]), at_most=int(meta["maximum"]))
    else:
        require_number(item.name, value, at_least=meta["minimum"], at_most=meta["maximum"])


def _is_printable(text: str) -> bool:
    # half of a surrogate pair, which JSON can carry, could be written to no link and no file
    return text.isprintable() or not any((ord(c) < 32 and c not in "\n\t") or 0xD800 <= ord(c) < 0xE000 for c in text)
