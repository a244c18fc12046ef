"""Search for the cheapest deployment that meets the targets."""

import streamlit as st

from planner.catalog import gpu_names
from planner.dashboard import frames, headlines, inputs, results, sharing, urlstate, widgets, words
from planner.errors import PlannerError
from planner.scenario import message, to_query
from planner.units import counted

scenario = st.session_state["_scenario"]
sharing.answer("Find the cheapest deployment that meets the targets")
st.caption(
    "Model, context, traffic, targets and engine come from the sidebar; GPU, tensor and pipeline parallelism, weight "
    "precision and replicas vary. Deployments that do not fit, or cost more than the best one even at full load, are "
    "dropped early; the rest is simulated."
)
priced = inputs.gpu_names_with_price()
common = [name for name in headlines.COMMON_GPUS if name in gpu_names()]
with st.form("find", border=True):
    chosen = st.multiselect("GPUs to consider", gpu_names(), common, key="find_gpus", persist_state="session")
    everything = st.checkbox(
        f"All {len(priced)} GPUs with a known price (takes longer)", key="find_all", persist_state="session"
    )
    dtypes = st.multiselect(
        "Weight precisions",
        inputs.weight_dtype_names(),
        list(dict.fromkeys((scenario.weight_dtype, "fp8"))),
        format_func=lambda name: words.WORDS["weight_dtype"].get(name, name),
        key="find_dtypes",
        persist_state="session",
    )
    go = st.form_submit_button("Run the search", type="primary")

asked = (priced if everything else tuple(chosen), tuple(dtypes) or None)
if go and not asked[0]:
    st.error("Choose at least one GPU.")
elif go:
    st.session_state["_find"] = (scenario, *asked)
asked_before = st.session_state.get("_find")
if asked_before is None:
    st.info("No search yet. It takes a few seconds to a minute.")
    st.stop()
if asked_before[0] != scenario:
    st.warning("The inputs have changed since this search. Run it again.")
try:
    found = results.search_for(*asked_before)
except PlannerError as error:
    st.error(widgets.prose(message(error)))
    st.stop()

st.markdown(f"**{widgets.prose(found.summary)}**")
st.caption(
    f"Considered {counted(found.candidates_considered, 'deployment')} in {found.wall_s:.1f} s: "
    f"{found.rejected_by_memory:,} do not start, {found.pruned_by_bound:,} cost more than the best even at full load, "
    f"{found.candidates_simulated:,} simulated."
)
table = frames.search_frame(found)
picked = st.dataframe(
    table,
    hide_index=True,
    width="stretch",
    on_select="rerun",
    selection_mode="single-row",
    key="find_table",
    column_config=frames.SEARCH_COLUMNS,
    alt="Deployments, the cheapest that meets the targets first",
)
rows = picked["selection"]["rows"]


def adopt(index: int) -> None:
    candidate = found.candidates[index].scenario
    inputs.adopt(candidate)


if rows and rows[0] < len(found.candidates):
    with st.container(horizontal=True):
        st.button("Plan with the selected deployment", on_click=adopt, args=(rows[0],), type="primary")
        if st.button("Compare it with this plan"):
            urlstate.compare_with(to_query(found.candidates[rows[0]].scenario))
            st.session_state["compare_link"] = st.session_state["_other"]
            st.switch_page(headlines.PAGES / "compare.py")
else:
    st.caption("Select a row to plan with it or to compare it.")
