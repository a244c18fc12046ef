"""Predicted against published, by class, beside AIConfigurator."""

import pandas as pd
import streamlit as st

from planner import charts
from planner.dashboard import frames, published, results, sharing, widgets

plan = results.current_plan()
rows = published.accuracy_rows()
if rows is None or rows.empty:
    sharing.answer("How far the predictions are from published measurements is not known to this copy")
    st.info(
        "No comparison ships with this copy. `python -m planner validate FILE.csv` compares predictions with a file of "
        "measurements; until then take the figures as estimates whose error is not known here."
    )
    st.stop()

sharing.answer(published.sentence(rows))
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
        f"No measurement of {widgets.prose(title)} for {widgets.prose(scope)}: "
        "the figure of the plan rests on physics alone."
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

by_class = pd.concat([of_quantity, rows[rows["quantity"] != quantity]])  # what is looked at stands first
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
    "Errors are |predicted ÷ measured − 1|; the signed median shows whether a class is flattered. AIConfigurator 0.12 "
    "is shown on the rows that it predicts, ours on the same rows."
)
