"""Predictions against published measurements, beside AIConfigurator's."""

import pandas as pd
import streamlit as st

from planner import charts
from planner.dashboard import frames, published, results, sharing, widgets

plan = results.current_plan()
rows = published.accuracy_rows()
if rows is None or rows.empty:
    sharing.answer("This copy does not know how far its predictions are from published measurements")
    st.info(
        "The comparison is missing from this copy. `python -m planner validate FILE.csv` compares predictions with a "
        "file of measurements; until then, take the figures as estimates of unknown error."
    )
    st.stop()

sharing.answer(published.sentence(rows))
st.caption(published.left_out(published.left_out_rows()))
with st.container(horizontal=True):
    quantity = st.selectbox(
        "Quantity",
        published.quantities(rows),
        format_func=lambda name: published.TITLES.get(name, name),
        key="acc_quantity",
        persist_state="session",
    )
    scope = st.selectbox("Rows", published.SCOPES, key="acc_scope", persist_state="session")
title = published.TITLES.get(quantity, quantity)
of_quantity = rows[rows["quantity"] == quantity]
kept = published.rows_like(of_quantity, plan, scope)
if kept.empty:
    st.warning(
        f"No published measurement of {widgets.prose(title)} for {widgets.prose(scope)}: "
        "the plan's figure is not backed by one."
    )
else:
    texts = [
        f"{row.model}, {row.gpu}, {row.engine}<br>{row.source}"
        for row in kept[["model", "gpu", "engine", "source"]].itertuples()
    ]
    widgets.show(
        charts.predicted_against_measured(
            title,
            kept["measured"].to_numpy(float),
            kept["predicted"].to_numpy(float),
            [widgets.hover_text(text) for text in texts],
            kept["peer_predicted"].to_numpy(float),
            published.unit_of(quantity),
        ),
        "accuracy_scatter",
    )
    if kept["peer_predicted"].notna().any():
        st.markdown(f"**{widgets.prose(published.against_peer(kept))}**")

by_class = pd.concat([of_quantity, rows[rows["quantity"] != quantity]])  # the chosen quantity first
tabs = st.tabs(["By class", "By GPU", "By engine", "By model", "Rows and sources"])
for tab, column in zip(tabs, ("class", "gpu", "engine", "model"), strict=False):
    with tab:
        st.dataframe(
            frames.sheet(published.error_table(by_class if column == "class" else of_quantity, column)),
            hide_index=True,
            width="stretch",
            column_config=frames.ERROR_COLUMNS,
            alt=f"Errors by {column}",
        )
with tabs[4]:
    st.dataframe(
        frames.sheet(kept.head(500)),
        hide_index=True,
        width="stretch",
        column_config={"source": st.column_config.LinkColumn("source")},
        alt="Measured rows and their sources",
    )
st.caption(
    "Error = |predicted ÷ measured − 1|. A signed median above 0 means that we predict too much, below 0 too little. "
    "AIConfigurator 0.12 is compared on the rows that it predicts; 'ours, shared' is our error on those."
)
