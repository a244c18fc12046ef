"""The 24 hours of the load: drawn in a table, or taken from a trace."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from planner.dashboard import urlstate
from planner.dashboard.widgets import prose
from planner.errors import PlannerError
from planner.scenario import Scenario, message
from planner.workload import hours_of_trace, read_trace

SAID = "_day_said"
HOUR, PERCENT = "hour", "% of the peak"


def day_editor(scenario: Scenario) -> None:
    """A table of the hours, which can be edited, and an upload that fills it."""
    shares = percentages(scenario)
    key = f"day_{'_'.join(map(str, shares))}"
    st.caption(
        "Change an hour in the table and the day becomes your own, in the link too; or upload a trace of at least 24 h."
    )
    left, right = st.columns([1, 2])
    with left:
        st.data_editor(
            pd.DataFrame({HOUR: [f"{hour:02}:00" for hour in range(len(shares))], PERCENT: shares}),
            key=key,
            hide_index=True,
            disabled=[HOUR],
            height=260,
            column_config={PERCENT: st.column_config.NumberColumn(min_value=0, max_value=100, step=1, format="%d %%")},
            on_change=_drawn,
            args=(key, shares),
        )
    with right:
        st.file_uploader(
            "Trace with times (Azure, Vidur or BurstGPT CSV, Mooncake JSONL)", key="day_trace", on_change=_from_trace
        )
        said = st.session_state.pop(SAID, "")
        if said:
            st.error(prose(said))


def percentages(scenario: Scenario) -> tuple[int, ...]:
    """The scenario's day in whole percentages of the peak."""
    return tuple(round(100 * rate / scenario.peak_rate_rps) for rate in scenario.hourly_rates_rps)


def edited(shares: tuple[int, ...], rows: dict[int, dict[str, Any]]) -> str:
    """The hours after an edit, as the link carries them; an emptied cell keeps its value."""
    values = list(shares)
    for row, cells in rows.items():
        if cells.get(PERCENT) is not None:
            values[int(row)] = round(cells[PERCENT])
    return ".".join(map(str, values))


def _drawn(key: str, shares: tuple[int, ...]) -> None:
    hours = edited(shares, st.session_state[key]["edited_rows"])
    if any(int(share) for share in hours.split(".")):
        urlstate.put(day_hours=hours, day_shape="drawn")
    else:
        st.session_state[SAID] = "At least one hour needs requests. The day keeps its last values."


def _from_trace() -> None:
    file = st.session_state["day_trace"]
    if file is None:
        return
    try:
        hours = hours_of_trace(read_trace(file.getvalue().decode("utf-8", errors="replace")))
        urlstate.put(day_hours=hours, day_shape="drawn")
    except PlannerError as error:
        st.session_state[SAID] = f"{message(error)} The day keeps its last values."
