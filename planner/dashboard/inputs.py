"""The sidebar: the form, made from the Scenario's field declarations, one expander per group."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import streamlit as st

from planner.dashboard import urlstate
from planner.dashboard.config_editor import config_editor
from planner.dashboard.form_fields import (
    GROUPS,
    HEADINGS,
    LARGEST,
    MORE,
    OPEN_AT_FIRST,
    OPTIONS,
    PLACEHOLDERS,
    STEPS,
    group_of,
    relevant,
)
from planner.dashboard.form_summaries import set_behind, summary
from planner.dashboard.widgets import prose
from planner.dashboard.words import WORDS, field_label, short
from planner.scenario import (
    CONFIG,
    CUSTOM,
    Scenario,
    fields_by_name,
    for_use,
    preset,
    preset_names,
    uses,
)
from planner.units import format_number


def sidebar(scenario: Scenario, errors: dict[str, str]) -> None:
    """Draw all inputs, each error under its field."""
    held = urlstate.values()
    with st.sidebar:
        _start_from()
        _sum_up(scenario, {group_of(name) for name in errors})
        for group, title in GROUPS.items():
            section = st.expander(
                f"**{title}**", key=f"group_{group}", expanded=group in OPEN_AT_FIRST, on_change="rerun"
            )
            with section:
                if group == "traffic" and section.open:
                    _fill_for_use(scenario)
                if section.open:
                    _group(group, held, errors)
        left = [text for name, text in errors.items() if name not in fields_by_name()]
        for text in left:
            st.error(prose(text))


def _required() -> str:
    """The fields that always have a number, as a selector of CSS."""
    fields = fields_by_name().items()
    names = (name for name, item in fields if item.metadata["kind"] != "text" and not item.metadata["optional"])
    return f":is({', '.join(f'.st-key-{urlstate.key(name)}' for name in names)})"


def _sum_up(scenario: Scenario, wrong: set[str]) -> None:
    # Beside each title by style, not in it: a title that changes would draw its group anew and close it.
    rules = [f"{_required()} [data-testid=stNumberInputClearButton] {{ display: none; }}"]  # nothing to clear them to
    for group in GROUPS:
        said, looks = summary(group, scenario), "opacity: 0.78"
        said = said.replace(" %", "\u00a0%").replace("seed ", "seed\u00a0")
        if group in wrong:
            said, looks = "check this", "color: color-mix(in srgb, red 60%, currentColor)"
        rules.append(f'.st-key-group_{group} summary p::after {{ content: "{in_style(f" {said}")}"; {looks}; }}')
        if group in MORE:
            kept = in_style(set_behind(group, scenario))
            rules.append(f'.st-key-group_{group} .st-key-more_{group} summary p::after {{ content: "{kept}"; }}')
    st.html(f"<style>{''.join(rules)}</style>")


def in_style(text: str) -> str:
    """Text as it stands in a quoted string of CSS; whatever could end the string is escaped."""
    return "".join(sign if sign.isalnum() else f"\\{ord(sign):x} " for sign in text)


def _group(group: str, held: dict[str, Any], errors: dict[str, str]) -> None:
    title, behind = MORE.get(group, ("", ()))
    for name, item in fields_by_name().items():
        own = item.metadata["group"]
        if own == group and name not in behind and relevant(name, held):
            _field(name, item.metadata, errors.get(name))
        if name == "model" and group == "model":
            if held["model"] == CONFIG:
                config_editor(errors.get("model_config"))
            elif held["model"] == CUSTOM:
                _nested("shape", held, errors)
        if name == "gpu" and group == "hardware" and held["gpu"] == CUSTOM:
            _nested("gpu", held, errors)
    if behind:
        _more(group, title, behind, held, errors)


def _more(group: str, title: str, names: tuple[str, ...], held: dict[str, Any], errors: dict[str, str]) -> None:
    """The fold of a group, open at first where one of its fields is set or wrong."""
    declared = fields_by_name()
    is_set = any(held[name] != declared[name].default or name in errors for name in names)
    at_first = st.session_state.setdefault(f"_more_{group}", is_set)  # another one later would draw the fold anew
    fold = st.expander(title, key=f"more_{group}", expanded=at_first, on_change="rerun", type="compact")
    if fold.open:
        with fold:
            fields(tuple(name for name in names if relevant(name, held)), errors)


def _nested(group: str, held: dict[str, Any], errors: dict[str, str]) -> None:
    with st.container(border=True):
        for name, item in fields_by_name().items():
            if item.metadata["group"] == group and relevant(name, held):
                _field(name, item.metadata, errors.get(name))


def _field(name: str, meta: Any, error: str | None) -> None:
    """Draw one field with the widget for its kind."""
    label = field_label(name)
    about = meta["help"] or None
    key, value = urlstate.key(name), urlstate.fill(name)
    if name in HEADINGS:
        st.markdown(f"**{HEADINGS[name]}**")
    common: dict[str, Any] = {"key": key, "help": about, "persist_state": "session"}
    if name in OPTIONS or meta["choices"]:
        choices = list(meta["choices"] or OPTIONS[name]())
        if value not in choices:
            choices.insert(0, value)
        words = WORDS.get(name, {})
        st.selectbox(label, choices, format_func=lambda value: words.get(value, short(value)), **common)
    elif meta["kind"] == "flag":
        st.checkbox(label, **common)
    elif meta["kind"] == "text":
        st.text_input(label, **common)
    else:
        _number(name, label, meta, value, common)
    if error:
        st.error(prose(error))


def _number(name: str, label: str, meta: Any, value: float | None, common: dict[str, Any]) -> None:
    # The Scenario checks the bounds, so its message appears under the field; the browser would just clamp.
    whole = meta["kind"] == "count"
    if meta["optional"]:
        empty = PLACEHOLDERS.get(name) or PLACEHOLDERS.get(meta["group"], "automatic")
    else:
        empty = f"{getattr(urlstate.saved(), name):.12g}"  # the plan keeps the last value
    if value is not None and not isinstance(value, int if whole else float):
        st.session_state[common["key"]] = int(value) if whole else float(value)
    low, high = (-LARGEST, LARGEST) if whole else (-1e15, 1e15)
    step = STEPS.get(name, 1 if whole else 1.0)
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        step=int(step) if whole else float(step),
        format="%d" if whole else "%.12g",
        value=None,  # else an emptied field would hold its lowest value
        placeholder=empty,
        **common,
    )


@lru_cache(maxsize=1)
def refusals_in_style() -> str:
    """CSS that says below a number what the browser keeps back: numbers larger than it can hold exactly."""
    rules = []
    for name, item in fields_by_name().items():
        meta = item.metadata
        if meta["kind"] not in ("count", "number"):
            continue
        most = LARGEST if meta["maximum"] is None else meta["maximum"]
        valid = f"at most {format_number(most, 16)}"
        if meta["minimum"] is not None:
            valid = f"{format_number(meta['minimum'], 16)} to {format_number(most, 16)}"
        text = (
            f"{field_label(name)}: this number is out of range. Expected {valid}. The plan keeps the last valid value."
        )
        rules.append(f".st-key-{urlstate.key(name)} [data-invalid=true]::after{{content:{json.dumps(text)}}}")
    return "".join(rules)


def _start_from() -> None:
    def chosen() -> None:
        name = st.session_state["start_from"]
        if name:
            start = preset(name)
            urlstate.put(**{field: getattr(start, field) for field in fields_by_name()})
            st.session_state["start_from"] = None

    st.selectbox(
        "Start from an example",
        [name for name in preset_names() if name not in uses()],
        index=None,
        placeholder="Start from an example…",
        format_func=lambda name: preset(name).title or name.replace("-", " ").capitalize(),
        key="start_from",
        on_change=chosen,
        label_visibility="collapsed",
    )


def _fill_for_use(scenario: Scenario) -> None:
    titles = uses()

    def chosen() -> None:
        name = st.session_state["fill_for"]
        if name:
            adopt(for_use(scenario, name))
            st.session_state["fill_for"] = None

    st.selectbox(
        "Lengths and targets for a use",
        tuple(titles),
        index=None,
        placeholder="Fill in for a use…",
        format_func=lambda name: titles[name],
        key="fill_for",
        on_change=chosen,
        help="Fills lengths, context and targets as usual for chat, RAG, code, agents, summaries or batches; model, "
        "GPUs and the amount of traffic stay.",
    )


def question(scenario: Scenario, planned_replicas: int, planned_pools: tuple[int, int] | None) -> None:
    """The switch between the three questions; the form and the answer follow it.

    Parameters
    ----------
    scenario : Scenario
        Of this run.
    planned_replicas : int
        What the plan has, which a question about given GPUs starts from.
    planned_pools : tuple of int or None
        The same of prefill and decode replicas, where they are apart.
    """
    state, key = st.session_state, urlstate.key("question")

    def chosen() -> None:
        asked = state[key] or scenario.asks
        number = None if asked == "need" else scenario.num_replicas or max(1, planned_replicas)
        if scenario.is_disaggregated:
            given = (None, None) if asked == "need" else planned_pools or (1, 1)
            urlstate.put(question=asked, num_replicas=None, prefill_replicas=given[0], decode_replicas=given[1])
            return
        urlstate.put(question=asked, num_replicas=number)

    if state.get(key) != scenario.asks:
        state[key] = scenario.asks
    words = WORDS["question"]
    st.segmented_control(
        "Question",
        list(words),
        format_func=lambda name: words[name],
        key=key,
        on_change=chosen,
        label_visibility="collapsed",
        width="stretch",
        persist_state="session",
        help=str(fields_by_name()["question"].metadata["help"]),
    )


def fields(names: tuple[str, ...], errors: dict[str, str]) -> None:
    """Draw single fields, each error under its field; for pages that have some of the inputs."""
    declared = fields_by_name()
    for name in names:
        _field(name, declared[name].metadata, errors.get(name))


def adopt(scenario: Scenario) -> None:
    """Load a whole scenario into the widgets; for callbacks."""
    urlstate.put(**{name: getattr(scenario, name) for name in fields_by_name()})
