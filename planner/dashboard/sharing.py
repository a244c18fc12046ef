"""The first line of every page: the answer, and the button that shares it."""

from __future__ import annotations

from datetime import date
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from planner.answer import plan_html
from planner.dashboard.headlines import PAGES
from planner.dashboard.inputs import adopt, fields
from planner.dashboard.results import plan_for
from planner.dashboard.searches import SEARCHES
from planner.dashboard.seen import changed_since, seen_text
from planner.dashboard.urlstate import MOST_OF_NOTE, OTHER, key
from planner.dashboard.widgets import plain, prose
from planner.errors import PlannerError
from planner.scenario import NOTE, SEEN, VIEWED, Scenario, from_json, message, to_json, to_query


def answer(sentence: str, other: str = "") -> None:
    """The page's first sentence, and beside it the link of the scenario (and of the one it is compared with)."""
    st.session_state.pop("_share_typed", None)  # a run of the whole page shows what was typed
    with st.container(horizontal=True, key="answer"):
        st.subheader(prose(sentence), anchor=False, width="stretch")
        share(st.session_state["_scenario"], other)


def link(scenario: Scenario, page_url: str | None, other: str = "", **more: str) -> str:
    """The address that opens this scenario on this page; only the query where the page's address is unknown.

    `more` are parameters of the page, left out where they are empty.
    """
    extra = {name: text for name, text in {OTHER: other, **more}.items() if text}
    query = to_query(scenario) + (f"&{urlencode(extra)}" if extra else "")
    try:
        parts = urlsplit(page_url or "")
    except ValueError:
        return f"?{query}"
    if not parts.scheme:
        return f"?{query}"
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", query, ""))


def view_link(scenario: Scenario, page_url: str | None, view: str) -> str:
    """The address that opens the Accuracy page at one measured deployment, with this scenario."""
    return f"{link(scenario, page_url)}&{urlencode({VIEWED: view})}"


@st.fragment
def share(scenario: Scenario, other: str = "") -> None:
    """The scenario as a link, a report and a file; drawn when it is opened, without the rest of the page."""
    state = st.session_state
    typed = state.get(key("title"), scenario.title), state.get("share_note") or "", state.get("_files_opened")
    if state.setdefault("_share_typed", typed) != typed:
        state["_share_typed"] = typed
        st.rerun()  # name, note and an opened file are part of every page
    menu = st.popover("Share", icon=":material/link:", key="share", on_change="rerun")
    if menu.open:
        with menu:
            _ways(scenario, other)


def _ways(scenario: Scenario, other: str) -> None:
    st.markdown("This link opens the same plan, seed included:")
    page = {SEEN: _seen(scenario), NOTE: st.session_state.get("share_note", "")}
    with st.container(key="share_link"):  # whose copy button is always shown
        st.code(link(scenario, st.context.url, other, **page), language=None, wrap_lines=True)
    st.caption(
        "It shows the inputs in clear text: keep secrets out of name and notes. Whoever opens it later learns what "
        "has changed since today."
    )
    fields(("title",), {})
    st.text_area("Notes, shown above the plan", key="share_note", max_chars=MOST_OF_NOTE, persist_state="session")
    st.page_link(PAGES / "compare.py", label="Compare with other plans", icon=":material/compare_arrows:")
    address = st.context.url
    with st.container(horizontal=True):
        st.download_button(
            "Report, two pages",
            lambda: _report(scenario, address),
            "headroom-report.html",
            "text/html",
            on_click="ignore",
            help="One file that opens without a network, to forward or to print to PDF.",
        )
        st.download_button(
            "Scenario as JSON",
            lambda: to_json(scenario),
            "headroom-scenario.json",
            "application/json",
            on_click="ignore",
        )
    st.file_uploader(
        "Open a scenario from a file",
        type="json",
        key="share_file",
        on_change=_open_file,
        help="What Scenario as JSON or `plan --json` wrote.",
    )
    if st.session_state.get("_file_problem"):
        st.error(prose(st.session_state["_file_problem"]), title="This file holds no scenario")


def _seen(scenario: Scenario) -> str:
    try:
        return seen_text(plan_for(scenario), date.today())
    except PlannerError:
        return ""


def _report(scenario: Scenario, address: str | None) -> str:
    running = SEARCHES.look(scenario, start=False)  # what the page has found so far
    found = running.found.candidates if running is not None and running.found is not None else ()
    changes = running.changes if running is not None else ()
    return plan_html(plan_for(scenario), link=link(scenario, address), alternatives=found, changes=changes)


def _open_file() -> None:
    """Load the scenario of an uploaded file into the form."""
    state, file = st.session_state, st.session_state["share_file"]
    state["_file_problem"] = ""
    if file is None:
        return
    try:
        found = from_json(file.getvalue().decode("utf-8", errors="replace"))
    except PlannerError as error:
        state["_file_problem"] = message(error)
        return
    adopt(found.scenario)
    state["_files_opened"] = state.get("_files_opened", 0) + 1
    state["_file_notes"] = found.problems


def above() -> None:
    """Above the page: the note of the link, what has changed since it was made, what of a file could not be used."""
    state = st.session_state
    if state.get("share_note"):
        st.caption(plain(state["share_note"]))
    if state.get("_file_notes"):
        said = "\n".join(f"- {prose(text)}" for text in state.pop("_file_notes"))
        st.warning(said, title="Part of the file could not be used")
    if state.get("_seen"):
        changed = changed_since(state["_seen"], plan_for(state["_scenario"]))
        if changed:
            st.info(prose(changed))
