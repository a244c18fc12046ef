"""Scenario ↔ link and JSON: readable, versioned, loss-free; no link makes it raise.

A link carries only what differs from the defaults, under short names that never change meaning. A retired name stays
in `RENAMED`, and `v` says which defaults the link was written with (`PAST_DEFAULTS`), so an old link still opens the
plan that its author saw.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from planner.errors import InvalidInput, in_digits
from planner.scenario.fields import OPEN_LOOP_KINDS, fields_by_name
from planner.scenario.messages import message
from planner.scenario.scenario import Scenario
from planner.scenario.targets import TARGETS, unnamed_targets_off

VERSION = 2
COMPARED = "vs"  # link name of the other plans' queries on the Compare page
BETWEEN_COMPARED = "|"  # which no query holds unescaped
VIEWED = "view"  # link name of what the Accuracy page shows; no part of the scenario
#: link names that belong to the page, not to the plan: what the author saw, and a note
SEEN, NOTE = "was", "note"
RENAMED: dict[str, str] = {COMPARED: "voc"}  # retired link name -> today's link name
PAST_DEFAULTS: dict[int, dict[str, Any]] = {}  # version -> field -> default of that version, where it changed
#: before version 2 a target that was not named had its default, and clients who wait had one replica
OLD_RULES = 1
MAX_LINK_CHARACTERS = 40_000
MAX_SHOWN = 60
#: the shortest context, without the settings that a context limits
SHORTEST_CONTEXT: dict[str, Any] = {
    "max_model_len": 16,
    "shared_prefix_tokens": 0,
    "long_prefill_token_threshold": 0,
    "max_num_batched_tokens": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A scenario read from a link or JSON, and what could not be used of it.

    `problems` are sentences for the reader; the rest of the scenario is loaded. `errors` are the values that cannot be
    used, for callers that raise instead of guessing. `unknown` are names of no setting; empty where a newer version
    wrote the link.
    """

    scenario: Scenario
    problems: tuple[str, ...] = ()
    errors: tuple[InvalidInput, ...] = ()
    unknown: tuple[InvalidInput, ...] = ()


@dataclass(slots=True)
class _Notes:
    """The parts that could not be used, collected while reading."""

    version: int = VERSION
    problems: list[str] = field(default_factory=list)
    errors: list[InvalidInput] = field(default_factory=list)
    unknown: list[InvalidInput] = field(default_factory=list)

    def refuse(self, error: InvalidInput, kept: str = "The default is used.") -> None:
        self.errors.append(error)
        self.problems.append(f"{message(error)} {kept}")

    def ignore(self, name: str) -> None:
        near = difflib.get_close_matches(name[:MAX_SHOWN], list(fields_by_name()), n=1)
        closest = f"; the closest is {near[0]}" if near else ""
        self.unknown.append(InvalidInput("setting", _shown(name), f"the name of a setting{closest}"))
        self.problems.append(f"This version has no setting '{_shown(name)}'{closest}. It was ignored.")

    def read_version(self, text: str | None) -> dict[str, Any]:
        """The defaults that have changed since the version that wrote this."""
        if text is not None and (not text.isdecimal() or len(text) > 6 or int(text) < 1):
            self.errors.append(InvalidInput("version", _shown(text), f"a whole number, {VERSION} today"))
            self.problems.append(
                f"The link's version '{_shown(text)}' is not a number; the link was read as version {VERSION}."
            )
        elif text is not None:
            self.version = int(text)
            if self.version > VERSION:
                self.problems.append(f"A newer version ({text}) wrote this link; this is version {VERSION}.")
        return dict(PAST_DEFAULTS.get(self.version, {}))

    def decoded(self, scenario: Scenario) -> Decoded:
        unknown = () if self.version > VERSION else tuple(self.unknown)
        return Decoded(scenario=scenario, problems=tuple(self.problems), errors=tuple(self.errors), unknown=unknown)


def to_params(scenario: Scenario) -> dict[str, str]:
    """A scenario as link parameters: the version, and each field that differs from its default.

    Parameters
    ----------
    scenario : Scenario
        The scenario to write.

    Returns
    -------
    dict of str to str
        Short name → text, in the order of the fields. Where the targets differ from the defaults, those that are on.
    """
    fields = fields_by_name()
    usual = all(getattr(scenario, name) == fields[name].default for name in TARGETS)
    named = () if usual else [target.field for target in scenario.targets] or [next(iter(TARGETS))]
    params = {"v": str(VERSION)}
    for name, item in fields.items():
        value = getattr(scenario, name)
        # Naming one target turns off those that are not named, so the link names all that are on, or one as off.
        if name in named or (name not in TARGETS and value != item.default):
            params[item.metadata["key"]] = _write(value)
    return params


