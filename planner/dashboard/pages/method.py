"""Vocabulary, formulas, sources, and what Headroom does not know."""

import pandas as pd
import streamlit as st

from planner.catalog import catalog_date, hub_ids, model_names
from planner.dashboard import frames, method_text, results, sharing, widgets
from planner.scenario import field_rows
from planner.step_time import fitted_numbers

sharing.answer("What the words mean, how the figures are made, and what Headroom does not know")
st.markdown(method_text.WHAT_IT_DOES_NOT_KNOW)
words, formulas, sources, fields = st.tabs(["Vocabulary", "Formulas", "Sources", "Fields of a link"])
with words:
    st.markdown(method_text.VOCABULARY)
with formulas:
    st.markdown(method_text.FORMULAS)
    st.markdown(method_text.fitted(fitted_numbers()))
with sources:
    st.markdown(method_text.SOURCES)
    st.markdown(method_text.catalog_line(catalog_date(), len(model_names()), len(hub_ids())))
    plan = results.current_plan()
    st.markdown("**Sources of this plan**")
    widgets.bullets(
        line
        for line in (
            f"Model: {plan.model.name}, {plan.model.source}" if plan.model.source else "",
            f"GPU: {plan.gpu.name}, {plan.gpu.spec_source}",
            f"Engine: {plan.engine.name} {plan.engine.version}, {plan.engine.source}" if plan.engine.source else "",
            f"GPU price: {plan.cost.price_source}" if plan.cost else "",
            f"API price: {plan.cost.api_source}" if plan.cost else "",
            *(f"Estimated for this GPU: {name}" for name in plan.gpu.estimated_fields),
            *(f"Estimated for this model: {name}" for name in plan.model.estimated_fields),
        )
        if line
    )
with fields:
    st.markdown(
        "A link is `?` and names with values, `&` between them; a JSON file has the longer names. What is left out has "
        "its default, except that naming one target turns off those that are not named."
    )
    table = pd.DataFrame(
        [
            {
                "Link": row["link"],
                "JSON": row["name"],
                "Label": row["label"],
                "Unit": row["unit"],
                "Default": "" if row["default"] is None else str(row["default"]),
                "Valid": row["valid"],
                "Meaning": row["help"],
            }
            for row in field_rows()
        ]
    )
    st.dataframe(
        frames.sheet(table),
        hide_index=True,
        height=560,
        alt="Every field of a scenario with its name in links and in JSON",
    )
