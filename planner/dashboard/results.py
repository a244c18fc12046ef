"""Cached results for the pages: every page asks here, so all show the same plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner.answer import Fit, OverTime, Plan, over_time, reprice, running, serving_replicas
from planner.arrays import Floats
from planner.charts import StepPicture, in_sentence
from planner.dashboard.inputs import adopt
from planner.dashboard.tasks import (
    PAPERS_TASK,
    SEED_TASK,
    Columns,
    Files,
    advice_task,
    calibration_task,
    fits_task,
    load_test_task,
    plan_task,
    reading_task,
    seed_steps_task,
    steps_task,
    time_task,
)
from planner.jobs import OFFICE, Job, Task
from planner.reading import Advice, Calibration, Overlay, Together
from planner.scenario import Scenario
from planner.service import PolicyOutcome, ServingMetrics, latencies
from planner.simulation import FINISHED, SimulationResult
from planner.units import SECONDS_PER_HOUR, format_number

QUIET_S, POLL_S, CANCEL_AFTER_S = 0.3, 0.05, 2.0
LOADING = "Loading the simulator. After a fresh install it is compiled once: 10 to 20 seconds."
MISTAKES = {
    "one_at_a_time": "Benchmarking with one request at a time",
    "short_prompts": "Testing only short prompts",
    "average_only": "Reporting the average latency and hiding the tail",
    "cache_ignored": "Sizing by the weights and ignoring the KV cache",
    "few_requests": "Self-hosting for a few thousand requests a day",
}


def plan_for(scenario: Scenario) -> Plan:
    """The plan of a scenario, computed once for all sessions; with fewer requests where all would take too long.

    Scenarios that differ only in prices share one simulation.
    """
    found: Plan = _computed(plan_task(scenario.without("prices", "time")), "Planning", on_cancel=_take_back)
    return _at_prices(found, scenario.replace(num_requests=found.scenario.num_requests))


@lru_cache(maxsize=16)
def _at_prices(done: Plan, scenario: Scenario) -> Plan:
    return reprice(done, scenario)


def over_time_of(done: Plan) -> OverTime:
    """The plan's day, failure and months; one simulation serves all prices."""
    service = running(done)
    if service is None:
        return over_time(done)
    return over_time(done, _computed(time_task(service), "Simulating a day and a failure"))


def fits_on(gpu: str, count: int, context_tokens: int, engine: str) -> tuple[Fit, ...]:
    """Every model that starts on some GPUs; an engine "" is vLLM and llama-server."""
    found: tuple[Fit, ...] = _computed(fits_task(gpu, count, context_tokens, engine), "Sizing every model")
    return found


def load_test_of(tested: Scenario) -> ServingMetrics | None:
    """What a load test of one replica should show; None where the engine does not start."""
    found: ServingMetrics | None = _computed(load_test_task(tested), "Predicting the load test")
    return found


def reading_of(files: Files, base: Scenario, columns: Columns = ()) -> tuple[Together, tuple[Overlay | None, ...]]:
    """What a user's files say, and the figures predicted beside each."""
    doing = "Reading your files" if len(files) > 1 else "Reading your file"
    found: tuple[Together, tuple[Overlay | None, ...]] = _computed(
        reading_task(files, base, columns), doing, on_cancel=_put_away
    )
    return found


def calibration_of(files: Files, base: Scenario) -> Calibration:
    """A plan calibrated to the runs in a user's files."""
    found: Calibration = _computed(
        calibration_task(files, base), "Calibrating to your runs", on_cancel=_stop_calibrating
    )
    return found


def advice_of(scenario: Scenario) -> Advice:
    """Load tests of a plan by what they leave in doubt."""
    found: Advice = _computed(advice_task(scenario), "Comparing load tests")
    return found


def seed_rows() -> tuple[Any, ...]:
    """The seed article's table, served by the general simulator."""
    found: tuple[Any, ...] = _computed(SEED_TASK, "Simulating").rows
    return found


def seed_picture(scheduling: str, num_steps: int) -> StepPicture:
    """The first steps of one row of the seed article's table, drawn."""
    found: StepPicture = _computed(seed_steps_task(scheduling, num_steps), "Simulating")
    return found


