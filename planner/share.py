"""Scenario ↔ link and JSON: readable, versioned, loss-free, and never raised by a hostile link.

A link carries only what differs from the defaults, under short names that never change meaning:
a name that is retired stays in `RENAMED`, and `v` tells which defaults the link was written
against (`PAST_DEFAULTS`), so that a link keeps opening the plan that its author saw.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from planner.errors import InvalidInput
from planner.scenario import Scenario, fields_by_name

VERSION = 1
RENAMED: dict[str, str] = {}  # retired link name -> today's link name
PAST_DEFAULTS: dict[int, dict[str, Any]] = {}  # version -> field -> default of that version, where it changed
MAX_LINK_CHARACTERS = 40_000
MAX_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A scenario read from outside, and what could not be used of it.

    `problems` are sentences for the reader; the rest of the scenario was loaded.
    """

    scenario: Scenario
    problems: tuple[str, ...] = ()


def to_params(scenario: Scenario) -> dict[str, str]:
    """Write a scenario as link parameters: the version, and each field that differs from its default.

    Parameters
    ----------
    scenario : Scenario
        What to write.

    Returns
    -------
    dict of str to str
        Short name → text, in the order of the fields.
    """
    params = {"v": str(VERSION)}
    for name, item in fields_by_name().items():
        value = getattr(scenario, name)
        if value != item.default:
            params[item.metadata["key"]] = _write(value)
    return params


def to_query(scenario: Scenario) -> str:
    """Write a scenario as a query string without the question mark."""
    return urlencode(to_params(scenario))


def to_json(scenario: Scenario) -> str:
    """Write every field of a scenario as JSON, defaults included."""
    body = {"version": VERSION, **{name: getattr(scenario, name) for name in fields_by_name()}}
    return json.dumps(body, indent=2)


def from_params(params: Mapping[str, str], base: Scenario | None = None) -> Decoded:
    """Read link parameters; what cannot be used is left at its default and named. Never raises.

    Parameters
    ----------
    params : mapping of str to str
        Short name → text, as in the address bar. Long field names are accepted too.
    base : Scenario, optional
        Where fields that the link does not name come from; the defaults when None.

    Returns
    -------
    Decoded
        The scenario and one sentence per part that was ignored.
    """
    known = {item.metadata["key"]: name for name, item in fields_by_name().items()}
    known |= {name: name for name in fields_by_name()}
    problems: list[str] = []
    values: dict[str, Any] = {}
    version = _version(params.get("v"), problems)
    values.update(PAST_DEFAULTS.get(version, {}))
    for key, text in list(params.items())[:200]:
        if key == "v":
            continue
        name = known.get(RENAMED.get(key, key))
        if name is None:
            problems.append(f"'{_shown(key)}' is not a setting of this version and was ignored.")
            continue
        try:
            values[name] = _read(name, text)
        except InvalidInput as error:
            problems.append(f"{error} The default was kept.")
    return _build(base or Scenario(), values, problems)


def from_query(text: str, base: Scenario | None = None) -> Decoded:
    """Read a whole link, or its query string alone. Never raises."""
    if len(text) > MAX_LINK_CHARACTERS:
        kept = text[:MAX_LINK_CHARACTERS]
        cut = kept[: kept.rfind("&")] if "&" in kept else ""
        decoded = from_query(cut, base)
        note = f"The link has {len(text):,} characters; what follows the first {MAX_LINK_CHARACTERS:,} was ignored."
        return Decoded(scenario=decoded.scenario, problems=(note, *decoded.problems))
    try:
        parts = urlsplit(text.strip())
        query = parts.query if "?" in text else text.strip()
    except ValueError:
        return Decoded(scenario=base or Scenario(), problems=("The link could not be read; the defaults are shown.",))
    return from_params(dict(parse_qsl(query, keep_blank_values=True)), base)


def from_json(text: str, base: Scenario | None = None) -> Decoded:
    """Read the JSON of `to_json`, whole or in part.

    Raises
    ------
    InvalidInput
        When the text is not a JSON object. Single fields that cannot be used are named in `problems`.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("scenario", text[:MAX_SHOWN], "a JSON object, as `plan --json` writes it") from error
    if not isinstance(body, dict):
        raise InvalidInput("scenario", text[:MAX_SHOWN], "a JSON object, as `plan --json` writes it")
    problems: list[str] = []
    values: dict[str, Any] = {}
    version = _version(str(body["version"]) if "version" in body else None, problems)
    values.update(PAST_DEFAULTS.get(version, {}))
    fields = fields_by_name()
    for name, value in body.items():
        if name == "version":
            continue
        if name not in fields:
            problems.append(f"'{_shown(name)}' is not a setting of this version and was ignored.")
            continue
        kind = fields[name].metadata["kind"]
        values[name] = float(value) if kind == "number" and isinstance(value, int) and value is not True else value
    return _build(base or Scenario(), values, problems)


def _build(base: Scenario, values: dict[str, Any], problems: list[str]) -> Decoded:
    # Fields can be wrong alone or together: drop the one that the error names until the rest stands.
    remaining = dict(values)
    while remaining:
        try:
            return Decoded(scenario=base.replace(**remaining), problems=tuple(problems))
        except InvalidInput as error:
            if error.field == "max_model_len" and "max_model_len" not in remaining:
                # The default context is longer than this model's: take the model's own, and say so.
                remaining["max_model_len"] = _longest_context(base, remaining)
                problems.append(f"{error} The model's longest was taken.")
                continue
            culprit = _culprit(error, remaining)
            problems.append(f"{error} The default was kept.")
            for name in culprit:
                remaining.pop(name)
    return Decoded(scenario=base, problems=tuple(problems))


def _longest_context(base: Scenario, values: dict[str, Any]) -> int:
    return base.replace(**{**values, "max_model_len": 16}).model_shape.max_position_embeddings


def _culprit(error: InvalidInput, values: dict[str, Any]) -> list[str]:
    if error.field in values:
        return [error.field]
    # The error names a derived field (a model's own config, say): blame what it is derived from.
    blamed: list[str] = [name for name in ("model_config", "model", "gpu", "engine") if name in values]
    return blamed[:1] or list(values)


def _version(text: str | None, problems: list[str]) -> int:
    if text is None:
        return VERSION
    if not text.isdigit() or len(text) > 6 or int(text) < 1:
        problems.append(f"The link's version '{_shown(text)}' is not a number; it was read as version {VERSION}.")
        return VERSION
    if int(text) > VERSION:
        problems.append(f"The link was written by a newer version ({text}); this is version {VERSION}.")
        return VERSION
    return int(text)


def _write(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def _read(name: str, text: str) -> Any:
    meta = fields_by_name()[name].metadata
    if meta["optional"] and text == "none":
        return None
    if meta["kind"] == "text":
        return text
    if meta["kind"] == "flag":
        if text not in ("0", "1", "true", "false"):
            raise InvalidInput(name, _shown(text), "1 or 0")
        return text in ("1", "true")
    bounds = f"a number from {_bound(meta['minimum'])} to {_bound(meta['maximum'])}"
    try:
        number = float(text) if len(text) <= 40 else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (meta["kind"] == "count" and not number.is_integer()):
        raise InvalidInput(name, _shown(text), "a whole " + bounds[2:] if meta["kind"] == "count" else bounds)
    return int(number) if meta["kind"] == "count" else number


def _bound(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:g}"


def _shown(text: str) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in text)
    return clean if len(clean) <= MAX_SHOWN else clean[: MAX_SHOWN - 1] + "…"
