"""Bring your own: a log, a benchmark or recorded traffic fills in the form, and stands beside what is predicted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import streamlit as st

from planner import charts
from planner.dashboard import own_machine, recording, results, widgets
from planner.dashboard.inputs import adopt
from planner.dashboard.tasks import Files
from planner.errors import PlannerError
from planner.reading import MAX_BYTES, Overlay, Reading, Together, value_text
from planner.scenario import Scenario, message
from planner.units import counted, format_percent

MAX_MB = MAX_BYTES // 1_000_000
HELP = (
    "A start-up log of vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama, TGI or LMDeploy; the output, CSV or JSON of "
    "their benchmarks, of GuideLLM, GenAI-Perf, AIPerf, AISBench, EvalScope, inference-perf, MLPerf, k6 or Locust; "
    "/metrics of a running engine; the result of AIConfigurator (CSV) or llm-d Planner (JSON); or recorded traffic "
    "(Azure, BurstGPT, Vidur, Mooncake, Langfuse, LiteLLM, OpenTelemetry, any CSV or JSON with times and tokens, an "
    "access log). It stays on the server for this session; prompts are not kept."
)
MOST_ROWS = 200
MOST_FILES = 10
PASTED = "pasted text"
LONGEST_SHOWN = 20_000  # characters of pasted text that stay in its box
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
    """The place in the sidebar where files are dropped or text is pasted, and what was read from them."""
    with st.expander("**Start from your own log, benchmark or traffic**", key="own"):
        st.file_uploader(
            "Drop a file, or several of one deployment",
            key="own_file",
            on_change=_take,
            accept_multiple_files=True,
            max_upload_size=MAX_MB,
            help=HELP,
        )
        st.text_area("or paste it", key="own_paste", on_change=_take_paste, height=90, placeholder="vllm serve …")
        if st.session_state.get("_own_pasted") and not st.session_state.get("own_paste"):
            st.button("Drop the pasted text", on_click=_take_paste, type="tertiary")
        brought = st.session_state.get("_own")
        if brought is not None:
            _shown(*brought)


def _take() -> None:
    """Take all files that are there now, and what was pasted; what belongs to those before goes."""
    state = st.session_state
    files = [(file.name, file.getvalue()) for file in state.get("own_file") or ()]
    pasted = state.get("_own_pasted")
    files += [(PASTED, pasted)] if pasted else []
    state["_own"] = (tuple(_told_apart(files)), state["_scenario"]) if files else None
    recording.forget_columns()
    state["_own_unseen"] = True  # recorded traffic is shown as soon as it is read


def _take_paste() -> None:
    state = st.session_state
    text = state["own_paste"]
    state["_own_pasted"] = text.encode() if text.strip() else None
    _take()
    if len(text) > LONGEST_SHOWN:
        state["own_paste"] = ""  # do not send it back and forth with every click


def _told_apart(files: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Files of one name with their number behind it."""
    seen: Counter[str] = Counter()
    for name, data in files:
        seen[name] += 1
        yield (f"{name} ({seen[name]})" if seen[name] > 1 else name, data)


def _shown(files: Files, base: Scenario) -> None:
    size = sum(len(data) for _, data in files)
    if len(files) > MOST_FILES or (len(files) > 1 and size > MAX_BYTES):
        st.error(
            f"{len(files):,} files of {size / 1e6:,.0f} MB together are too many: drop at most {MOST_FILES} files of "
            f"{MAX_MB} MB together."
        )
        return
    try:
        found, beside = results.reading_of(files, base, recording.chosen_columns())
    except PlannerError as error:
        st.error(widgets.prose(message(error)))
        return
    reading = found.files[0].reading
    if len(files) > 1:
        _each(found)
    elif reading is not None:
        st.markdown(f"**{widgets.prose(_kind(reading))}**")
    asked = _columns(found, files)
    if len(files) == 1 and reading is None and (not asked or recording.chosen_columns()):
        st.error(widgets.prose(found.files[0].problem))
    if any(item.reading for item in found.files):
        _plan_from(found, files, beside)


