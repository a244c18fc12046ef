"""Predictions against published measurements, beside AIConfigurator's."""

import streamlit as st

from planner import charts
from planner.dashboard import curves, frames, published, results, sharing, widgets

plan = results.current_plan()
rows = published.accuracy_rows()
if rows is None or rows.empty:
    sharing.answer("This copy does not know how far its predictions are from published measurements")
    st.info(
        "The comparison is missing from this copy. `python -m planner validate FILE.csv` compares predictions with a "
        "file of measurements; until then, take the figures as estimates of unknown error."
    )
    st.stop()

sharing.answer(published.sentence(rows, published.memory_left_out_rows()))
st.caption(widgets.prose(published.left_out(published.left_out_rows())))
st.caption(widgets.prose(published.memory_left_out(published.memory_left_out_rows())))
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
            published.unseen(kept).to_numpy(float),
            [widgets.hover_text(text) for text in texts],
            peer=kept["peer_predicted"].to_numpy(float),
            unit=published.unit_of(quantity),
            provenance="their source left out of the fit" if kept["left_out"].notna().any() else "",
        ),
        "accuracy_scatter",
    )
    if kept["peer_predicted"].notna().any():
        st.markdown(f"**{widgets.prose(published.against_peer(kept))}**")

tabs = st.tabs(["By class", "By GPU", "By engine", "By model", "Rows and sources"])
with tabs[0]:
    widgets.table(frames.error_rows(published.error_table(of_quantity, "class"), "class"), "classes")
for tab, column in zip(tabs[1:], ("gpu", "engine", "model"), strict=False):
    with tab:
        st.dataframe(
            frames.in_percent(published.error_table(of_quantity, column)),
            hide_index=True,
            placeholder="—",
            width="stretch",
            column_order=[column, *frames.ERROR_HEADERS],
            column_config=frames.ERROR_COLUMNS,
            alt=f"Errors by {column}",
        )
with tabs[4]:
    st.dataframe(
        frames.sheet(kept.head(500)),
        hide_index=True,
        placeholder="—",
        width="stretch",
        column_config=frames.ROW_COLUMNS,
        alt="Measured rows and their sources",
    )
st.caption(
    "Error = |predicted ÷ measured − 1|. Median, 9 in 10 and signed: the fit did not see the row's source, as it has "
    "not seen yours. Signed above 0 means that we predict too much, below 0 too little. AIConfigurator 0.12 is "
    "compared on the rows that it predicts, with our error left out on those. Fitted: every source was fitted, or "
    "nothing is fitted to such rows."
)

swept = curves.swept()
if swept.empty:
    st.stop()
st.markdown("#### Published sweeps over concurrency")
st.markdown(
    "Mean error on the InferenceX runs, as AISimulate, AIConfigurator's successor, states its own (of other runs of "
    "the same benchmark). Shape: the error of the curve once measured and predicted values are divided by their own at "
    "the lowest concurrency of the deployment."
)
widgets.table(frames.share_rows(curves.peer_table(swept)), "sweeps")
st.markdown(
    "Decisions: a user wants 15 to 100 tokens/s per user and the most throughput per GPU, and takes the measured "
    "deployment that the tool's predictions make best. The loss is the measured throughput per GPU given up; too slow "
    "means more than 5 % below the wanted speed."
)
widgets.table(frames.share_rows(curves.decision_table(swept)), "decisions")
st.markdown("By model, mean error left out; choose one below and then a deployment to see its curve.")
curves_by_model = curves.by_model(swept)
st.dataframe(
    frames.in_percent(curves_by_model),
    hide_index=True,
    placeholder="—",
    width="stretch",
    column_config=frames.SWEEP_COLUMNS,
    alt="Left-out errors of sweeps by model",
)
models = curves_by_model["model"].tolist()
linked = st.session_state["_view"]
if (chosen := curves.model_of(swept, linked)) and st.session_state.get("_view_shown") != linked:
    st.session_state["acc_model"], st.session_state["acc_deployment"] = chosen, linked
    st.session_state["_view_shown"] = linked
elif linked and not chosen:
    st.warning("The link names a measured deployment that this copy does not hold; the first one is shown.")
with st.container(horizontal=True):
    model = st.selectbox("Measured model", models, key="acc_model", persist_state="session")
    choices = curves.deployments(swept, model)
    if st.session_state.get("acc_deployment") not in choices:
        st.session_state["acc_deployment"] = next(iter(choices))
    first = st.selectbox(
        "Deployment",
        list(choices),
        format_func=lambda name: choices[name],
        key="acc_deployment",
        persist_state="session",
    )
if first != linked:
    st.session_state["_view"] = st.session_state["_view_shown"] = first
for place, (latency, title) in zip(st.columns(2), curves.LATENCY_TITLES.items(), strict=True):
    concurrency, lines = curves.lines_of(swept, first, latency)
    with place:
        widgets.show(charts.curve_over_concurrency(title, concurrency, lines, "ms"), f"accuracy_curve_{latency}")
with st.popover("Link to this deployment", icon=":material/link:"):
    st.code(sharing.view_link(st.session_state["_scenario"], st.context.url, first), language=None, wrap_lines=True)

st.markdown("#### Do our bands hold?")
st.markdown(
    "The bands beside the plan's figures come from predictions of sources that were left out of the fit. Half of the "
    "true figures should lie in the 50 % band and nine of ten in the 90 % band, however near the measured kernels are."
)
widgets.table(frames.share_rows(curves.coverage_table(rows)), "bands")
