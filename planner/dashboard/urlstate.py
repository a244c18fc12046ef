"""The scenario in the address bar: read it, keep it in step with the widgets, lose no rapid click.

Each field of the Scenario has a widget under the key `s_<field>`, whose value the session holds once it was drawn or
set: the fewer it holds, the faster Streamlit draws each. `load` fills the widgets from the link when a session starts
and when Back, Forward or a pasted link changed it. A widget's change always
wins over the address bar, which lags behind. `save` writes the link.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from planner.errors import InvalidInput
from planner.scenario import COMPARED as OTHER
from planner.scenario import (
    CONFIG,
    NOTE,
    SEEN,
    VIEWED,
    Scenario,
    compared,
    fields_by_name,
    from_params,
    from_query,
    is_compared,
    joined,
    longest_context,
    message,
    to_params,
    to_query,
)

PREFIX = "s_"
ECHO_S = 1.0  # how long our own write may take to come back from the address bar
HISTORY = 50
MOST_COMPARED = 3  # other plans, beside the one of the form
MOST_OF_NOTE = 400  # characters
#: settings that are dropped when another model or context rules them out
YIELDING = ("draft_model", "attention_data_parallel_size", "shared_prefix_tokens")
# Which change to blame when an error names a derived value and no widget.
BLAME = ("model_config", "model", "gpu", "engine", "tensor_parallel_size", "pipeline_parallel_size")


@dataclass(frozen=True, slots=True)
class Current:
    """The scenario of the widgets, and a message for each field that could not be used."""

    scenario: Scenario
    errors: dict[str, str] = field(default_factory=dict)


def key(name: str) -> str:
    """Widget key of a field."""
    return PREFIX + name


def saved() -> Scenario:
    """The scenario of the last run (or of the link, in the first)."""
    found: Scenario = st.session_state["_saved"]
    return found


def values() -> dict[str, Any]:
    """The widgets' values now; fields without a widget keep the saved value."""
    before = saved()
    found = {}
    for name, item in fields_by_name().items():
        value = st.session_state.get(key(name), getattr(before, name))
        found[name] = getattr(before, name) if value is None and not item.metadata["optional"] else value
    return found


def current() -> Current:
    """The scenario of the widgets; a field that cannot be used keeps its last valid value."""
    return settle(saved(), values())


def settle(before: Scenario, wanted: dict[str, Any]) -> Current:
    """`before` changed as wanted, field by field where not all of it is valid.

    Parameters
    ----------
    before : Scenario
        The last valid scenario.
    wanted : dict
        A value for each field.

    Returns
    -------
    Current
        The scenario with the changes that are valid, and a message for each field that keeps its old value.
    """
    if wanted["model"] == CONFIG and not wanted["model_config"].strip():
        wanted = {**wanted, "model": before.model}  # no config.json given yet; the form asks for it
    changes = {name: value for name, value in wanted.items() if value != getattr(before, name)}
    errors: dict[str, str] = {}
    while changes:
        try:
            return Current(before.replace(**changes), errors)
        except InvalidInput as error:
            if error.field == "max_model_len" and _clamp_context(before, changes, error, errors):
                continue
            if error.field in YIELDING and error.field not in changes:
                # A newly chosen model or context wins over an older setting that does not go with it.
                errors[error.field] = f"{message(error)} Planned without it."
                changes[error.field] = fields_by_name()[error.field].default
                continue
            blamed = [error.field] if error.field in changes else [name for name in BLAME if name in changes][:1]
            for name in blamed or list(changes):
                errors[error.field if error.field in fields_by_name() else name] = (
                    f"{message(error)} The plan keeps the last valid value."
                )
                changes.pop(name)
    return Current(before, errors)


def _clamp_context(before: Scenario, changes: dict[str, Any], error: InvalidInput, errors: dict[str, str]) -> bool:
    # The chosen model has a shorter context than asked for: plan with its longest instead of rejecting the model.
    if "max_model_len" in errors:
        return False
    limit = longest_context(before, changes)
    asked = changes.get("max_model_len", before.max_model_len)
    if limit is None or not isinstance(asked, int) or asked <= limit:
        return False
    errors["max_model_len"] = f"{message(error)} Planned with {limit:,}."
    changes["max_model_len"] = limit
    return True


def load() -> None:
    """Load the link into the widgets when it is newer than they are. First call of a run."""
    state, query = st.session_state, st.query_params.to_dict()
    if "_other" not in state:
        state["_other"], state["_other_problems"], state["_view"] = "", (), ""
    if "_saved" not in state:
        take = True
    else:
        moved = bool(query) and query != state["_url"]  # a page link arrives with an empty query
        echo = time.monotonic() - state["_history"].get(tuple(query.items()), -9.0) < ECHO_S
        take = moved and not echo and values() == state["_values"]
    if take:
        decoded = from_params(query)
        if is_compared(OTHER, query.get(OTHER, "0")):
            compare_with(query[OTHER])
        if VIEWED in query:
            state["_view"] = query[VIEWED]
        state["_seen"], state["share_note"] = query.get(SEEN, ""), query.get(NOTE, "")[:MOST_OF_NOTE]
        state["_saved"], state["_problems"], state["_url"] = decoded.scenario, decoded.problems, query
        state.setdefault("_history", {})
        for name in fields_by_name():
            if key(name) in state:
                state[key(name)] = getattr(decoded.scenario, name)
        state["_values"] = values()


def compare_with(text: str) -> None:
    """Compare with the plans of links, as `vs` holds them; an empty text ends the comparison."""
    decoded = [from_query(query) for query in compared(text)[:MOST_COMPARED]]
    st.session_state["_other"] = joined(to_query(found.scenario) for found in decoded)
    st.session_state["_other_problems"] = tuple(problem for found in decoded for problem in found.problems)


def save(scenario: Scenario, *, with_other: bool = False, with_view: bool = False) -> None:
    """Write the scenario into the address bar and remember it; on the Compare page also the other plan.

    On the Accuracy page also the measured deployment that it shows.
    """
    state, query = st.session_state, to_params(scenario)
    if with_other and state["_other"]:
        query[OTHER] = state["_other"]
    if with_view and state["_view"]:
        query[VIEWED] = state["_view"]
    if state.get("share_note"):
        query[NOTE] = state["share_note"]
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
    if scenario != saved():
        state["_seen"] = ""
        state["_problems"] = ()  # the user has changed an input since the note about the link
    state["_saved"], state["_url"], state["_values"] = scenario, query, values()
    state["_history"][tuple(query.items())] = time.monotonic()
    while len(state["_history"]) > HISTORY:
        state["_history"].pop(next(iter(state["_history"])))


def put(**changes: Any) -> None:
    """Set fields from a button or callback, before their widgets are drawn."""
    before = saved()
    for name, value in changes.items():
        if key(name) in st.session_state or value != getattr(before, name):
            st.session_state[key(name)] = value


def fill(name: str) -> Any:
    """The value of a field's widget, which is about to be drawn."""
    return st.session_state.setdefault(key(name), getattr(saved(), name))
