"""A Streamlit page with as many figures and charts as the Plan page, and nothing behind them."""

import streamlit as st

users = st.number_input("Users", value=500)
for place, column in enumerate(st.columns(5)):
    column.metric(f"Figure {place}", f"{users * (place + 1):,}")
for place in range(3):
    line = {"type": "scatter", "mode": "lines", "x": list(range(20)), "y": [x * x + users + place for x in range(20)]}
    st.plotly_chart({"data": [line], "layout": {"height": 300}}, key=f"chart_{place}")
