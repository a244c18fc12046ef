"""What fills each GPU, with the derivation of every number."""

import streamlit as st

from planner import charts
from planner.answer import fit_on_rank
from planner.dashboard import derivations, headlines, results, sharing, widgets
from planner.units import format_number

plan = results.current_plan()
memory, result = plan.memory, plan.result

sharing.answer(headlines.memory_sentence(plan))
if not memory.starts:
    widgets.cannot_start(memory)

widgets.show(
    charts.memory_bar(
        memory,
        result.mean_kv_used_fraction if result else None,
        result.mean_kv_written_fraction if result else None,
        gpu=plan.gpu.name,
        height=280,
    ),
    "memory_bar",
    derivations.band_sentence(memory),
)

identity = derivations.pool_identity(memory)
if identity is not None:
    with st.container(border=True):
        st.markdown("**Tokens × bytes per token = pool**")
        st.markdown(widgets.prose(identity.text))
        if identity.holds:
            st.badge("adds up", icon=":material/check:", color="green")
        else:
            st.badge("does not add up: a bug, please report it", icon=":material/close:", color="red")

shared = plan.scenario.shared_prefix_tokens if plan.engine.enable_prefix_caching else 0
common = f", with the shared prompt of {shared:,} stored once" if shared else ""
limit = "max_num_seqs" if not memory.state_bytes else "limited by max_num_seqs or by state memory, whichever is smaller"
concurrency = charts.concurrency(memory, plan.engine.kv_reservation, fit_on_rank(plan))
with st.grid("auto", min_column_width=340):
    widgets.show(
        concurrency,
        "memory_concurrency",
        f"A running sequence holds {format_number(plan.mean_prompt_tokens + plan.mean_output_tokens / 2)} tokens on "
        f"average{common}; reserving max_model_len sets aside {memory.max_model_len:,}. The scheduler runs at most "
        f"{memory.max_num_seqs:,} at once ({limit}).",
    )
    widgets.show(charts.weights_by_group(memory), "memory_weights")

st.markdown("**Every number and how it is derived**")
with st.grid("auto", min_column_width=340, gap="small"):
    for item in derivations.memory_formulas(plan):
        widgets.formula(item)
with st.expander("Weights by tensor group"):
    widgets.table(derivations.weights_table(plan))
if memory.notes:
    with st.expander("What these figures rest on"):
        widgets.bullets(memory.notes)
