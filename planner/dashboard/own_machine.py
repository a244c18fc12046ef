"""A plan that follows the user's own machine: calibrated to a benchmark, with the memory that a log prints."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from planner.answer import calibrated_load
from planner.dashboard import results, urlstate, widgets
from planner.dashboard.inputs import adopt
from planner.dashboard.tasks import Files
from planner.errors import PlannerError
from planner.reading import (
    AdvisedTest,
    Calibration,
    Reading,
    Together,
    prints_memory,
    uncalibrated,
    with_printed,
    without_printed,
)
from planner.scenario import CALIBRATION, Scenario, message
from planner.units import counted, format_number, format_percent

COLUMNS = {
    "ttft_ms_mean": "TTFT, mean [ms]",
    "ttft_ms_p50": "TTFT, median [ms]",
    "tpot_ms_mean": "TPOT, mean [ms]",
    "tpot_ms_p50": "TPOT, median [ms]",
    "output_tok_s_total": "Output tokens/s",
    "total_tok_s": "Tokens/s",
    "req_s": "Requests/s",
}
FIGURES = {"ttft": "TTFT", "tpot": "TPOT", "throughput": "throughput"}


def offers(found: Together, files: Files) -> None:
    """What can be done with files besides filling in the form: calibrate to their runs, take over a log's memory."""
    state = st.session_state
    log = next((item.reading for item in found.files if item.reading and prints_memory(item.reading)), None)
    if log is not None:
        st.button(
            "Use its memory instead of the estimate" if len(files) == 1 else "Use the log's memory",
            on_click=_take_memory,
            args=(log,),
            width="stretch",
            help="Weights, CUDA graphs and KV cache as this log prints them, for the deployment that the form has now; "
            "the estimate stays beside them.",
        )
        if refused := state.pop("_own_refused", ""):  # said once: what it advises may have been done
            st.error(widgets.prose(refused))
    measured = tuple(
        file for item, file in zip(found.files, files, strict=True) if item.reading and _is_measured(item.reading)
    )
    if measured:
        st.button(
            "Calibrate to this" if len(files) == 1 else "Calibrate to the benchmarks",
            on_click=_begin,
            args=(measured,),
            width="stretch",
            help="Fits five factors on the predicted times to these runs, for the deployment and load that the form "
            "has now: runs under a like load count most. Calibrate again when the load is another.",
        )
        asked = state.get("_own_calibrate")
        if asked is not None and asked[0] == measured:
            _calibrated(*asked)


def _is_measured(reading: Reading) -> bool:
    return bool(reading.runs) and not reading.runs[0].is_prediction


def _take_memory(reading: Reading) -> None:
    state = st.session_state
    try:
        adopt(with_printed(reading, state["_scenario"]))
    except PlannerError as error:
        state["_own_refused"] = f"{message(error)} Fill in the form from the log first, or keep the estimate."


def _begin(files: Files) -> None:
    st.session_state["_own_calibrate"] = (files, uncalibrated(st.session_state["_scenario"]))


def _calibrated(files: Files, base: Scenario) -> None:
    try:
        made = results.calibration_of(files, base)
    except PlannerError as error:
        st.error(widgets.prose(f"{message(error)} Fill in the form with its deployment first."))
        return
    st.markdown(widgets.prose(errors_in_words(made)))
    st.button(
        "Put it in the plan",
        on_click=_adopt_calibration,
        args=(made,),
        type="primary",
        width="stretch",
        disabled=_numbers(urlstate.current().scenario) == _numbers(made.scenario),
    )
    if st.button("Factors and figures", width="stretch"):
        _dialog(made)


def _adopt_calibration(made: Calibration) -> None:
    """The calibration alone: what the form has changed since the fit stays."""
    urlstate.put(**_numbers(made.scenario))


def _numbers(scenario: Scenario) -> dict[str, Any]:
    """The fields of a calibration."""
    return {name: getattr(scenario, name) for name in CALIBRATION}


