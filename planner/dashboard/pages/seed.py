"""The example of the article that this tool grew from, reproduced exactly."""

import streamlit as st

from planner.dashboard import frames, results, sharing, widgets

sharing.answer("The article's example, reproduced by the general simulator")
st.caption("200 requests at once, 8 slots, every step costs 1, prompts ignored. Only the scheduler differs.")
table = frames.seed_rows()
st.table(table, border="horizontal", hide_index=True)
steps = dict(zip(table["scheduling"], table["decode steps"], strict=True))
st.markdown(
    f"**Continuous batching needs {steps['continuous, 8 slots']} steps where one at a time needs "
    f"{steps['one at a time']}**: the proportions, not the absolute numbers, are the lesson."
)
st.markdown("**The memory that limits the batch**")
st.table(frames.seed_cache_rows(), border="horizontal", hide_index=True)

st.markdown("**Its five mistakes, watched for in your scenario**")
plan = results.current_plan()
present = {finding.kind: finding for finding in plan.findings}
for kind, text in results.MISTAKES.items():
    found = present.get(kind)
    icon = ":material/warning:" if found else ":material/check:"
    st.markdown(f"{icon} {text}" + (f" — {widgets.prose(found.text)}" if found else ""))

st.markdown("**The papers, re-run here**")
st.caption(
    "What scheduling and memory alone explain: every system gets the same step times and the same KV pool, so a ratio "
    "holds no kernel and no framework. What it lacks of the published one is theirs."
)
papers = frames.paper_results()
st.dataframe(
    papers,
    hide_index=True,
    width="stretch",
    column_config={"source": st.column_config.LinkColumn("source")},
    alt="Published claims beside what this simulator gives",
)
