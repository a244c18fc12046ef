"""Cached doors from the pages to the library: each page asks here, so that all show the same plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from planner.answer import Plan
from planner.cost import SECONDS_PER_MONTH
from planner.dashboard.headlines import serving
from planner.planning import plan
from planner.policies import PolicyOutcome
from planner.scenario import Scenario
from planner.search import Change, Search, recommend, what_would_change
from planner.simulation.records import FINISHED, SimulationResult
from planner.sizing import kv_bytes_for
from planner.units import GIB, KIB, MIB, format_gib, format_number

MISTAKES = {
    "one_at_a_time": "Benchmarking with one request at a time",
    "short_prompts": "Testing only short prompts",
    "average_only": "Reporting the average latency and hiding the tail",
    "cache_ignored": "Sizing by the weights and ignoring the cache",
    "few_requests": "Self-hosting for a few thousand requests a day",
}


@st.cache_data(max_entries=64, show_spinner=False)
def plan_for(scenario: Scenario) -> Plan:
    """The plan of a scenario, computed once."""
    return plan(scenario)


@st.cache_data(max_entries=32, show_spinner=False)
def changes_for(scenario: Scenario) -> tuple[Change, ...]:
    """What single changes of the scenario do to the answer; nothing where the traffic has no rate to plan for."""
    return what_would_change(scenario)


@st.cache_data(max_entries=16, show_spinner=False)
def search_for(scenario: Scenario, gpus: tuple[str, ...] | None, weight_dtypes: tuple[str, ...] | None) -> Search:
    """The search over deployments."""
    return recommend(scenario, gpus=gpus, weight_dtypes=weight_dtypes)


def current_plan() -> Plan:
    """The plan of this run's scenario."""
    return plan_for(st.session_state["_scenario"])


def serving_replicas(done: Plan) -> int:
    """Replicas that share the load."""
    return serving(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A sum that must come out, in words, and whether it does."""

    text: str
    holds: bool


def pool_identity(done: Plan) -> Identity:
    """Tokens × bytes per token against the pool: equal up to the blocks that the engine keeps back.

    With windows or states a token has no single size; then sequences × bytes per sequence must fit the pool.
    """
    memory, s = done.memory, done.scenario
    pool = max(0.0, memory.kv_pool_bytes)
    tokens = memory.num_kv_blocks * memory.block_size
    if tokens <= 0 or memory.kv_tokens <= 0:
        return Identity(text="No pool is left, so there are no tokens: 0 × anything = 0.", holds=memory.kv_tokens <= 0)
    product = tokens * memory.kv_bytes_per_token
    block = memory.block_size * memory.kv_bytes_per_token
    if abs(pool - product) <= 2.01 * block:
        return Identity(
            text=f"{memory.num_kv_blocks:,} blocks × {memory.block_size} = {tokens:,} tokens × "
            f"{memory.kv_bytes_per_token / KIB:,.4g} KiB = {product / GIB:,.3f} GiB of a pool of "
            f"{pool / GIB:,.3f} GiB; the remaining {(pool - product) / MIB:,.1f} MiB are the engine's null block and "
            "less than one block.",
            holds=product <= pool * (1 + 1e-9),
        )
    each = kv_bytes_for(
        done.model,
        memory.max_model_len,
        kv_cache_dtype=s.kv_cache_dtype,
        tensor_parallel_size=s.tensor_parallel_size,
        weight_dtype=s.weight_dtype,
    )
    used = memory.max_concurrency * each / s.pipeline_parallel_size
    return Identity(
        text=f"Windows, states or uneven stages: a token has no single size. {memory.max_concurrency:,.2f} sequences "
        f"of {memory.max_model_len:,} tokens × {format_gib(each / s.pipeline_parallel_size, 4)} = {used / GIB:,.3f} "
        f"of {pool / GIB:,.3f} GiB of pool; the rest is what blocks, groups and window slack round up. The engine logs "
        f"{memory.kv_tokens:,} tokens.",
        holds=used <= pool * 1.001 or s.pipeline_parallel_size > 1,
    )


def latency_samples(result: SimulationResult) -> dict[str, NDArray[np.float64]]:
    """TTFT and TPOT of each finished request. [s]"""
    done = result.status == FINISHED
    first, last = result.first_token_s[done], result.finish_s[done]
    outputs = result.output_tokens[done]
    several = outputs > 1
    return {
        "ttft_s": first - result.arrival_s[done],
        "tpot_s": (last - first)[several] / (outputs[several] - 1),
    }


def typical_step(done: Plan) -> dict[str, int]:
    """A step as it is at the peak: mean sequences running, mean context, a chunk of the mean prompt."""
    running = max(1, round(done.result.mean_running)) if done.result is not None else 1
    chunk = max(1, min(done.memory.max_num_batched_tokens - running, round(done.mean_prompt_tokens)))
    return {
        "running": running,
        "context_tokens": max(1, round(done.mean_prompt_tokens + done.mean_output_tokens / 2)),
        "chunk_tokens": chunk,
    }


def timeline_finding(outcomes: tuple[PolicyOutcome, ...], field: str) -> str:
    """What a timeline shows, in a sentence."""
    peaks = {
        item.title: float(np.max(getattr(item.result.timeline, field)))
        for item in outcomes
        if item.result.timeline is not None and len(item.result.timeline.time_s)
    }
    if not peaks:
        return "No timeline"
    most = max(peaks, key=lambda title: peaks[title])
    what = "sequences at once" if field == "running" else "blocks of KV cache at once"
    return f"{most} peaks at {format_number(peaks[most])} {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUse:
    """Throughput of the fleet with a full queue and the share of it that the mean rate uses."""

    capacity_tokens_per_s: float
    mean_fraction: float


def use_of_fleet(done: Plan) -> FleetUse | None:
    """How much of the fleet's throughput the mean rate uses; None when it serves nothing."""
    if done.curve is None or done.cost is None or done.curve.capacity_rps <= 0:
        return None
    capacity_rps = done.curve.capacity_rps * done.num_replicas
    mean_rps = done.cost.requests_per_month / SECONDS_PER_MONTH
    tokens = done.mean_prompt_tokens + done.mean_output_tokens
    return FleetUse(capacity_tokens_per_s=capacity_rps * tokens, mean_fraction=min(1.0, mean_rps / capacity_rps))
