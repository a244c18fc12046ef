"""Four batching policies on the same requests."""

import streamlit as st

from planner import charts
from planner.dashboard import headlines, method_text, results, sharing, widgets

plan = results.current_plan()
if not plan.policies:
    sharing.answer(plan.headline)
    widgets.cannot_start(plan.memory)
    st.stop()

outcomes = plan.policies
sharing.answer(headlines.policy_sentence(plan))
st.caption(
    f"The same {plan.scenario.num_requests:,} requests on one replica; only the scheduler differs. Tokens/s and cost "
    "are for a saturated replica; sequences running, KV cache and end-to-end time are at one replica's share of the "
    "peak."
)
widgets.table(headlines.policy_table(plan))

with st.grid("auto", min_column_width=320):
    widgets.show(charts.policy_throughput(outcomes), "batching_throughput")
    widgets.show(charts.policy_kv_use(outcomes), "batching_kv")
    widgets.show(charts.policy_waits(outcomes), "batching_waits")
    widgets.show(charts.policy_slots(outcomes, plan.engine.max_num_seqs or 0), "batching_slots")
    widgets.show(charts.policy_cost(outcomes), "batching_cost")
    with st.container(border=True, height="stretch"):
        st.markdown("**What each policy does**")
        st.markdown(method_text.POLICIES)

st.markdown("**Step by step**")
running, cache = st.columns(2)
with running:
    widgets.show(
        charts.policy_timeline(outcomes, "running", results.timeline_finding(outcomes, "running"), "sequences running"),
        "batching_running",
    )
with cache:
    widgets.show(
        charts.policy_timeline(
            outcomes, "kv_blocks_used", results.timeline_finding(outcomes, "kv_blocks_used"), "KV blocks held"
        ),
        "batching_blocks",
    )
