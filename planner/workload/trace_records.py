"""Records of requests in JSON: an object a line, an array, an object that holds the array, or OpenTelemetry's spans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from planner.errors import InvalidInput

DEEPEST = 3  # of keys within one another
ONE_A_LINE = "one JSON object per line, or an array of them"
BEGINS = re.compile(r"\s*(?:\{|\[\s*\{)")  # logs, too, begin with a bracket
SPANS = "resourceSpans"
#: attributes with which a span says that it is one call of a model, as semantic conventions and OpenInference name them
CALLS = ("gen_ai.usage.", "llm.usage.", "llm.token_count.")
#: spans of a whole agent, whose calls have spans of their own
WHOLES = ("invoke_agent", "create_agent", "execute_tool")

Record = tuple[int, str, dict[str, Any]]


def records_in(text: str) -> Iterator[Record]:
    """Line, text and keys of each record; in a file that is one JSON value, the line is the record's place.

    Parameters
    ----------
    text : str
        JSON lines, or one JSON value that is or holds an array of objects.

    Raises
    ------
    InvalidInput
        With the line that is no JSON object.
    """
    first = next((content for content in text.split("\n") if content.strip()), "")
    # an object, or an array, over many lines
    whole = None if isinstance(_loaded(first), dict) and "\n" in text.strip() else _loaded(text)
    if not isinstance(whole, (dict, list)):
        yield from _by_line(text)
        return
    for place, item in enumerate(_held(whole), 1):
        if not isinstance(item, dict):
            raise InvalidInput(f"trace line {place}", str(item), ONE_A_LINE)
        yield from ((place, "", span) for span in _opened(item))


def first_record(head: str) -> dict[str, Any]:
    """Keys of the first record of a file of which only the beginning is at hand; none where it has none.

    Parameters
    ----------
    head : str
        Its beginning.
    """
    start = head.find("{")
    try:
        item, _ = json.JSONDecoder().raw_decode(head, max(start, 0))
    except (ValueError, RecursionError):
        return {}
    records = [span for held in _held(item) if isinstance(held, dict) for span in _opened(held)] if item else []
    return records[0] if records else {}


def _by_line(text: str) -> Iterator[Record]:
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            item = _loaded(content)
            if not isinstance(item, dict):
                raise InvalidInput(f"trace line {line}", content, ONE_A_LINE)
            yield from ((line, content, span) for span in _opened(item))


def _loaded(text: str) -> Any:
    """The JSON value of a text; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _held(whole: Any) -> list[Any]:
    """The records of a JSON value: its array, or the longest array of objects in its keys."""
    if isinstance(whole, list):
        return whole
    if SPANS in whole:
        return [whole]
    arrays = [value for value in whole.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    return max(arrays, key=len, default=[whole])


def _opened(item: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The record itself, or of OpenTelemetry's the spans that call a model, their attributes as keys."""
    if not isinstance(item.get(SPANS), list):
        return [item]
    return [
        {**span, "attributes": attributes}
        for resource in _dicts(item[SPANS])
        for scope in _dicts(resource.get("scopeSpans"))
        for span in _dicts(scope.get("spans"))
        if _calls(attributes := _attributes(span.get("attributes")))
    ]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _attributes(pairs: Any) -> dict[str, Any]:
    """Attributes as keys; OTLP writes each as a key and a value under the name of its type."""
    found = {}
    for pair in _dicts(pairs):
        value = pair.get("value")
        found[str(pair.get("key"))] = next(iter(value.values()), None) if isinstance(value, dict) else value
    return found


def _calls(attributes: dict[str, Any]) -> bool:
    named = any(name.startswith(CALLS) for name in attributes)
    return named and attributes.get("gen_ai.operation.name") not in WHOLES


def flat_keys(item: dict[str, Any], depth: int = DEEPEST) -> list[str]:
    """Keys of a record and, joined by dots, the keys within them."""
    inner = [
        f"{name}.{key}"
        for name, held in item.items()
        if depth > 1 and isinstance(held, dict)
        for key in flat_keys(held, depth - 1)
    ]
    return [*item, *inner]


def value_at(item: dict[str, Any], name: str) -> Any:
    """The value under a key, which may have dots in it, or under keys joined by dots; None where there is none."""
    if name in item:
        return item[name]
    outer, dot, inner = name.partition(".")
    held = item.get(outer)
    return value_at(held, inner) if dot and isinstance(held, dict) else None
