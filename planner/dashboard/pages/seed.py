"""Where old links to the seed article's page go: it is the first example of the batching lab."""

import streamlit as st

from planner.dashboard.headlines import PAGES

st.switch_page(PAGES / "batching.py", query_params=dict(st.query_params))