def to_query(scenario: Scenario) -> str:
    """A scenario as a query string without the question mark."""
    return urlencode(to_params(scenario))


def to_json(scenario: Scenario) -> str:
    """Every field of a scenario as JSON, defaults included."""
    body = {"version": VERSION, **{name: getattr(scenario, name) for name in fields_by_name()}}
    return json.dumps(body, indent=2)


def from_params(params: Mapping[str, str], base: Scenario | None = None) -> Decoded:
    """The scenario of link parameters; what cannot be used keeps its default and is named. Never raises.

    Parameters
    ----------
    params : mapping of str to str
        Short name → text, as in the address bar. Long field names are accepted too.
    base : Scenario, optional
        Source of the fields that the link does not name; None: the defaults.

    Returns
    -------
    Decoded
        The scenario, and one sentence for each part that was ignored.
    """
    known = {item.metadata["key"]: name for name, item in fields_by_name().items()}
    known |= {name: name for name in fields_by_name()}
    notes = _Notes()
    values = notes.read_version(params.get("v"))
    for key, text in list(params.items())[:200]:
        if key in ("v", VIEWED, SEEN, NOTE) or is_compared(key, text):
            continue
        name = known.get(RENAMED.get(key, key))
        if name is None:
            notes.ignore(key)
            continue
        try:
            values[name] = _read(name, text)
        except InvalidInput as error:
            notes.refuse(error)
    return _build(base or Scenario(), values, notes)


def is_compared(key: str, text: str) -> bool:
    """Whether `vs` holds a plan to compare with (`vs=v%3D1…`), not the vocabulary as in old links (`vs=32000`)."""
    return key == COMPARED and not text.strip().isdecimal()


def compared(text: str) -> tuple[str, ...]:
    """The queries of the plans to compare with, from the value of `vs`."""
    return tuple(part for part in text.split(BETWEEN_COMPARED) if part.strip())


def joined(queries: Iterable[str]) -> str:
    """The value of `vs` for these plans."""
    return BETWEEN_COMPARED.join(query for query in queries if query.strip())


def is_plan_link(text: str) -> bool:
    """Whether a text is the link of a plan, or its query: it has a version or names a setting."""
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return False
    query = parts.query if "?" in text or is_address(text) else text.strip()
    known = {item.metadata["key"] for item in fields_by_name().values()} | set(fields_by_name()) | {"v"}
    return any(RENAMED.get(name, name) in known and value for name, value in parse_qsl(query))


def is_address(text: str) -> bool:
    """Whether a text is a whole web address and not just a query string."""
    return text.strip().lower().startswith(("http://", "https://"))


def from_query(text: str, base: Scenario | None = None) -> Decoded:
    """The scenario of a whole link or of its query string. Never raises."""
    if len(text) > MAX_LINK_CHARACTERS:
        kept = text[:MAX_LINK_CHARACTERS]
        cut = kept[: kept.rfind("&")] if "&" in kept else ""
        decoded = from_query(cut, base)
        note = f"The link has {len(text):,} characters; only the first {MAX_LINK_CHARACTERS:,} were read."
        cut_off = InvalidInput("SCENARIO", f"{len(text):,} characters", f"at most {MAX_LINK_CHARACTERS:,} characters")
        return dataclasses.replace(decoded, problems=(note, *decoded.problems), errors=(cut_off, *decoded.errors))
    try:
        parts = urlsplit(text.strip())
        query = parts.query if "?" in text or is_address(text) else text.strip()
    except ValueError:
        unread = InvalidInput("SCENARIO", _shown(text), "a link copied from the dashboard")
        note = "The link could not be read; the defaults are shown."
        return Decoded(scenario=base or Scenario(), problems=(note,), errors=(unread,))
    return from_params(dict(parse_qsl(query, keep_blank_values=True)), base)


