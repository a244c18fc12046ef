"""What each tool does with its arguments, which `tools` has checked by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any
from urllib.parse import urlencode

from planner.answer import fits, linked, plan, recommend
from planner.errors import InvalidInput, require_choice, require_int
from planner.scenario import (
    COMPARED,
    Decoded,
    Scenario,
    differing_fields,
    fields_by_name,
    from_json,
    from_query,
    is_address,
    joined,
    preset,
    preset_names,
    to_params,
    to_query,
)
from planner.serve.answers import candidate_answer, changed, compared_plan, plan_answer, refusal
from planner.serve.listing import KINDS, entries

Arguments = Mapping[str, Any]
Answer = dict[str, Any]
MOST_PLANS = 4  # of a comparison, as on the page
FEW_ROWS, MOST_ROWS, MOST_ENTRIES = 10, 500, 1000
SOURCES = ("scenario", "link", "preset")


def scenario_of(arguments: Arguments) -> tuple[Scenario, tuple[str, ...]]:
    """The scenario that `preset`, `link` and `scenario` describe, each over the one before, and what was adjusted.

    Raises
    ------
    InvalidInput
        When a part of it cannot be used.
    """
    name = _text(arguments, "preset")
    if name:
        require_choice("preset", name, preset_names())
    base = preset(name) if name else Scenario()
    decoded = Decoded(scenario=base)
    notes: tuple[str, ...] = ()
    link = _text(arguments, "link")
    if link:
        decoded = _sound(from_query(link, base), is_whole=is_address(link))
        notes += decoded.problems
    fields = arguments.get("scenario")
    if fields is not None:
        if not isinstance(fields, Mapping):
            raise InvalidInput("scenario", fields, "a JSON object of fields")
        decoded = _sound(from_json(json.dumps(fields), decoded.scenario))
        notes += decoded.problems
    return decoded.scenario, notes


def _sound(decoded: Decoded, *, is_whole: bool = False) -> Decoded:
    """Raise the first error; chat and mail programs add their own parameters to whole addresses."""
    for error in decoded.errors + (() if is_whole else decoded.unknown):
        if error.field == "SCENARIO":  # the name that a link has on the command line
            raise InvalidInput("link", error.value, error.valid)
        raise error
    return decoded


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(name, value, "text")
    return value or ""


def _rows(arguments: Arguments, default: int, at_most: int) -> int:
    rows = arguments.get("rows", default)
    require_int("rows", rows, at_most=at_most)
    return int(rows)


def plan_call(arguments: Arguments) -> Answer:
    """The plan of a scenario."""
    scenario, notes = scenario_of(arguments)
    return plan_answer(plan(scenario)) | {"notes": list(notes)}


def recommend_call(arguments: Arguments, executor: Executor | None = None) -> Answer:
    """The cheapest deployments for the traffic and targets of a scenario; `executor` does the parts of the search."""
    rows = _rows(arguments, FEW_ROWS, MOST_ROWS)
    scenario, notes = scenario_of(arguments)
    found = recommend(scenario, executor=executor)
    return {
        "summary": found.summary,
        "candidates": [candidate_answer(row) for row in found.candidates[:rows]],
        "candidates_considered": found.candidates_considered,
        "candidates_simulated": found.candidates_simulated,
        "left_out": found.left_out,
        "advice": found.advice,
        "notes": list(notes),
    }


def compare_call(arguments: Arguments) -> Answer:
    """Two to four plans side by side."""
    asked = arguments["plans"]
    if not isinstance(asked, list) or not 2 <= len(asked) <= MOST_PLANS:
        raise InvalidInput("plans", asked, f"a list of 2 to {MOST_PLANS} plans")
    known = (*SOURCES, "name")
    done, names = [], []
    notes: list[str] = []
    for place, item in enumerate(asked, 1):
        if not isinstance(item, Mapping) or not item.keys() <= set(known):
            raise InvalidInput("plans", item, "an object with " + ", ".join(known))
        scenario, said = scenario_of(item)
        notes += said
        done.append(plan(scenario))
        names.append(_text(item, "name") or scenario.title or f"Plan {place}")
    scenarios = [one.scenario for one in done]
    rows = [compared_plan(name, one) for name, one in zip(names, done, strict=True)]
    meeting = [row for row in rows if row["status"] == "meets targets" and row["usd_per_month"] is not None]
    labels = fields_by_name()
    first = to_params(scenarios[0]) | {COMPARED: joined(to_query(other) for other in scenarios[1:])}
    return {
        "plans": rows,
        "cheapest_that_meets_targets": min(meeting, key=lambda row: row["usd_per_month"])["name"] if meeting else None,
        "differing": [
            {"name": name, "label": labels[name].metadata["label"], "values": [getattr(one, name) for one in scenarios]}
            for name in differing_fields(scenarios)
        ],
        "link": urlencode(first),
        "notes": notes,
    }


def fits_call(arguments: Arguments) -> Answer:
    """The models that start on a GPU."""
    engines = arguments.get("engines")
    named = isinstance(engines, list) and engines and all(isinstance(name, str) for name in engines)
    if engines is not None and not named:
        raise InvalidInput("engines", engines, "a list of engine names")
    rows, wanted = _rows(arguments, FEW_ROWS, MOST_ROWS), _text(arguments, "search").casefold()
    found = fits(
        _text(arguments, "gpu"),
        count=arguments.get("count", 1),
        context_tokens=arguments.get("context_tokens", 8192),
        engines=engines,
    )
    models = [row for row in found if wanted in row.model.casefold()]
    return {"total": len(models), "models": [linked(row) for row in models[:rows]]}


def read_link_call(arguments: Arguments) -> Answer:
    """What a link says, and what of it could not be used."""
    decoded = from_query(_text(arguments, "link"))
    return {
        "scenario": changed(decoded.scenario),
        "problems": list(decoded.problems),
        "not_used": [refusal(error) for error in (*decoded.errors, *decoded.unknown)],
        "link": to_query(decoded.scenario),
    }


def list_call(arguments: Arguments) -> Answer:
    """The entries that may be named."""
    what, rows = arguments["what"], _rows(arguments, MOST_ROWS, MOST_ENTRIES)
    require_choice("what", what, KINDS)
    wanted = _text(arguments, "search").casefold()
    found = [row for row in entries(what) if wanted in row["name"].casefold()]
    return {"what": what, "total": len(found), "entries": found[:rows]}
