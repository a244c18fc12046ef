"""The section "Commands to run it": each form of the plan to copy or download, made when it is chosen."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import results, widgets
from planner.deploy import Artifact, artifact, formats_of
from planner.errors import PlannerError
from planner.scenario import message

LINES_SHOWN = 30  # a longer text scrolls in its own box
LINE_HEIGHT_PX = 22
MIME = {"bash": "text/x-shellscript", "yaml": "application/yaml", "python": "text/x-python"}


@st.fragment
def section() -> None:
    """The commands and files of the current plan; a fragment, so that choosing one does not redraw the page."""
    plan = results.current_plan()
    st.markdown("**Commands to run it**")
    st.caption(
        "Equal to this plan: the engine's own flags of its release, only where the plan differs from the defaults. For "
        "another engine, choose it under Engine."
    )
    try:
        forms = formats_of(plan)
    except PlannerError as error:
        st.info(widgets.prose(message(error)))
        return
    titles = dict(forms)
    if st.session_state.get("commands_form") not in titles:
        st.session_state["commands_form"] = forms[0][0]  # another engine has other forms
    chosen = st.segmented_control(
        "Form",
        list(titles),
        format_func=lambda name: titles[name],
        key="commands_form",
        required=True,
        label_visibility="collapsed",
    )
    if chosen is not None:
        _form(chosen)


def _form(name: str) -> None:
    plan = results.current_plan()
    try:
        item = artifact(plan, name, results.load_test_of)
    except PlannerError as error:
        st.info(widgets.prose(message(error)))
        return
    if item.problem:
        st.info(widgets.prose(item.problem))
        return
    _text(item)


def _text(item: Artifact) -> None:
    height = LINES_SHOWN * LINE_HEIGHT_PX if item.text.count("\n") > LINES_SHOWN else "content"
    st.code(item.text.rstrip(), language=item.language, height=height)  # type: ignore[arg-type]
    st.download_button(
        f"Download {item.filename}",
        lambda: item.text,  # text itself would be fetched by the browser each time it changes, and may be gone by then
        item.filename,
        MIME[item.language],
        key=f"commands_{item.format}",
        icon=":material/download:",
        on_click="ignore",
    )
