"""What fills each GPU, and where every number comes from."""

import streamlit as st

from planner import charts
from planner.dashboard import headlines, results, sharing, widgets
from planner.units import GIB, format_gib, format_number

plan = results.current_plan()
memory, result = plan.memory, plan.result

sharing.answer(headlines.memory_sentence(plan))
if not memory.starts:
    widgets.cannot_start(memory.refusal, memory.remedies)

widgets.show(
    charts.memory_bar(
        memory,
        result.mean_kv_used_fraction if result else None,
        result.mean_kv_written_fraction if result else None,
        gpu=plan.gpu.name,
        height=280,
    ),
    "memory_bar",
)

identity = results.pool_identity(plan)
with st.container(border=True):
    st.markdown("**Tokens × bytes per token = pool**")
    st.markdown(widgets.prose(identity.text))
    if identity.holds:
        st.badge("adds up", icon=":material/check:", color="green")
    else:
        st.badge("does not add up: a fault, please report it", icon=":material/close:", color="red")

left, right = st.columns(2)
with left:
    widgets.show(charts.concurrency(memory), "memory_concurrency")
    st.caption(
        widgets.prose(
            f"The traffic holds {format_number(plan.mean_prompt_tokens + plan.mean_output_tokens / 2)} tokens per "
            f"running sequence on average; reserving sets aside {memory.max_model_len:,}. The scheduler runs at most "
            f"{memory.max_num_seqs:,} sequences whatever the memory."
        )
    )
with right:
    widgets.show(charts.weights_by_group(memory), "memory_weights")

st.markdown("**Every number, opened**")
with st.grid("auto", min_column_width=340, gap="small"):
    for item in memory.formulas:
        widgets.formula(item)

with st.expander("How sure this is"):
    st.markdown(
        widgets.prose(
            f"Weights ± {memory.weights_error:.0%}, KV pool ± {memory.kv_pool_error:.0%}: nine of ten published "
            f"start-up logs lie within. In figures: weights {format_gib(memory.weights_bytes)} ± "
            f"{memory.weights_error * memory.weights_bytes / GIB:.2f} GiB, "
            f"pool {format_gib(max(0.0, memory.kv_pool_bytes))} ± "
            f"{memory.kv_pool_error * max(0.0, memory.kv_pool_bytes) / GIB:.2f} GiB."
        )
    )
    widgets.bullets(memory.notes)
