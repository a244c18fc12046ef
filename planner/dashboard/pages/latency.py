"""Latency against load, its distribution at the peak, and what a step spends its time on."""

import streamlit as st

from planner import charts
from planner.answer import serving_replicas, typical_step
from planner.dashboard import headlines, plan_tables, results, sharing, widgets

plan = results.current_plan()
curve, result, s = plan.curve, plan.result, plan.scenario
if plan.metrics is None or curve is None or result is None or plan.step_time is None:
    sharing.answer(plan.headline)
    widgets.cannot_start(plan.memory)
    st.stop()

sharing.answer(headlines.latency_sentence(plan))
widgets.table(plan_tables.latency_table(plan))
open_loop = plan.scenario.is_open_loop
replicas, rate = serving_replicas(plan), plan.scenario.peak_rate_rps if open_loop else None
targets = {"ttft_s": s.ttft_target_s, "tpot_s": s.tpot_target_s, "e2e_s": s.e2e_target_s}
samples, work = results.latency_samples(result), typical_step(plan)
with st.grid("auto", min_column_width=320):
    for quantity, target in targets.items():
        reached = getattr(plan.metrics, quantity).p95
        title = charts.latency_finding(curve, quantity, replicas, reached)
        chart = charts.latency_against_load(
            curve,
            quantity,
            num_replicas=replicas,
            rate_rps=rate,
            target_s=target,
            p95_s=reached,
            has_targets=bool(plan.scenario.targets),
            title=title,
        )
        widgets.show(chart, f"latency_{quantity}")
    widgets.show(charts.step_terms(plan.step_time, **work), "latency_terms")
    for quantity, values in samples.items():
        widgets.show(charts.distribution(values, quantity, targets[quantity]), f"latency_{quantity}_spread")
if not open_loop:
    st.caption(
        "The curves show the same requests as Poisson arrivals, because a closed loop or a burst has no rate to vary."
    )
with st.expander("Step times of this replica"):
    widgets.table(plan_tables.step_table(plan, work["context_tokens"]))
    widgets.bullets(plan.step_time.notes)