def from_json(text: str, base: Scenario | None = None) -> Decoded:
    """The scenario of JSON: all or part of what `to_json` writes, or a whole plan from `plan --json`.

    Raises
    ------
    InvalidInput
        When the text is not a JSON object. Single fields that cannot be used are named in `problems`.
    """
    text = text.lstrip("\ufeff")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("scenario", text[:MAX_SHOWN], "a JSON object, as `plan --json` writes it") from error
    if not isinstance(body, dict):
        raise InvalidInput("scenario", text[:MAX_SHOWN], "a JSON object, as `plan --json` writes it")
    if isinstance(body.get("scenario"), dict):
        body = _of_plan(body)
    notes = _Notes()
    values = notes.read_version(str(body["version"]) if "version" in body else None)
    fields = fields_by_name()
    for name, value in body.items():
        if name in fields:
            values[name] = _as_number(value) if fields[name].metadata["kind"] == "number" else value
        elif name != "version":
            notes.ignore(name)
    return _build(base or Scenario(), values, notes)


def _of_plan(body: dict[str, Any]) -> dict[str, Any]:
    """The scenario that a whole plan answers, at the version of the plan's link."""
    link = dict(parse_qsl(str(body.get("link", ""))[:MAX_LINK_CHARACTERS]))
    version = {"version": link["v"]} if "v" in link else {}
    return {**version, **body["scenario"]}


def _as_number(value: Any) -> Any:
    """JSON integers as floats, for number fields; anything else stays for the field's own check."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and abs(value) < 1e300 else value


def _build(base: Scenario, values: dict[str, Any], notes: _Notes) -> Decoded:
    # Fields can be wrong alone or together: drop the field that the error names until the rest is valid.
    remaining = dict(values)
    if notes.version > OLD_RULES:
        remaining |= unnamed_targets_off(values)
    elif remaining.get("arrivals", base.arrivals) not in OPEN_LOOP_KINDS and remaining.get("num_replicas") is None:
        remaining["num_replicas"] = base.num_replicas or 1
    while remaining:
        try:
            return notes.decoded(base.replace(**remaining))
        except InvalidInput as error:
            if error.field == "max_model_len":
                # The link's context, or the default, is longer than this model allows: take the model's longest.
                asked, longest = remaining.get("max_model_len"), longest_context(base, remaining)
                if longest is not None and _gives_way(asked, longest, base):
                    remaining["max_model_len"] = longest
                    notes.errors += [] if asked is None else [error]
                    notes.problems.append(f"{message(error)} Planned with {longest:,}.")
                    continue
            if error.field == "shared_prefix_tokens" and "shared_prefix_tokens" not in remaining:
                # The link's shorter context wins over the base scenario's longer system prompt.
                remaining["shared_prefix_tokens"] = 0
                notes.problems.append(f"{message(error)} Planned without one.")
                continue
            if error.field == "model_config" in values and "model_config" not in remaining and "model" in remaining:
                remaining.pop("model")  # the config that it stands for was refused already
                continue
            notes.refuse(error)
            for name in _culprit(error, remaining, base):
                remaining.pop(name)
    return notes.decoded(base)


def _gives_way(asked: Any, longest: int, base: Scenario) -> bool:
    """Whether to use the model's longest context: the link asks for more, or the context kept instead is too long."""
    if asked is None or base.max_model_len > longest:
        return True
    return isinstance(asked, int) and longest < asked <= fields_by_name()["max_model_len"].metadata["maximum"]


def longest_context(base: Scenario, values: dict[str, Any]) -> int | None:
    """Longest context of the model in `base` changed by `values`; None where other values are invalid. [tokens]"""
    try:
        return base.replace(**{**values, **SHORTEST_CONTEXT}).model_shape.longest_context
    except InvalidInput:
        return None


def _culprit(error: InvalidInput, values: dict[str, Any], base: Scenario) -> list[str]:
    if error.field in values:
        return [error.field]
    # The error names a field of the model's config, or one that another needs: blame what it does not occur without.
    sources = [name for name in ("model_config", "model", "gpu", "engine") if name in values]
    for name in dict.fromkeys((*sources, *values)):
        rest = {other: value for other, value in values.items() if other != name}
        if _refused(base, rest) != error.field:
            return [name]
    return list(values)


def _refused(base: Scenario, values: dict[str, Any]) -> str | None:
    """The first field that is not valid; None where all are."""
    try:
        base.replace(**values)
    except InvalidInput as error:
        return error.field
    return None


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
    bounds = f"a number from {in_digits(meta['minimum'])} to {in_digits(meta['maximum'])}"
    try:
        number = float(text) if len(text) <= 40 else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (meta["kind"] == "count" and not number.is_integer()):
        raise InvalidInput(name, _shown(text), "a whole " + bounds[2:] if meta["kind"] == "count" else bounds)
    return int(number) if meta["kind"] == "count" else number


def _shown(text: str) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in text)
    return clean if len(clean) <= MAX_SHOWN else clean[: MAX_SHOWN - 1] + "…"
