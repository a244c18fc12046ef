"""Links to the search of past versions: it stands on the Plan page now."""

import streamlit as st

from planner.dashboard import headlines

st.switch_page(headlines.PAGES / "plan.py", query_params=st.query_params.to_dict())
