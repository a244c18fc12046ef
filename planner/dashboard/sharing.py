"""The first line of every page: the answer, and the button that shares it."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from planner.answer import plan_html
from planner.dashboard.headlines import PAGES
from planner.dashboard.results import plan_for
from planner.dashboard.urlstate import OTHER
from planner.dashboard.widgets import prose
from planner.scenario import VIEWED, Scenario, to_json, to_query


def answer(sentence: str, other: str = "") -> None:
    """The page's first sentence, and beside it the link of the scenario (and of the one it is compared with)."""
    said, shared = st.columns([6, 1], vertical_alignment="top")
    with said:
        st.subheader(prose(sentence), anchor=False)
    with shared:
        share(st.session_state["_scenario"], other)


def link(scenario: Scenario, page_url: str | None, other: str = "") -> str:
    """The address that opens this scenario on this page; only the query where the page's address is unknown."""
    query = to_query(scenario) + (f"&{urlencode({OTHER: other})}" if other else "")
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


def share(scenario: Scenario, other: str = "") -> None:
    """The scenario as a link, a report and a file."""
    with st.popover("Share", icon=":material/link:", width="stretch"):
        st.markdown("This link opens the same plan, seed included:")
        st.code(link(scenario, st.context.url, other), language=None, wrap_lines=True)
        st.caption("The link shows the inputs in clear text; keep secrets out of the plan's name.")
        st.text_input("Name of this plan", key="s_title", persist_state="session")
        st.page_link(PAGES / "compare.py", label="Compare with another plan", icon=":material/compare_arrows:")
        with st.container(horizontal=True):
            st.download_button(
                "Printable report",
                lambda: plan_html(plan_for(scenario)),
                "headroom.html",
                "text/html",
                on_click="ignore",
            )
            st.download_button(
                "Scenario as JSON", to_json(scenario), "headroom-scenario.json", "application/json", on_click="ignore"
            )
