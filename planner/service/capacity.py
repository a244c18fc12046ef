"""Requests per second that one replica finishes while its queue never empties."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.service.replica import Replica
from planner.service.steady import student_975
from planner.simulation import SimulationResult, server_s, simulate
from planner.workload import Requests

#: how many times over the engine is filled to find its capacity, and how many of them settle first
FILLINGS, FILLINGS_LEFT_OUT = 16, 6
#: so few that each holds more than a filling: shorter ones do not see for how long a long answer holds its cache
BATCHES = 6
LEAST_COUNTED = 200  # completions, below which batches tell nothing
NORMAL_975 = 1.96
More = Callable[[int], Requests]


class Capacity(NamedTuple):
    """Requests per second that may be offered to one replica, and the half-width of its 95 % interval.

    The interval is over other requests of the same kind; NaN where too few were counted, or the same ones repeatedly.
    """

    rps: float
    half_width_rps: float


def at_once(requests: Requests) -> Requests:
    """The same requests, all queued at time zero, which shows the capacity."""
    return dataclasses.replace(requests, arrival_s=np.zeros(len(requests)), closed_loop_users=0)


def repeated(requests: Requests, count: int) -> Requests:
    """At least `count` requests: the same ones over and over, the gaps between them included."""
    times = -(-count // len(requests))
    if times <= 1:
        return requests
    arrays: dict[str, Any] = {
        item.name: np.tile(getattr(requests, item.name), times)
        for item in dataclasses.fields(requests)
        if isinstance(getattr(requests, item.name), np.ndarray)
    }
    one_round_s = float(requests.arrival_s[-1]) * len(requests) / max(1, len(requests) - 1)
    arrays["arrival_s"] += np.repeat(np.arange(times) * one_round_s, len(requests))
    return dataclasses.replace(requests, **arrays)


def without_turns(requests: Requests, max_loras: int) -> Requests:
    """The requests as a queue without end is served: no LoRA adapter waits for the turn of another.

    While some adapters have the slots, the requests for others wait, and each change of turns drains the batch. The
    longer the queue, the longer are the turns, so a rate that keeps the engine full between the changes is a stable
    one, as in every polling system with exhaustive service (Takagi 1986). A run shows as many changes as it has
    adapters, whatever its length. Prefixes stay those of one adapter, as within a turn.
    """
    if requests.adapter is None or not 0 < max_loras < len(np.unique(requests.adapter[requests.adapter >= 0])):
        return requests
    return dataclasses.replace(requests, adapter=None)


def capacity_rps(replica: Replica, requests: Requests) -> float:
    """`capacity`, without its interval. [req/s]"""
    return capacity(replica, requests).rps


def capacity(replica: Replica, requests: Requests, more: More | None = None) -> Capacity:
    """Requests per second that may be offered to one replica before its queue grows without end.

    Those that it turns away at once, because they are too long for it, count as offered.

    All requests wait from the start. Until the engine has been filled a few times prompts and answers are
    out of step, and once the last request is taken up only answers are left: completions are counted
    between the two. More requests are drawn, or the same repeated, until that span holds several fillings.

    With a queue that never empties, engine and API server never wait for each other: the engine is simulated without
    its API server, and the slower of the two sets the rate. Nor do LoRA adapters wait for each other (`without_turns`).

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity, step time and the work of the API server.
    requests : Requests
        The workload; its arrival times do not matter.
    more : callable, optional
        Draws at least so many requests of the same kind; without it the same ones are repeated.

    Returns
    -------
    Capacity
        0 when no request of the workload fits. The interval is that of batch means (Law 2015, section 9.5.3) with
        Student's t (`tests/benchmarks/bench_intervals.py`).
    """
    engine = replica.engine.with_patient_clients()
    given = without_turns(requests, engine.max_loras)
    alone = dataclasses.replace(
        replica.step_time, server_per_request_s=0.0, server_per_prompt_token_s=0.0, server_per_token_s=0.0
    )
    result, repeats = simulate(at_once(given), engine, replica.limits, alone), False
    if len(requests) < FILLINGS * result.peak_running:
        count = FILLINGS * result.peak_running
        given = repeated(given, count) if more is None else without_turns(more(count), engine.max_loras)
        result, repeats = simulate(at_once(given), engine, replica.limits, alone), more is None
    done = np.isfinite(result.finish_s)
    finished = np.sort(result.finish_s[done])
    if len(finished) < 2:
        return Capacity(0.0, math.nan)
    high = max(1, len(finished) - 1 - result.peak_running)
    low = min(FILLINGS_LEFT_OUT * result.peak_running, high // 2)
    low, high = (_between_waves(finished, place, result.peak_running) for place in (low, high))
    span = finished[high] - finished[low]
    rate = float((high - low) / span) if span > 0 else len(finished) / max(result.duration_s, 1e-9)
    error = math.nan if repeats else _error(result, finished[low : high + 1])
    work_s = server_s(replica.step_time, engine, result.prompt_tokens[done], result.output_tokens[done])
    if float(work_s.mean()) * rate > 1:
        rate, error = 1 / float(work_s.mean()), math.nan if repeats else NORMAL_975 * _spread(work_s)
    most = rate / float(done.mean())
    return Capacity(most, most * error)


def _between_waves(finished: Floats, place: int, filling: int) -> int:
    """The completion before the widest gap in the filling up to a place: requests that are alike end in waves."""
    first = max(0, place - filling)
    return first + int(np.argmax(np.diff(finished[first : place + 2])))


def _error(result: SimulationResult, finished: Floats) -> float:
    """Half-width of the 95 % interval of a rate of completions, as a share of it; NaN where there are too few."""
    counted = len(finished) - 1
    if counted < LEAST_COUNTED:
        return math.nan
    ends = np.linspace(0, counted, BATCHES + 1).astype(np.int64)
    each_s = np.diff(finished[ends]) / np.diff(ends)
    batches = student_975(BATCHES - 1) * float(each_s.std(ddof=1)) / math.sqrt(BATCHES) / float(each_s.mean())
    # No batch holds whole waves; of requests that are alike the spread of their work tells more.
    prompt, output = result.prompt_tokens.astype(np.float64), result.output_tokens.astype(np.float64)
    spread = max(_spread(prompt**2), _spread(output * (prompt + output / 2)))
    return min(batches, NORMAL_975 * spread)


def _spread(work: Floats) -> float:
    """Standard error of a mean of independent observations, as a share of it."""
    return float(work.std() / work.mean()) / math.sqrt(len(work)) if work.any() else 0.0
