"""Why this many GPUs, and what they cost beside a hosted API and by utilisation."""

import streamlit as st

from planner import charts
from planner.dashboard import headlines, results, sharing, widgets

plan = results.current_plan()
cost, curve = plan.cost, plan.curve
sharing.answer(headlines.cost_sentence(plan))
if cost is None or curve is None:
    widgets.cannot_start(plan.memory)
    st.stop()

left, right = st.columns(2)
with left:
    widgets.show(charts.gpu_chain(plan.chain, plan.num_gpus), "fleet_chain")
with right, st.container(border=True):
    st.markdown("**Why this many GPUs**")
    widgets.bullets(f"{link.reason}: {headlines.gpus(link.gpus)}; {link.detail}" for link in plan.chain)
    widgets.bullets(plan.reasons[1:])

widgets.table(headlines.cost_table(plan))
widgets.table(headlines.load_table(plan))
st.caption(
    "Input and output tokens share the bill by the GPU time that each takes. The targets' limit and full throughput "
    "assume that load in every paid hour."
)
if cost.owned is not None:
    widgets.table(headlines.owned_table(plan))
with st.expander("Where the prices come from"):
    widgets.bullets([*(f"GPU: {part.strip()}" for part in cost.price_source.split(";")), f"API: {cost.api_source}"])

left, right = st.columns(2)
with left:
    comparison = charts.api_comparison(cost)
    if comparison is None:
        with st.container(border=True):
            st.markdown(f"**{headlines.not_compared(plan)}**")
    widgets.show(comparison, "fleet_api")
with right:
    widgets.show(charts.break_even_map(cost), "fleet_map")
used = results.use_of_fleet(plan)
if used is not None:
    widgets.show(
        charts.cost_against_utilisation(
            cost.usd_per_hour, used.capacity_tokens_per_s, used.mean_fraction, cost.api_usd_per_million_tokens
        ),
        "fleet_use",
    )
with st.expander("Where these figures come from"):
    widgets.table(headlines.derivations(plan))
