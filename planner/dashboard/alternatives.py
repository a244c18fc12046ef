"""The alternatives below the answer: chart and rows that fill in while the search runs, and what changes do."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import streamlit as st

from planner import charts
from planner.answer import (
    SURE,
    Candidate,
    Change,
    Plan,
    Search,
    candidate_of,
    changed_settings,
    cheapest_as_sure,
    evidence_of,
    format_in_words,
    split_in_words,
    tally,
)
from planner.dashboard import inputs, tiles, widgets
from planner.dashboard.searches import SEARCHES, Running
from planner.dashboard.words import WORDS
from planner.errors import PlannerError
from planner.memory import Remedy
from planner.scenario import Scenario, message
from planner.units import counted, format_duration, format_usd

LONG_S = 15.0  # a search that shows nothing for so long says why
FIRST_ROWS = 4  # the rest stands behind a click
RESTRICTIONS = ("my_gpus", "gpu_vendor", "most_gpus", "one_node", "measured_only")


def show(plan: Plan, scenario: Scenario, errors: dict[str, str]) -> None:
    """Draw the section; nothing above it waits for the search."""
    with st.container(border=True, key="alternatives"):
        st.markdown("**What else would do**")
        with st.expander(f"Choose among: {widgets.plain(restrictions_in_words(scenario))}", key="restrictions"):
            inputs.fields(RESTRICTIONS, errors)
        running = SEARCHES.look(scenario, start=False)
        finished = running is not None and running.done
        state = st.session_state
        state["_alternatives_seen"] = 0
        SEARCHES.count_in(state.setdefault("_viewer", uuid4().hex))
        interval_s = SEARCHES.interval_s
        st.fragment(_section, run_every=None if finished else interval_s)(plan, scenario, interval_s)


def restrictions_in_words(scenario: Scenario) -> str:
    """What the search may choose from, in one line."""
    said = [", ".join(filter(None, map(str.strip, scenario.my_gpus.split(",")))) or "every GPU with a price"]
    of_kind = WORDS["price_kind"][scenario.price_kind]
    said.append(f"prices of {of_kind} GPUs" if scenario.price_kind == "owned" else f"prices {of_kind}")
    if scenario.gpu_vendor != "any":
        said.append(f"{scenario.gpu_vendor} only")
    if scenario.most_gpus is not None:
        said.append(f"at most {counted(scenario.most_gpus, 'GPU')}")
    if scenario.one_node:
        said.append("one server")
    if scenario.measured_only:
        said.append("measured GPUs only")
    return " · ".join(said)


def _section(plan: Plan, scenario: Scenario, interval_s: float) -> None:
    state = st.session_state
    SEARCHES.count_in(state["_viewer"])
    if state.pop("_adopted", False):
        st.rerun()
    # The search begins with the first poll: a reader who goes on to change inputs starts none.
    running = SEARCHES.look(scenario, start=state["_alternatives_seen"] > 0, interval_s=interval_s)
    state["_alternatives_seen"] += 1
    if running is None:
        st.caption("The search for alternatives begins …")
        return
    if running.done and state.get("_alternatives_done") != (scenario, id(running)):
        state["_alternatives_done"] = (scenario, id(running))
        if state["_alternatives_seen"] > 1:
            st.rerun()  # so that the polling ends
    found, now = running.found, present(plan)
    chart = charts.cost_against_latency(found.candidates, now, scenario.ttft_target_s) if found is not None else None
    left, right = st.columns([2, 3]) if chart is not None else (st.container(), None)
    with left:
        _changes(running)
    if right is not None:
        with right:
            widgets.show(chart, "plan_alternatives")
    _progress(running, scenario)
    if isinstance(running.error, PlannerError):
        st.error(widgets.prose(message(running.error)))
    elif running.error is not None:
        st.error("The search failed; the details are in the server's log. The plan above is not affected.")
    if found is not None:
        _rows(found, now, scenario)


def _progress(running: Running, scenario: Scenario) -> None:
    found = running.found
    if running.done:
        if running.cancelled:
            with st.container(horizontal=True, vertical_alignment="center", key="line_progress"):
                st.caption("Search cancelled.")
                st.button("Search again", on_click=SEARCHES.again, args=(scenario,), key="alternatives_again")
        return
    with st.container(horizontal=True, vertical_alignment="center", key="line_progress"):
        if found is None:
            if running.age_s < LONG_S:
                st.caption("Searching …")
            else:
                so_far = f"Searching … {running.age_s:.0f} s so far."
                st.caption(f"{so_far} The search runs in the background: a busy server slows it.")
        else:
            said = (
                f"{counted(found.candidates_considered, 'deployment')} considered, {found.candidates_simulated} planned"
            )
            st.caption(f"Searching … {said} in {found.wall_s:.0f} s")
        st.button("Cancel", on_click=_cancel, args=(running,), key="alternatives_cancel")


def _cancel(running: Running) -> None:
    running.cancelled = True


def _rows(found: Search, now: Candidate | None, scenario: Scenario) -> None:
    st.markdown(f"**{widgets.prose(found.summary)}**")
    rows = in_order(found.candidates)
    for place, row in enumerate(rows[:FIRST_ROWS]):
        _row(row, now, scenario, place)
    rest = rows[FIRST_ROWS:]
    if rest:
        with st.expander(f"{counted(len(rest), 'further deployment')}", key="alternatives_rest"):
            for place, row in enumerate(rest, FIRST_ROWS):
                _row(row, now, scenario, place)
    if found.advice:
        st.markdown(widgets.prose(found.advice))
    if found.finished:
        st.caption(widgets.prose(" ".join(filter(None, (tally(found), found.left_out)))))


def in_order(rows: Sequence[Candidate]) -> list[Candidate]:
    """The cheapest row that is sure before all others, which keep their order."""
    first = cheapest_as_sure(rows, SURE)
    return [*([first] if first is not None else []), *(row for row in rows if row is not first)]


def present(plan: Plan) -> Candidate | None:
    """The present plan as a row; None where its engine does not start."""
    if plan.metrics is None:
        return None
    return candidate_of(plan, evidence=evidence_of(plan.scenario))


def deployment_in_words(row: Candidate, base: Scenario) -> str:
    """Split, formats and settings of a row."""
    parts = (split_in_words(row.scenario), format_in_words(row.scenario), changed_settings(row.scenario, base))
    return ", ".join(filter(None, parts))


def origin_in_words(row: Candidate) -> str:
    """The checkpoint of a row, and who recommends it."""
    recommended = f"recommended by {row.recommended_by}" if row.recommended_by else ""
    return " · ".join(filter(None, (row.checkpoint, recommended)))


def money_in_words(row: Candidate, now: Candidate | None) -> tuple[str, str]:
    """The bill beside that of the present plan, and the price that it rests on."""
    month = format_usd(row.usd_per_month or 0.0)
    beside = ""
    if now is not None and now.usd_per_month is not None and row.usd_per_month is not None:
        difference = row.usd_per_month - now.usd_per_month
        if abs(difference) > 0.5:  # USD: less is rounding
            beside = f" ({'+' if difference > 0 else '−'}{format_usd(abs(difference))})"
    price = f"{format_usd(row.usd_per_gpu_hour or 0.0)} per GPU-hour, {row.price_source.split(' (')[0]}"
    return f"{month} a month{beside}", price


def latency_in_words(row: Candidate) -> str:
    """TTFT and TPOT at the share of requests asked for."""
    quantile = f"p{row.scenario.target_quantile * 100:g}"
    return f"{quantile} TTFT {format_duration(row.ttft_s or 0.0)}, TPOT {format_duration(row.tpot_s or 0.0)}"


def certainty_in_words(row: Candidate) -> tuple[str, str]:
    """How sure the row is, and what sets its number of GPUs."""
    limit = f"{row.rests_on}; {row.binding[:1].lower()}{row.binding[1:]} sets the GPUs" if row.binding else row.rests_on
    sure = row.chance_in_words or "error not known"
    return (sure if row.status == "meets targets" else row.status), limit


def _row(row: Candidate, now: Candidate | None, base: Scenario, place: int) -> None:
    bold, badge = "**{}**", f":{tiles.STATES[row.state][0]}-badge[{{}}]"
    gpus = (f"{row.num_gpus or 0:,} × {row.scenario.gpu}", deployment_in_words(row, base))
    latency = (latency_in_words(row), origin_in_words(row))
    cells = ((bold, gpus), (bold, money_in_words(row, now)), ("{}", latency), (badge, certainty_in_words(row)))
    with st.container(border=True, key=f"alternative_{place}"):
        columns = st.columns([3, 3, 3, 3, 1.8], vertical_alignment="center", gap="small")
        for column, (style, (first, second)) in zip(columns, cells, strict=False):
            shown = style.format(widgets.plain(first))
            column.markdown(shown + (f"  \n:small[{widgets.plain(second)}]" if second else ""))
        with columns[-1]:
            apply(row.scenario, f"alternative_apply_{place}")


def apply(scenario: Scenario, key: str) -> None:
    """The button that plans with a scenario; the browser's Back undoes it."""
    st.button("Apply", key=key, on_click=_adopt, args=(scenario,), help="Plan with this. Back undoes it.")


