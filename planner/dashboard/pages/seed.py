"""The seed article's example, reproduced exactly."""

import streamlit as st

from planner.dashboard import frames, results, sharing, widgets

sharing.answer("The article's example, reproduced by the general simulator")
st.caption(
    "200 requests at once, 8 slots, every step takes 1 unit of time, prompts are ignored. Only the scheduler differs."
)
table = frames.seed_rows()
st.table(table, border="horizontal", hide_index=True)
steps = dict(zip(table["scheduling"], table["decode steps"], strict=True))
st.markdown(
    f"**Continuous batching needs {steps['continuous, 8 slots']} steps, one at a time needs "
    f"{steps['one at a time']}**: the ratio is the lesson, not the absolute numbers."
)
st.markdown("**The memory that limits the batch**")
st.table(frames.seed_cache_rows(), border="horizontal", hide_index=True)

st.markdown("**Its five common mistakes, checked against your scenario**")
plan = results.current_plan()
present = {finding.kind: finding for finding in plan.findings}
for kind, text in results.MISTAKES.items():
    found = present.get(kind)
    icon = ":material/warning:" if found else ":material/check:"
    st.markdown(f"{icon} {text}" + (f": {widgets.prose(found.text)}" if found else ""))

st.markdown("**The papers, re-run here**")
st.caption(
    "How much scheduling and memory alone explain: every system gets the same step times and the same KV pool. The "
    "rest of a published ratio comes from kernels and frameworks."
)
papers = frames.paper_results()
st.dataframe(
    papers,
    hide_index=True,
    width="stretch",
    column_config={"source": st.column_config.LinkColumn("source")},
    alt="Published claims beside the simulated ratios",
)