def _each(found: Together) -> None:
    """A line for each file, and what they state differently."""
    for item in found.files:
        if item.reading is None:
            st.error(widgets.prose(f"{item.name}: {item.problem}"))
            continue
        st.markdown(f"**{widgets.plain(item.name)}**: {widgets.prose(_kind(item.reading))}")
        if item.reading.scenario is None:
            st.caption(widgets.prose(f"No plan can start from it alone. {item.reading.problem}"))
    if found.contradictions:
        text = "\n".join(f"- {widgets.prose(each)}" for each in found.contradictions)
        st.warning(text, title="Your files state this differently")


def _plan_from(found: Together, files: Files, beside: tuple[Overlay | None, ...]) -> None:
    several = len(files) > 1
    if found.scenario is not None:
        st.button("Fill in the form", on_click=adopt, args=(found.scenario,), type="primary", width="stretch")
    elif several:
        st.error("No plan can start from these files.")
    elif found.files[0].reading is not None:
        st.error(widgets.prose(f"No plan can start from it. {found.files[0].reading.problem}"))
    own_machine.offers(found, files)
    traffic = any(item.reading is not None and item.reading.traffic is not None for item in found.files)
    at_once = st.session_state.pop("_own_unseen", False) and traffic
    if st.button(f"What {'they say' if several else 'it says'}, and what we predict", width="stretch") or at_once:
        _dialog(found, beside)


def _columns(found: Together, files: Files) -> bool:
    """Ask for the columns of the first file that may be a table of traffic; one at a time."""
    return any(
        recording.ask_for_columns(data, item.reading, name if len(files) > 1 else "")
        for item, (name, data) in zip(found.files, files, strict=True)
        if item.reading is None or item.reading.traffic is not None
    )


def _kind(reading: Reading) -> str:
    ended = f", {reading.outcome}" if reading.outcome else ""
    engine, _, rest = reading.kind.partition(" ")
    kind = f"{ENGINES.get(engine, engine.capitalize())} {rest}"
    return f"{kind}{ended}: {counted(len(reading.understood), 'figure')} understood"


@st.dialog("Your files, and what we predict", width="large")
def _dialog(found: Together, beside: tuple[Overlay | None, ...]) -> None:
    known = [(item.name, item.reading, one) for item, one in zip(found.files, beside, strict=True) if item.reading]
    if len(known) == 1:
        _told(known[0][1], known[0][2], "own")
        return
    for number, (tab, (_, reading, one)) in enumerate(
        zip(st.tabs([widgets.plain(name) for name, _, _ in known]), known, strict=True)
    ):
        with tab:
            _told(reading, one, f"own_{number}")


def _told(reading: Reading, beside: Overlay | None, key: str) -> None:
    """All that one file says, beside what is predicted; `key` begins the keys of what is drawn."""
    if reading.traffic is not None:
        recording.show_recording(reading.traffic, key)
    if beside is not None:
        if beside.refusal:
            st.warning(widgets.prose(f"By our sizing the engine does not start like this: {beside.refusal}"))
        widgets.show(charts.overlay_errors(beside), f"{key}_overlay")
        _reasons(beside, key)
    widgets.table(understood_rows(reading), f"understood_{key}")
    if reading.not_understood:
        st.markdown("**Not used**")
        widgets.bullets(
            f"{item.text}{f' (line {item.line:,})' if item.line else ''}: {item.reason}"
            for item in reading.not_understood
        )


def _reasons(beside: Overlay, key: str) -> None:
    if not beside.reasons:
        return
    st.markdown("**What would explain the difference**")
    st.caption("Settings that the file does not state, tried one at a time on the model.")
    before = f"{format_percent(beside.error)} → " if math.isfinite(beside.error) else ""
    for index, reason in enumerate(beside.reasons):
        with st.container(horizontal=True, vertical_alignment="center", key=f"line_{key}_{index}"):
            st.markdown(widgets.prose(f"{reason.label} (error {before}{format_percent(reason.error)})"))
            st.button("Apply", key=f"{key}_reason_{index}", on_click=adopt, args=(reason.scenario,))


def understood_rows(reading: Reading) -> list[dict[str, str]]:
    """Rows of the table of what was understood, at most 200."""
    if reading.traffic is not None:
        return recording.figure_rows(reading.traffic)
    return [
        {
            "Figure or setting": widgets.plain(item.name),
            "Value": widgets.plain(f"{value_text(item.value)} {item.unit}".strip()),
            "Line": f"{item.line:,}" if item.line else "whole file",
        }
        for item in reading.understood[:MOST_ROWS]
    ]
