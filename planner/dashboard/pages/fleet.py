"""Why this many GPUs, what they cost, and how they fare over a day, in a failure and over the months to come."""

import datetime

import streamlit as st

from planner import charts
from planner.answer import day_sentence, orders_left_out, outage_sentence
from planner.dashboard import headlines, plan_tables, results, sharing, time_tables, widgets
from planner.dashboard.day_editor import day_editor

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

widgets.table(plan_tables.cost_table(plan))
widgets.table(plan_tables.load_table(plan))
st.caption(
    "Input and output tokens share the bill by the GPU time that each takes. The targets' limit and full throughput "
    "assume that load in every paid hour."
)
if cost.owned is not None:
    widgets.table(plan_tables.owned_table(plan))
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
    widgets.table(plan_tables.derivations(plan))

scenario = plan.scenario
found = results.over_time_of(plan)
st.markdown("#### 24 hours")
if found.day is None:
    st.caption(
        "Not worked out for prefill and decode on separate replicas."
        if plan.pools is not None
        else "A closed loop or a burst has no rate that changes from hour to hour; give the traffic as a rate to see a "
        "day."
    )
else:
    st.markdown(widgets.prose(f"{day_sentence(found.day_costs, scenario.target_quantile, scenario.price_kind)}."))
    left, right = st.columns(2)
    with left:
        widgets.show(charts.day_replicas(found.day), "fleet_day")
    with right:
        widgets.show(charts.day_misses(found.day, scenario.target_quantile), "fleet_misses")
    widgets.table(time_tables.day_table(found))
    st.caption(widgets.prose(time_tables.how_simulated(found)))
    with st.expander("Draw the day, or take it from a trace"):
        day_editor(scenario)

if found.outage is not None:
    st.markdown("#### One replica fails")
    st.markdown(widgets.prose(f"{outage_sentence(found.outage, scenario.target_quantile)}."))
    widgets.table(time_tables.outage_table(found, scenario.target_quantile))
    st.caption(
        widgets.prose(
            f"A replica starts within {time_tables.format_duration(found.start_up.seconds)}; {found.start_up.source}."
        )
    )

st.markdown("#### 24 months")
if found.growth is None:
    st.caption("No number of replicas meets the targets, so there is nothing to grow.")
else:
    per_replica = scenario.parallelism.gpus_per_replica
    widgets.show(charts.months(found.growth, per_replica, scenario.growth_per_month), "fleet_months")
    if found.growth.orders:
        widgets.table(time_tables.orders_table(plan, found.growth, datetime.date.today()))
        if left_out := orders_left_out(found.growth):
            st.caption(f"{left_out}.")
