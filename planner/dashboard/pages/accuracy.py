"""Predicted against measured, by class, beside AIConfigurator."""

import streamlit as st

from planner import charts
from planner.dashboard import results, sharing, widgets

plan = results.current_plan()
rows = results.accuracy_rows()
sharing.answer("How far the predictions are from published measurements")
if rows is None or rows.empty:
    st.info(
        "No comparison ships with this copy. `python -m planner validate FILE.csv` compares predictions with a file of "
        "measurements; until then take the figures as estimates whose error is not known here."
    )
    st.stop()

with st.container(horizontal=True):
    quantity = st.selectbox("Quantity", sorted(rows["quantity"].unique()), key="acc_quantity", persist_state="session")
    scope = st.selectbox(
        "Rows",
        ["all", "this GPU", "this engine", "this model", "this class (dense or MoE)"],
        key="acc_scope",
        persist_state="session",
    )
of_quantity = rows[rows["quantity"] == quantity]
kept = results.rows_like(of_quantity, plan, scope)
if kept.empty:
    st.warning(
        f"No measurement of {widgets.prose(quantity)} for {widgets.prose(scope)}: "
        "the figure of the plan rests on physics alone."
    )
else:
    texts = [
        f"{row.model}, {row.gpu}, {row.engine}<br>{row.source}"
        for row in kept[["model", "gpu", "engine", "source"]].itertuples()
    ]
    peer = kept["peer_predicted"].to_numpy(float) if "peer_predicted" in kept else None
    widgets.show(
        charts.predicted_against_measured(
            str(quantity),
            kept["measured"].to_numpy(float),
            kept["predicted"].to_numpy(float),
            [widgets.hover_text(text) for text in texts],
            peer,
        ),
        "accuracy_scatter",
    )

tabs = st.tabs(["By class", "By GPU", "By engine", "By model", "Rows"])
for tab, column in zip(tabs, ("class", "gpu", "engine", "model"), strict=False):
    with tab:
        st.dataframe(
            results.error_table(rows if column == "class" else of_quantity, column),
            hide_index=True,
            width="stretch",
            column_config=results.ERROR_COLUMNS,
            alt=f"Errors by {column}",
        )
with tabs[4]:
    st.dataframe(
        kept.head(500),
        hide_index=True,
        width="stretch",
        column_config={"source": st.column_config.LinkColumn("source")},
        alt="Measured rows and their sources",
    )
st.caption(
    "Errors are |predicted ÷ measured − 1|; the signed median shows whether a class is flattered. AIConfigurator 0.12 "
    "is shown on the rows that it predicts, ours on the same rows."
)
