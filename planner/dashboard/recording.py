"""Recorded traffic on the page: which column is what, and what the recording looks like."""

from __future__ import annotations

import streamlit as st

from planner import charts
from planner.dashboard import widgets
from planner.dashboard.tasks import Columns
from planner.reading import Reading, columns_of
from planner.units import format_duration, format_number, format_percent
from planner.workload import TRACE_ROLES, TraceSummary

LABELS = {"arrival": "Time of arrival", "prompt": "Prompt tokens", "output": "Answer tokens"}
NOT_THERE = "(not in this file)"


def chosen_columns() -> Columns:
    """The columns that the user chose for the file at hand, by role; none as long as they read by themselves."""
    chosen: Columns = st.session_state.get("_own_columns", ())
    return chosen


def forget_columns() -> None:
    """Another file has other columns."""
    st.session_state["_own_columns"] = ()
    for role in TRACE_ROLES:
        st.session_state.pop(f"own_column_{role}", None)


def ask_for_columns(data: bytes, reading: Reading | None, name: str = "") -> bool:
    """Offer to say which column is what, where the file is a table that does not read by its names alone.

    Parameters
    ----------
    data : bytes
        The file.
    reading : Reading, optional
        What it says; None where it could not be read.
    name : str
        Of the file, where there are several.

    Returns
    -------
    bool
        Whether the choice is offered.
    """
    if reading is not None and reading.traffic is None:
        return False
    found = columns_of(data)
    if found is None or (reading is not None and len(found.known) == len(TRACE_ROLES) and not chosen_columns()):
        return False
    if reading is None and not chosen_columns():
        this = widgets.plain(name) or "This"
        table = "If it is a table of recorded traffic, say below:"
        st.info(f"{this} is no log and no benchmark that Headroom knows. {table}")
    st.markdown("**Which column is what?**")
    for role in TRACE_ROLES:
        options = [*found.names] if role == "arrival" else [NOT_THERE, *found.names]
        chosen = dict(chosen_columns()).get(role) or found.known.get(role)
        st.selectbox(
            LABELS[role],
            options,
            index=options.index(chosen) if chosen in options else (None if role == "arrival" else 0),
            key=f"own_column_{role}",
            placeholder="Choose a column",
            on_change=_choose,
        )
    st.caption("Without a column of tokens, the lengths of the plan stand in.")
    return True


def _choose() -> None:
    # Another file takes these widgets away, which Streamlit counts as a change of theirs.
    picked = {role: st.session_state.get(f"own_column_{role}") for role in TRACE_ROLES}
    if picked["arrival"] is not None:
        named = {role: "" if name in (None, NOT_THERE) else name for role, name in picked.items()}
        st.session_state["_own_columns"] = tuple(named.items())


def show_recording(told: TraceSummary, key: str = "own") -> None:
    """Rate over time, bursts, lengths, reuse, and the shape of a day and a week where the recording has them.

    `key` begins the keys of the charts.
    """
    widgets.show(charts.rate_over_time(told), f"{key}_rate")
    left, right = st.columns(2)
    with left:
        widgets.show(charts.recorded_lengths(told), f"{key}_lengths")
    with right:
        widgets.show(charts.recorded_gaps(told), f"{key}_gaps")
    widgets.show(charts.recorded_day(told), f"{key}_day")
    widgets.show(charts.recorded_week(told), f"{key}_week")
    st.markdown(widgets.prose(reuse_sentence(told)))
    st.caption(
        "Filling in the form takes over rate, burstiness, reuse and sixteen quantiles of each length: that is what "
        "the link carries. The recording itself stays here."
    )


def figure_rows(told: TraceSummary) -> list[dict[str, str]]:
    """The figures of a recording in words."""
    figures = {
        "Requests": f"{told.num_requests:,}",
        "Time from first to last": format_duration(told.span_s),
        "Mean rate": f"{format_number(told.mean_rps)} req/s",
        "Highest rate": f"{format_number(told.peak_rps)} req/s over {format_duration(told.bin_s)}",
        "Burstiness (deviation ÷ mean of the gaps)": f"{format_number(told.gap_cv)}; 1 for independent users",
        "Prompt, mean": f"{format_number(told.mean_prompt_tokens)} tokens",
        "Answer, mean": f"{format_number(told.mean_output_tokens)} tokens",
        "Prompt tokens that repeat a prefix": format_percent(told.reused_fraction),
    }
    return [{"Figure": name, "Value": value} for name, value in figures.items()]


def reuse_sentence(told: TraceSummary) -> str:
    """How much of the prompts repeats what an earlier request had."""
    if told.reused_fraction <= 0:
        return "The recording names no shared prefixes."
    return f"{format_percent(told.reused_fraction)} of the prompt tokens repeat a prefix of an earlier request."
