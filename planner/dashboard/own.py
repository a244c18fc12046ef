"""Bring your own: a log, a benchmark or recorded traffic fills in the form, and stands beside what is predicted."""

from __future__ import annotations

import math

import streamlit as st

from planner import charts
from planner.dashboard import own_machine, recording, results, widgets
from planner.dashboard.inputs import adopt
from planner.errors import InvalidInput, PlannerError
from planner.reading import MAX_BYTES, Overlay, Reading, value_text
from planner.scenario import Scenario, message
from planner.units import counted, format_percent

MAX_MB = MAX_BYTES // 1_000_000
HELP = (
    "A start-up log of vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama or TGI; the output or JSON of vllm bench serve, "
    "SGLang bench_serving, GuideLLM, GenAI-Perf, trtllm-bench or llama-bench; /metrics of a running engine; "
    "the result of AIConfigurator (CSV) or llm-d Planner (JSON); or "
    "recorded traffic (Azure, BurstGPT, Vidur, Mooncake, any CSV or JSON lines with times and tokens, an access log). "
    "It stays on the server for this session; prompts are not kept."
)
MOST_ROWS = 200
ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "tgi": "TGI",
    "trtllm-bench": "trtllm-bench",
    "llama-bench": "llama-bench",
    "llama.cpp": "llama.cpp",
    "GuideLLM": "GuideLLM",
    "GenAI-Perf": "GenAI-Perf",
    "AIConfigurator's": "AIConfigurator's",
    "llm-d": "llm-d",
}


def expander() -> None:
    """The place in the sidebar where a file is dropped or text is pasted, and what was read from it."""
    with st.expander("**Start from your own log, benchmark or traffic**", key="own"):
        st.file_uploader("Drop a file", key="own_file", on_change=_take_file, max_upload_size=MAX_MB, help=HELP)
        st.text_area("or paste it", key="own_paste", on_change=_take_paste, height=90, placeholder="vllm serve …")
        data = st.session_state.get("_own")
        if data is not None:
            _shown(data)


def _take_file() -> None:
    file = st.session_state["own_file"]
    st.session_state["_own"] = None if file is None else (file.getvalue(), st.session_state["_scenario"])
    _new()


def _take_paste() -> None:
    text = st.session_state["own_paste"]
    st.session_state["_own"] = (text.encode(), st.session_state["_scenario"]) if text.strip() else None
    _new()
    if len(text) > 20_000:
        st.session_state["own_paste"] = ""  # do not send it back and forth with every click


def _new() -> None:
    """What belongs to the file before goes; recorded traffic is shown as soon as it is read."""
    recording.forget_columns()
    st.session_state["_own_unseen"] = True


def _shown(data: tuple[bytes, Scenario]) -> None:
    try:
        reading, beside = results.reading_of(*data, recording.chosen_columns())
    except PlannerError as error:
        unknown = isinstance(error, InvalidInput)  # else the file is known, and no column would help
        if not (unknown and recording.ask_for_columns(data[0], None)) or recording.chosen_columns():
            st.error(widgets.prose(message(error)))
        return
    st.markdown(f"**{widgets.prose(_kind(reading))}**")
    if reading.scenario is None:
        st.error(widgets.prose(f"No plan can start from it. {reading.problem}"))
    else:
        st.button("Fill in the form", on_click=adopt, args=(reading.scenario,), type="primary", width="stretch")
    own_machine.offers(reading, data[0])
    recording.ask_for_columns(data[0], reading)
    at_once = st.session_state.pop("_own_unseen", False) and reading.traffic is not None
    if st.button("What it says, and what we predict", width="stretch") or at_once:
        _dialog(reading, beside)


def _kind(reading: Reading) -> str:
    ended = f", {reading.outcome}" if reading.outcome else ""
    engine, _, rest = reading.kind.partition(" ")
    kind = f"{ENGINES.get(engine, engine.capitalize())} {rest}"
    return f"{kind}{ended}: {counted(len(reading.understood), 'figure')} understood"


@st.dialog("What your file says", width="large")
def _dialog(reading: Reading, beside: Overlay) -> None:
    if reading.traffic is not None:
        recording.show_recording(reading.traffic)
    if beside.refusal:
        st.warning(widgets.prose(f"By our sizing the engine does not start like this: {beside.refusal}"))
    widgets.show(charts.overlay_errors(beside), "own_overlay")
    _reasons(beside)
    widgets.table(understood_rows(reading), "understood")
    if reading.not_understood:
        st.markdown("**Not used**")
        widgets.bullets(
            f"{item.text}{f' (line {item.line:,})' if item.line else ''}: {item.reason}"
            for item in reading.not_understood
        )


def _reasons(beside: Overlay) -> None:
    if not beside.reasons:
        return
    st.markdown("**What would explain the difference**")
    st.caption("Settings that the file does not state, tried one at a time on the model.")
    before = f"{format_percent(beside.error)} → " if math.isfinite(beside.error) else ""
    for index, reason in enumerate(beside.reasons):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(widgets.prose(f"{reason.label} (error {before}{format_percent(reason.error)})"))
            st.button("Apply", key=f"own_reason_{index}", on_click=adopt, args=(reason.scenario,))


def understood_rows(reading: Reading) -> list[dict[str, str]]:
    """Rows of the table of what was understood, at most 200."""
    return [
        {
            "Figure or setting": widgets.plain(item.name),
            "Value": widgets.plain(f"{value_text(item.value)} {item.unit}".strip()),
            "Line": f"{item.line:,}" if item.line else "whole file",
        }
        for item in reading.understood[:MOST_ROWS]
    ]
