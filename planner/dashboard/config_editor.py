"""The editor of a model that comes from a config.json: pasted, uploaded or fetched."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.catalog import fetch_from_hub
from planner.dashboard import urlstate
from planner.dashboard.config_text import pruned
from planner.dashboard.widgets import prose
from planner.errors import InvalidInput
from planner.scenario import CONFIG, message

MOST_SHOWN = 100_000  # characters of a pasted text that the field keeps


def config_editor(error: str | None) -> None:
    """Paste, upload or fetch a config.json."""
    state, used = st.session_state, urlstate.fill("model_config")
    if used:
        st.caption(f"In use: a config.json of {len(used):,} characters; the link carries it.")
    st.text_area(
        "Paste a config.json", key="config_paste", height=110, on_change=_take_paste, placeholder='{"model_type": …'
    )
    st.file_uploader(
        "or upload it (at most 5 MB)", type=["json"], key="config_file", on_change=_take_file, max_upload_size=5
    )
    st.text_input("or fetch it from Hugging Face by id", key="config_hub", placeholder="owner/name")
    st.button("Fetch", on_click=_take_hub, key="config_fetch")
    wrong = state.get("_config_error") or error
    if wrong:
        st.error(prose(wrong))
    elif not used:
        st.info("The plan keeps the last model until you give a config.json.")


def _take(read: Callable[[], str]) -> None:
    state = st.session_state
    state["_config_error"] = None
    try:
        urlstate.put(model_config=pruned(read()), model=CONFIG)
    except InvalidInput as error:
        state["_config_error"] = f"{message(error)} The plan keeps the last model."


def _take_paste() -> None:
    text = st.session_state["config_paste"]
    if text.strip():
        _take(lambda: text)
        if len(text) > MOST_SHOWN:
            st.session_state["config_paste"] = ""  # do not send it back and forth with every click


def _take_file() -> None:
    file = st.session_state["config_file"]
    if file is not None:
        _take(lambda: file.getvalue().decode("utf-8", errors="replace"))


def _take_hub() -> None:
    _take(lambda: fetch_from_hub(st.session_state["config_hub"] or ""))
