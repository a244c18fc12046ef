"""Two plans side by side: this one and the one of a pasted link."""

import streamlit as st

from planner.dashboard import comparison, inputs, results, sharing, urlstate, widgets
from planner.errors import PlannerError
from planner.scenario import Scenario, from_query, message, to_query

state = st.session_state
ours = results.current_plan()


def keep(query: str) -> None:
    state["compare_link"] = query
    urlstate.compare_with(query)


def swap(query: str, scenario: Scenario) -> None:
    keep(query)
    inputs.adopt(scenario)


def take() -> None:
    urlstate.compare_with(state["compare_link"])


state.setdefault("compare_link", state["_other"])
theirs = None
if state["_other"]:
    try:
        theirs = results.plan_for(from_query(state["_other"]).scenario)
    except PlannerError as error:
        st.error(widgets.prose(message(error)), title="The other link does not give a plan")
sharing.answer(comparison.sentence(ours, theirs) if theirs else "Compare this plan with another", state["_other"])

with st.container(border=True):
    st.text_input(
        "Link of the other plan",
        key="compare_link",
        on_change=take,
        placeholder="paste a link from Share",
        persist_state="session",
    )
    with st.container(horizontal=True):
        st.button(
            "Keep this plan as the other",
            on_click=keep,
            args=(to_query(state["_scenario"]),),
            help="Then change inputs on the left to see both plans.",
        )
        if theirs is not None:
            st.button(
                "Swap the two", on_click=swap, args=(to_query(state["_scenario"]), from_query(state["_other"]).scenario)
            )
    if state["_other_problems"]:
        said = "\n".join(f"- {widgets.prose(text)}" for text in state["_other_problems"])
        st.warning(said, title="Part of the other link could not be used")
if theirs is None:
    st.info("Paste the link of another plan, or keep this plan as the other and then change inputs on the left.")
    st.stop()

if comparison.asks_another_question(ours.scenario, theirs.scenario):
    st.warning("The plans have different traffic or targets, so their figures are not like for like.")
for name, plan in (("This plan", ours), ("The other", theirs)):
    title = f" ({widgets.plain(plan.scenario.title)})" if plan.scenario.title else ""
    st.markdown(f"**{name}**{title}: {widgets.prose(plan.headline)}")
widgets.table(comparison.figure_table(ours, theirs))
st.markdown("**Inputs that differ**")
if comparison.differing(ours.scenario, theirs.scenario):
    widgets.table(comparison.input_table(ours.scenario, theirs.scenario))
else:
    st.caption("None.")