def _adopt(scenario: Scenario) -> None:
    inputs.adopt(scenario)
    st.session_state["_adopted"] = True


def remedies(found: tuple[Remedy, ...], scenario: Scenario) -> None:
    """What would make the engine start, each with the button that plans with it."""
    for place, remedy in enumerate(found):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"line_remedy_{place}"):
            st.markdown(f"{place + 1}. {widgets.prose(remedy)}", width="stretch")
            cured = with_remedy(scenario, remedy)
            if cured is not None:
                apply(cured, f"remedy_apply_{place}")


def with_remedy(scenario: Scenario, remedy: Remedy) -> Scenario | None:
    """The scenario with a remedy; None where no setting does it, or other inputs forbid it."""
    try:
        return scenario.replace(**remedy.changes) if remedy.changes else None
    except PlannerError:
        return None


def change_lines(changes: tuple[Change, ...]) -> tuple[list[Change], dict[str, list[str]]]:
    """The changes that make a difference, and the labels of those that do not, by what is said of all of them."""
    idle = {
        said: labels
        for said, text in (("No change with", "no change"), ("The engine does not start with", "does not start"))
        if (labels := [change.label for change in changes if change.text == text])
    }
    return [change for change in changes if change.text not in ("no change", "does not start")], idle


def _changes(running: Running) -> None:
    differ, idle = change_lines(running.changes)
    st.markdown("**What would change the answer**")
    for place, change in enumerate(differ):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"line_change_{place}"):
            label = f"{change.label[:1].upper()}{change.label[1:]}"
            st.markdown(f"{widgets.prose(label)}: {widgets.prose(change.text)}", width="stretch")
            apply(change.scenario, f"change_apply_{place}")
    for said, labels in idle.items():
        st.caption(widgets.prose(f"{said} {', '.join(labels)}."))
    if not differ and not idle:
        st.caption("Trying single changes …" if not running.done else "No single change could be planned.")
