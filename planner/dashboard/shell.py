"""The frame around every page: page list, sidebar, link state, error boundary."""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import pandas  # noqa: F401 - plotly looks at pandas as it finds it, even half imported by another session's thread
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.dashboard import own, own_machine, sharing, urlstate
from planner.dashboard.inputs import refusals_in_style, sidebar
from planner.dashboard.results import begun, plan_for
from planner.dashboard.widgets import plain, prose
from planner.errors import PlannerError
from planner.jobs import OFFICE
from planner.scenario import Scenario, message, to_query

OFFICE.start()
# Streamlit collects garbage after each run of the script: what is imported by now stays and need not be searched.
gc.collect()
gc.freeze()
LOG = logging.getLogger("planner.dashboard")
PAGES = Path(__file__).parent / "pages"
TITLES = {
    "plan": "Plan",
    "memory": "Memory",
    "latency": "Latency",
    "batching": "Batching lab",
    "fleet": "Fleet & time",
    "fits": "What fits",
    "compare": "Compare",
    "accuracy": "Accuracy",
    "method": "Method",
}
MOST_PROBLEMS = 10  # of a link; a longer list would push the plan off the screen
MOVED = {"seed": "Seed article", "find": "Plan"}  # pages of old links, which lead to where their contents are now
FAULT = (
    "A bug in Headroom kept this part from showing. Your inputs are kept and the other pages still work; the details "
    "are in the server's log."
)


def _first_sight() -> DeltaGenerator:
    # On a session's first run the browser fetches its chart code while the plan is computed, not afterwards.
    place = st.empty()
    if "_scenario" not in st.session_state:
        with place.container():
            st.caption("Planning …")
            unseen = {"visible": False}
            nothing = {
                "data": [{"type": "scatter", "x": [0], "y": [0], "mode": "markers", "marker": {"opacity": 0}}],
                "layout": {"height": 60, "xaxis": unseen, "yaxis": unseen},
            }
            st.plotly_chart(
                nothing, key="_first_sight", config={"displayModeBar": False}, alt="The plan is being computed"
            )
    return place


def run() -> None:
    """Draw the dashboard: one run of the script."""
    st.set_page_config(page_title="Headroom", page_icon="📐", layout="wide", initial_sidebar_state="auto")
    st.html(f"<style>{(PAGES.parent / 'browser' / 'page.css').read_text()}{refusals_in_style()}</style>")
    if st.user.get("is_logged_in") is False:  # None where the host has set up no sign-in
        _sign_in()
        return
    urlstate.load()
    now = urlstate.current()
    pages = [
        st.Page(PAGES / f"{name}.py", title=title, url_path=name, default=name == "plan")
        for name, title in TITLES.items()
    ]
    page = st.navigation(
        pages
        + [
            st.Page(PAGES / f"{name}.py", title=title, url_path=name, visibility="hidden")
            for name, title in MOVED.items()
        ],
        position="top",
    )
    st.html(f'<h1 class="page-name">{page.title}</h1>')  # for readers of the page's outline; others see the navigation
    with st.container(horizontal=True, key="page_links"):  # for phones, which hide the navigation
        for each in pages:
            if each.title != page.title:
                st.page_link(each)
    waiting = _first_sight()
    # The form is drawn while the plan is computed, unless that was refused: the form then says so.
    drawn = st.session_state.get("_refused") != now.scenario
    if drawn:
        _form_meanwhile(now)
    scenario, errors = _planned(now.scenario, dict(now.errors))
    if scenario != now.scenario and drawn:
        _again_without(now.scenario)
    waiting.empty()
    st.session_state["_scenario"], st.session_state["_errors"] = scenario, errors
    urlstate.save(scenario, with_other=page.url_path == "compare", with_view=page.url_path == "accuracy")
    if not drawn:
        _form(scenario, errors)
    _above(scenario, errors)
    try:
        sharing.above()
        page.run()
    except Exception:  # whatever a page raises, the user sees a sentence
        LOG.exception("page %s failed for %s", page.title, to_query(scenario))
        st.error(FAULT, title="Something went wrong")


def _sign_in() -> None:
    st.subheader("Headroom: sign in to plan", anchor=False)
    st.button("Sign in", type="primary", on_click=st.login)


def _form(scenario: Scenario, errors: dict[str, str]) -> None:
    with st.sidebar:
        own.expander()
        own_machine.in_force(scenario)
    sidebar(scenario, errors)


def _form_meanwhile(now: urlstate.Current) -> None:
    try:
        with begun(now.scenario):
            _form(now.scenario, dict(now.errors))
    except PlannerError:
        _again_without(now.scenario)


def _again_without(refused: Scenario) -> None:
    st.session_state["_refused"] = refused
    st.rerun()


def _planned(scenario: Scenario, errors: dict[str, str]) -> tuple[Scenario, dict[str, str]]:
    # A plan can reject what a Scenario allows, such as heads that do not divide: keep the last scenario then.
    try:
        plan_for(scenario)
    except PlannerError as error:
        field = getattr(error, "field", "") or "model"
        errors[field] = f"{message(error)} The plan keeps the last valid value."
        before = urlstate.saved()
        return (before if _works(before) else Scenario()), errors
    except Exception:
        LOG.exception("the plan failed for %s", to_query(scenario))
    return scenario, errors


def _works(scenario: Scenario) -> bool:
    try:
        plan_for(scenario)
    except PlannerError:
        return False
    return True


def _above(scenario: Scenario, errors: dict[str, str]) -> None:
    """Above every page: the plan's name, and the inputs that could not be used."""
    if scenario.title:
        st.caption(plain(scenario.title))
    _said_of_fewer_requests(scenario)
    problems = st.session_state["_problems"]
    if problems:
        told = [prose(text) for text in problems[:MOST_PROBLEMS]]
        if len(problems) > MOST_PROBLEMS:
            told.append(f"And {len(problems) - MOST_PROBLEMS:,} more.")
        st.warning("\n".join(f"- {text}" for text in told), title="Part of this link could not be used")
    if errors:
        several = "Some inputs are not valid" if len(errors) > 1 else "One input is not valid"
        text = "\n".join(f"- {prose(text)}" for text in errors.values())
        st.warning(text, title=several)


def _said_of_fewer_requests(scenario: Scenario) -> None:
    try:
        simulated = plan_for(scenario).scenario.num_requests
    except Exception:  # told where the plan is made
        return
    if simulated < scenario.num_requests:
        st.info(
            f"Simulated {simulated:,} requests instead of {scenario.num_requests:,} to answer in time. "
            "`python -m planner plan` with this link simulates all of them."
        )
