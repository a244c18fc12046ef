"""The Streamlit dashboard: shell, inputs, link state and pages. The only part that imports streamlit."""
