"""Starts the dashboard: `streamlit run app.py`."""

from planner.dashboard.shell import run

run()
