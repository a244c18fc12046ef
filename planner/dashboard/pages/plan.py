"""The first screen: the answer, five figures, what decides it, what else would do, and the charts behind it."""

import streamlit as st

from planner import charts
from planner.answer import SURE, Finding, serving_replicas, sure_line, target_label
from planner.dashboard import (
    alternatives,
    commands,
    headlines,
    inputs,
    own_machine,
    plan_tables,
    results,
    sharing,
    tiles,
    urlstate,
    widgets,
)
from planner.units import format_percent

MOST_ACROSS = 5  # tiles; more of them stand in two rows

plan = results.current_plan()
memory, metrics, curve, cost = plan.memory, plan.metrics, plan.curve, plan.cost
spec = plan.gpu

pools = None if plan.pools is None else (plan.pools.num_prefill, plan.pools.num_decode)
inputs.question(st.session_state["_scenario"], plan.num_replicas, pools)
if plan.scenario.asks == "take":
    st.page_link(
        headlines.PAGES / "fits.py",
        label=f"Which models fit on {widgets.plain(spec.name)} at all?",
        icon=":material/memory:",
    )
sharing.answer(plan.headline)
verdict, surer = plan.verdict, tiles.surer_gpus(plan)
said = [tiles.verdict_line(verdict)] if verdict is not None else []
st.markdown("\n\n".join([*said, tiles.badge_line(tiles.badges(plan))]))
if surer is not None:
    st.button(
        f"Make it {format_percent(SURE)} sure: {headlines.gpus(surer)}",
        on_click=urlstate.put,
        kwargs={"question": "will", "num_replicas": surer // plan.scenario.parallelism.gpus_per_replica},
        key="make_sure",
    )

shown = tiles.tiles(plan)
across = len(shown) if len(shown) <= MOST_ACROSS else -(-len(shown) // 2)
if shown:
    with st.grid(across, min_column_width=150, gap="small", key="tiles"):
        for tile in shown:
            with st.container(border=True, height="stretch", gap="xsmall"):
                st.metric(tile.label, tile.value, tile.beside, help=tile.help, delta_color="off", delta_arrow="off")
                drawing = tiles.drawing(tile)
                if drawing:
                    st.html(drawing)
if metrics is not None:
    st.caption(widgets.prose(headlines.percentiles(plan)))

if verdict is not None:
    with st.expander("How sure, and the measurement that would tell most"):
        if told := sure_line(verdict):
            st.markdown(widgets.prose(f"{told}."))
        st.markdown(
            widgets.prose(
                f"Most in doubt is {target_label(verdict.narrows)}. This command loads one replica as the plan does; "
                "compare what it reports with the figures above:"
            )
        )
        st.code(verdict.measurement, language="bash", wrap_lines=True)
        own_machine.next_test(plan.scenario)

if not plan.fits and memory.remedies:
    st.markdown("**What would make it start**, in the order to try:")
    alternatives.remedies(memory.remedies, st.session_state["_scenario"])
if not plan.fits:
    st.page_link(
        headlines.PAGES / "fits.py", label=f"What fits on {widgets.plain(spec.name)}?", icon=":material/memory:"
    )


def _findings(found: list[Finding]) -> None:
    st.markdown("**Worth knowing**")
    for finding in found:
        icon = ":material/warning:" if finding.severity == "warning" else ":material/info:"
        st.markdown(f"{icon} {widgets.prose(finding.text)}")
        if finding.change:
            st.button(
                "Apply",
                key=f"finding_{finding.kind}",
                help="Plans with this change",
                on_click=inputs.adopt,
                args=(plan.scenario.replace(**finding.change),),
            )


findings = [finding for finding in plan.findings if finding.kind != "api_cheaper"]  # a badge above says it
cards = st.columns(2) if plan.fits and findings else [st.container(), st.container()]
if plan.fits:
    with cards[0], st.container(border=True, height="stretch"):
        st.markdown("**Why this answer**")
        widgets.bullets(plan.reasons)
elif memory.longest_context_tokens:
    st.caption(f"Longest context that starts: {memory.longest_context_tokens:,} tokens.")
if findings:
    with cards[1], st.container(border=True, height="stretch"):
        _findings(findings)

alternatives.show(plan, st.session_state["_scenario"], st.session_state["_errors"])

# The charts are drawn last, when the figures are on the screen: to draw both at once would hold those up.
left, right = st.columns(2)
policies = st.container()
if plan.fits:
    st.page_link(
        headlines.PAGES / "batching.py", label="Watch these policies step by step", icon=":material/stacked_bar_chart:"
    )
    widgets.folded(
        "Concurrency, KV cache, latency and cost of each policy",
        "policy_figures",
        lambda: widgets.table(plan_tables.policy_table(plan)),
    )


def _origins() -> None:
    widgets.table(plan_tables.derivations(plan))
    st.page_link(
        headlines.PAGES / "method.py", label="Vocabulary, formulas, sources and limits", icon=":material/menu_book:"
    )


widgets.folded("Where these figures come from", "origins", _origins)

with st.container(border=True):
    commands.section()

result = plan.result
with left:
    widgets.show(
        charts.memory_bar(
            memory,
            result.mean_kv_used_fraction if result else None,
            result.mean_kv_written_fraction if result else None,
            gpu=spec.name,
        ),
        "plan_memory",
    )
with right:
    if curve is not None and curve.points:
        open_loop = plan.scenario.is_open_loop
        widgets.show(
            charts.latency_against_load(
                curve,
                "ttft_s",
                num_replicas=serving_replicas(plan),
                rate_rps=plan.scenario.peak_rate_rps if open_loop else None,
                target_s=plan.scenario.ttft_target_s,
                p95_s=metrics.ttft_s.p95 if metrics is not None else None,
                has_targets=bool(plan.scenario.targets),
            ),
            "plan_load",
        )
    else:
        with st.container(border=True, height="stretch"):
            st.markdown("**The engine says**")
            st.markdown(widgets.prose(memory.refusal or "No request of this traffic fits."))
            st.caption("Latency against load appears here once the engine starts.")

if plan.fits:
    with policies:
        widgets.show(charts.policy_throughput(plan.policies), "plan_policies")
