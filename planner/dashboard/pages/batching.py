"""What batching does: step by step, and four policies on the same requests."""

import streamlit as st

from planner import charts
from planner.dashboard import headlines, lab, method_text, plan_tables, results, sharing, widgets

plan = results.current_plan()
sharing.answer(headlines.policy_sentence(plan) if plan.policies else plan.headline)
if not plan.policies:
    widgets.cannot_start(plan.memory)
lab.step_by_step()
if not plan.policies:
    lab.article()
    st.stop()

outcomes = plan.policies
st.markdown("**Your requests under four policies**")
st.caption(
    f"The same {plan.scenario.num_requests:,} requests on one replica; only the scheduler differs. Tokens/s and cost "
    "are for a saturated replica; sequences running, KV cache and end-to-end time are at one replica's share of the "
    "peak."
)
widgets.table(plan_tables.policy_table(plan), "policies")

with st.grid("auto", min_column_width=320):
    widgets.show(charts.policy_throughput(outcomes), "batching_throughput")
    widgets.show(charts.policy_kv_use(outcomes), "batching_kv")
    widgets.show(charts.policy_waits(outcomes), "batching_waits")
    widgets.show(charts.policy_slots(outcomes, plan.engine.max_num_seqs or 0), "batching_slots")
    widgets.show(charts.policy_cost(outcomes), "batching_cost")
    with st.container(border=True, height="stretch"):
        st.markdown("**What each policy does**")
        st.markdown(method_text.POLICIES)

with st.grid("auto", min_column_width=340):
    for field, unit in (("running", "sequences running"), ("kv_blocks_used", "KV blocks held")):
        finding = results.timeline_finding(outcomes, field)
        widgets.show(charts.policy_timeline(outcomes, field, finding, unit), f"batching_{field}")
lab.article()
