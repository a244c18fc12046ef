"""The example of the article that this tool grew from, reproduced exactly."""

import streamlit as st

from planner.dashboard import results, widgets

st.subheader("The article's example, reproduced by the general simulator", anchor=False)
st.caption("200 requests at once, 8 slots, every step costs 1, prompts ignored. Only the scheduler differs.")
table = results.seed_rows()
if table is None:
    st.info("The example is not part of this copy.")
else:
    st.dataframe(table, hide_index=True, width="stretch", alt="Decode steps, slots and waits of three policies")
    st.markdown(
        "**Continuous batching needs 3,319 steps where one at a time needs 25,505**: the proportions, not the absolute "
        "numbers, are the lesson."
    )
st.markdown("**The memory that limits the batch**")
st.dataframe(results.seed_cache_rows(), hide_index=True, width="stretch", alt="KV cache of the article's two shapes")

st.markdown("**Its five mistakes, watched for in your scenario**")
plan = results.current_plan()
present = {finding.kind: finding for finding in plan.findings}
for kind, text in results.MISTAKES.items():
    found = present.get(kind)
    icon = ":material/warning:" if found else ":material/check:"
    st.markdown(f"{icon} {text}" + (f" — {widgets.prose(found.text)}" if found else ""))

papers = results.paper_results()
if papers is not None:
    st.markdown("**The papers, re-run here**")
    st.dataframe(papers, hide_index=True, width="stretch", alt="Published claims beside what this simulator gives")
