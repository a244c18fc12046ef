"""Cached results for the pages: every page asks here, so all show the same plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from planner.answer import Change, Plan, Search, plan, recommend, serving_replicas, what_would_change
from planner.arrays import Floats
from planner.charts import in_sentence
from planner.scenario import Scenario
from planner.service import PolicyOutcome, latencies
from planner.simulation import FINISHED, SimulationResult
from planner.units import SECONDS_PER_HOUR, format_number

MISTAKES = {
    "one_at_a_time": "Benchmarking with one request at a time",
    "short_prompts": "Testing only short prompts",
    "average_only": "Reporting the average latency and hiding the tail",
    "cache_ignored": "Sizing by the weights and ignoring the KV cache",
    "few_requests": "Self-hosting for a few thousand requests a day",
}


@st.cache_data(max_entries=64, show_spinner=False)
def plan_for(scenario: Scenario) -> Plan:
    """The plan of a scenario, computed once."""
    return plan(scenario)


@st.cache_data(max_entries=32, show_spinner=False)
def changes_for(scenario: Scenario) -> tuple[Change, ...]:
    """What single changes of the scenario do to the answer; empty where the traffic has no rate to size for."""
    return what_would_change(scenario)


@st.cache_data(max_entries=16, show_spinner=False)
def search_for(scenario: Scenario, gpus: tuple[str, ...] | None, weight_dtypes: tuple[str, ...] | None) -> Search:
    """The search over deployments, run once."""
    return recommend(scenario, gpus=gpus, weight_dtypes=weight_dtypes)


def current_plan() -> Plan:
    """The plan of this run's scenario."""
    return plan_for(st.session_state["_scenario"])


def latency_samples(result: SimulationResult) -> dict[str, Floats]:
    """TTFT and TPOT of each finished request. [s]"""
    seen = latencies(result, result.status == FINISHED)
    return {"ttft_s": seen.ttft_s, "tpot_s": seen.tpot_s[np.isfinite(seen.tpot_s)]}


def typical_step(done: Plan) -> dict[str, int]:
    """A typical step of one replica at the peak: mean sequences running, mean context, a chunk of the mean prompt."""
    running = 1
    if done.result is not None and len(done.result.replica):
        running = max(1, round(done.result.mean_running / (int(done.result.replica.max()) + 1)))
    chunk = max(1, min((done.engine.max_num_batched_tokens or 0) - running, round(done.mean_prompt_tokens)))
    return {
        "running": running,
        "context_tokens": max(1, round(done.mean_prompt_tokens + done.mean_output_tokens / 2)),
        "chunk_tokens": chunk,
    }


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
