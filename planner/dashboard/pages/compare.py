"""Up to four plans side by side: this one, and those of links or files."""

import streamlit as st

from planner.dashboard import comparison, inputs, results, sharing, urlstate, widgets
from planner.errors import InvalidInput, PlannerError
from planner.scenario import Scenario, compared, from_json, from_query, is_plan_link, joined, message, to_query

state = st.session_state
ours = results.current_plan()
queries = list(compared(state["_other"]))


def keep(more: list[str]) -> None:
    urlstate.compare_with(joined(more))


def add_current() -> None:
    scenario = state["_scenario"]
    named = scenario.replace(title=state["compare_name"].strip()[:120]) if state["compare_name"].strip() else scenario
    keep([*queries, to_query(named)])
    state["compare_name"], state["_compare_problem"] = "", ""


def add_text() -> None:
    text = state["compare_link"].strip()
    state["_compare_problem"] = ""
    if not text:
        return
    try:
        if text.startswith("{"):
            found = to_query(from_json(text).scenario)
        elif not is_plan_link(text):
            raise InvalidInput("link", text[:60], "the link of a plan, from Share, or its JSON")
        else:
            found = text
    except InvalidInput as error:
        state["_compare_problem"] = message(error)
        return
    keep([*queries, found])
    state["compare_link"] = ""


def swap(place: int, scenario: Scenario) -> None:
    mine = to_query(state["_scenario"])
    keep([mine if k == place else query for k, query in enumerate(queries)])
    inputs.adopt(scenario)


def drop(place: int) -> None:
    keep([query for k, query in enumerate(queries) if k != place])


plans, failed = [ours], []
for query in queries:
    try:
        plans.append(results.plan_for(from_query(query).scenario))
    except PlannerError as error:
        failed.append(message(error))
names = comparison.names_of(plans)
sharing.answer(
    comparison.sentence(plans) if len(plans) > 1 else "Compare this plan with up to three others", state["_other"]
)
for text in failed:
    st.error(widgets.prose(text), title="One of the links does not give a plan")

with st.container(border=True):
    full = len(queries) >= urlstate.MOST_COMPARED
    if full:
        st.caption("Four plans are compared. Remove one to add another.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name of this plan as it is now", key="compare_name", disabled=full, placeholder="2 × H100, fp8")
        st.button(
            "Keep it for comparison",
            on_click=add_current,
            disabled=full,
            help="Then change inputs of the form: this plan and the one kept stand side by side.",
        )
    st.text_input(
        "Or add a plan by its link or JSON",
        key="compare_link",
        on_change=add_text,
        disabled=full,
        placeholder="paste a link from Share",
    )
    if state.get("_compare_problem"):
        st.error(widgets.prose(state["_compare_problem"]), title="This is not a plan")
    if state["_other_problems"]:
        said = "\n".join(f"- {widgets.prose(text)}" for text in state["_other_problems"])
        st.warning(said, title="Part of a link could not be used")
    for place, query in enumerate(queries):
        scenario = from_query(query).scenario
        shown = scenario.title or f"Plan {place + 2}"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{widgets.plain(shown)}**", width="stretch")
            st.button("Open in the form", key=f"compare_open_{place}", on_click=swap, args=(place, scenario))
            st.button("Remove", key=f"compare_drop_{place}", on_click=drop, args=(place,))
if len(plans) == 1:
    st.info("Keep this plan and then change inputs, or paste the link of another plan.")
    st.stop()

if comparison.asks_another_question([plan.scenario for plan in plans]):
    st.warning("The plans have different traffic or targets, so their figures are not like for like.")
with st.grid("auto", min_column_width=320):
    for chart in comparison.charts(plans):
        widgets.show(chart, f"compare_{chart.subtitle.split(';')[0].lower().replace(' ', '_')}")
st.markdown(f"**All figures**; in brackets, against {widgets.plain(names[0])}")
widgets.table(comparison.figure_table(plans), "comparison")
st.markdown("**Inputs that differ**")
if comparison.differing_fields([plan.scenario for plan in plans]):
    widgets.table(comparison.input_table(plans), "inputs")
else:
    st.caption("None.")
for name, plan in zip(names, plans, strict=True):
    st.markdown(f"**{widgets.plain(name)}**: {widgets.prose(plan.headline)}")
