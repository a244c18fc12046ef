"""Latency over load, its distribution at the peak, and what a step consists of."""

import streamlit as st

from planner import charts
from planner.dashboard import headlines, results, widgets

plan = results.current_plan()
curve, result, level = plan.curve, plan.result, plan.scenario.service_level
if plan.metrics is None or curve is None or result is None or plan.step_time is None:
    st.subheader(widgets.prose(plan.headline), anchor=False)
    widgets.cannot_start(plan.memory.refusal, plan.memory.remedies)
    st.stop()

st.subheader(widgets.prose(headlines.latency_sentence(plan)), anchor=False)
st.markdown(headlines.latency_table(plan))
open_loop = plan.scenario.arrivals in ("poisson", "bursty")
targets = {"ttft_s": level.ttft_s, "tpot_s": level.tpot_s, "e2e_s": None}
for column, (quantity, target) in zip(st.columns(3), targets.items(), strict=True):
    with column:
        widgets.show(
            charts.latency_against_load(
                curve,
                quantity,
                num_replicas=results.serving_replicas(plan),
                rate_rps=plan.scenario.peak_rate_rps if open_loop else None,
                target_s=target,
            ),
            f"latency_{quantity}",
        )
if not open_loop:
    st.caption(
        "The curves show the same requests arriving as a Poisson stream; this scenario's own arrivals have no rate."
    )

samples = results.latency_samples(result)
left, right = st.columns(2)
with left:
    widgets.show(charts.distribution(samples["ttft_s"], "ttft_s", level.ttft_s, level.quantile), "latency_ttft_cdf")
with right:
    widgets.show(charts.distribution(samples["tpot_s"], "tpot_s", level.tpot_s, level.quantile), "latency_tpot_cdf")

work = results.typical_step(plan)
widgets.show(charts.step_terms(plan.step_time, **work), "latency_terms")
with st.expander("Step times of this replica"):
    st.markdown(headlines.step_table(plan, work["context_tokens"]))
    widgets.bullets(plan.step_time.notes)