def steps_picture(
    done: Plan, policy: str, start: str, num_steps: int, *, by_time: bool = True, tight: bool = False
) -> StepPicture | None:
    """Steps of one replica of the plan under a policy, drawn; None where it can serve no request."""
    task = steps_task(done.scenario, serving_replicas(done), policy, start, num_steps, by_time=by_time, tight=tight)
    found: StepPicture | None = _computed(task, "Simulating")
    return found


def papers() -> tuple[Any, ...]:
    """The papers' comparisons, re-run."""
    found: tuple[Any, ...] = _computed(PAPERS_TASK, "Re-running the papers' workloads")
    return found


def begun(scenario: Scenario) -> AbstractContextManager[Job]:
    """Have the plan of a scenario computed while the block draws something else."""
    return OFFICE.join(plan_task(scenario))


def _computed(task: Task, doing: str, on_cancel: Callable[[], None] | None = None) -> Any:
    """What a task gives; the page shows that it is being worked on. A newer run of the script stops the wait."""
    with OFFICE.join(task) as job:
        if get_script_run_ctx(suppress_warning=True) is None:  # a download, which has no page
            job.done.wait()
        elif not _done_within(job, QUIET_S):
            _wait(job, doing, on_cancel)
    return job.result()


def _done_within(job: Job, seconds: float) -> bool:
    """Whether the job ends in time. Streamlit ends this run meanwhile when a newer change came or the tab closed."""
    end = time.monotonic() + seconds
    while not job.done.wait(POLL_S):
        if time.monotonic() > end:
            return False
        _ = "_scenario" in st.session_state  # any access is where Streamlit ends a run
    return True


def _wait(job: Job, doing: str, on_cancel: Callable[[], None] | None) -> None:
    started, place = time.monotonic() - QUIET_S, st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        said, button = st.empty(), st.empty()
    shown = ""
    while True:
        waited = time.monotonic() - started
        text = f"{doing} … {waited:.0f} s" if OFFICE.ready else LOADING
        if text != shown:
            said.caption(text)
            shown = text
        if on_cancel is not None and waited > CANCEL_AFTER_S:
            button.button("Cancel", key=f"cancel_{doing}_{id(job)}", on_click=on_cancel)
            on_cancel = None  # once is enough
        if _done_within(job, 2 * POLL_S):
            break
    place.empty()


def _put_away() -> None:
    st.session_state["_own"] = None


def _stop_calibrating() -> None:
    st.session_state["_own_calibrate"] = None


def _take_back() -> None:
    """Return to the last scenario that was planned."""
    adopt(st.session_state.get("_scenario") or Scenario())


def current_plan() -> Plan:
    """The plan of this run's scenario."""
    return plan_for(st.session_state["_scenario"])


def latency_samples(result: SimulationResult) -> dict[str, Floats]:
    """TTFT and TPOT of each finished request. [s]"""
    seen = latencies(result, result.status == FINISHED)
    return {"ttft_s": seen.ttft_s, "tpot_s": seen.tpot_s[np.isfinite(seen.tpot_s)]}


def timeline_finding(outcomes: tuple[PolicyOutcome, ...], field: str) -> str:
    """The finding of a timeline, in a sentence."""
    peaks = {
        item.title: float(np.max(getattr(item.result.timeline, field)))
        for item in outcomes
        if item.result.timeline is not None and len(item.result.timeline.time_s)
    }
    if not peaks:
        return "No timeline"
    most = max(peaks, key=lambda title: peaks[title])
    what = "sequences at once" if field == "running" else "blocks of KV cache at once"
    return f"Highest peak: {format_number(peaks[most])} {what}, with {in_sentence(most)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUse:
    """Saturated throughput of the replicas that share the load, and the share that the mean rate uses."""

    capacity_tokens_per_s: float
    mean_fraction: float


def use_of_fleet(done: Plan) -> FleetUse | None:
    """The share of the fleet's throughput that the mean rate uses; None when nothing is served."""
    if done.curve is None or done.cost is None or not done.cost.requests_per_month or done.curve.capacity_rps <= 0:
        return None
    capacity_rps = done.curve.capacity_rps * serving_replicas(done)
    mean_rps = done.cost.requests_per_month / (done.scenario.hours_per_month * SECONDS_PER_HOUR)
    tokens = done.cost.tokens_per_request
    return FleetUse(capacity_tokens_per_s=capacity_rps * tokens, mean_fraction=min(1.0, mean_rps / capacity_rps))