def errors_in_words(made: Calibration) -> str:
    """Median error of each figure before and after, and left out, in one sentence."""
    several = made.runs > 1  # one run cannot be predicted from others
    parts = [
        f"{name} {format_percent(made.error('before', figure))} → {format_percent(made.error('after', figure))}"
        + (f" ({format_percent(made.error('left_out', figure))})" if several else "")
        for figure, name in FIGURES.items()
        if any(row.figure == figure for row in made.figures)
    ]
    told = " (each run predicted from the others)" if several else ""
    opening = f"Median error over {made.runs:,} runs" if several else "Error of the run"
    return f"{opening}, before → after{told}: {', '.join(parts)}."


@st.dialog("Calibrated to your runs", width="large")
def _dialog(made: Calibration) -> None:
    st.markdown("**Time, measured ÷ predicted**")
    widgets.table(factor_rows(made), "calibration_factors")
    st.markdown("**Every figure**")
    widgets.table(figure_rows(made), "calibration_figures")


def factor_rows(made: Calibration) -> list[dict[str, str]]:
    """Rows of the table of factors."""
    return [
        {
            "Part": item.label,
            "Factor": format_number(item.value),
            "Range of 90 %": f"{format_number(item.low)} to {format_number(item.high)}",
            "": "" if item.is_seen else "these runs do not show it",
        }
        for item in made.factors
    ]


def figure_rows(made: Calibration) -> list[dict[str, str]]:
    """Rows of the table of figures."""
    return [
        {
            "Run": str(row.run),
            "Figure": COLUMNS[row.column],
            "Measured": format_number(row.measured),
            "Before": format_number(row.before),
            "After": format_number(row.after),
            "Left out": format_number(row.left_out),
        }
        for row in made.figures
    ]


def next_test(scenario: Scenario) -> None:
    """On request, the load test that narrows the plan most, and what the others would leave in doubt."""
    state = st.session_state
    if st.button("Find the load test that narrows the plan most", key="own_next"):
        state["_own_next"] = scenario
    if state.get("_own_next") != scenario:
        return
    found = results.advice_of(scenario)
    best, *others = found.tests
    st.markdown(widgets.prose(f"{narrowing(found.figure, found.error, best)}:"))
    st.code(best.command, language="bash", wrap_lines=True)
    widgets.bullets(narrowing("", found.error, test) for test in others)
    st.caption("Drop its output in the sidebar, under “Start from your own …”, and calibrate to it.")


def narrowing(figure: str, error: float, test: AdvisedTest) -> str:
    """What a test does to the error of the deciding figure."""
    before, after = (format_percent(math.expm1(value)) for value in (error, test.error))
    opening = f"{test.load[:1].upper()}{test.load[1:]}"
    return f"{opening}: {figure} from ± {before} to ± {after}" if figure else f"{opening}: ± {after}"


def in_force(scenario: Scenario) -> None:
    """What the plan takes from the user's machine, with a way to drop each; nothing where it takes nothing."""
    if scenario.calibration_runs:
        other = " and ".join(scenario.not_calibrated_for)
        used = f":green-badge[Calibrated to your {counted(scenario.calibration_runs, 'measurement')}]"
        if scenario.is_calibrated_for_other_load:
            used = f":orange-badge[Calibrated for another load] Made for {calibrated_load(scenario)}: calibrate again"
        text = f":orange-badge[Calibration of another {other}, not used]" if other else used
        _row(text, "Drop the calibration", uncalibrated(scenario))
    if scenario.printed_memory is not None or scenario.not_printed_for:
        other = " and ".join(scenario.not_printed_for)
        used = ":green-badge[Memory as your engine printed it]"
        text = f":orange-badge[Log of another {other}, not used]" if other else used
        _row(text, "Drop the log", without_printed(scenario))


def _row(text: str, label: str, without: Scenario) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text)
        st.button(label, key=f"own_{label}", on_click=adopt, args=(without,), type="tertiary")
