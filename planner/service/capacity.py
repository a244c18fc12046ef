"""Requests per second that one replica finishes while its queue never empties."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from planner.service.replica import Replica
from planner.simulation import server_s, simulate, stretch
from planner.workload import Requests

#: how many times over the engine is filled to find its capacity, and how many of them settle first
FILLINGS, FILLINGS_LEFT_OUT = 12, 4


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


def capacity_rps(replica: Replica, requests: Requests) -> float:
    """Requests per second that one replica finishes while its queue never empties.

    All requests wait from the start. Until the engine has been filled a few times prompts and answers are
    out of step, and once the last request is taken up only answers are left: completions are counted
    between the two. The requests are repeated until that span holds several fillings. The API server in
    front then slows what it cannot keep up with.

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity and step time.
    requests : Requests
        The workload; its arrival times do not matter.

    Returns
    -------
    float
        0 when no request of the workload fits.
    """
    engine = replica.engine.with_patient_clients()
    result = simulate(at_once(requests), engine, replica.limits, replica.step_time)
    if len(requests) < FILLINGS * result.peak_running:
        more = at_once(repeated(requests, FILLINGS * result.peak_running))
        result = simulate(more, engine, replica.limits, replica.step_time)
    finished = np.sort(result.finish_s[np.isfinite(result.finish_s)])
    if len(finished) < 2:
        return 0.0
    high = max(1, len(finished) - 1 - result.peak_running)
    low = min(FILLINGS_LEFT_OUT * result.peak_running, high - 1)
    span = finished[high] - finished[low]
    rate = float((high - low) / span) if span > 0 else len(finished) / max(result.duration_s, 1e-9)
    return rate / stretch(rate * server_s(replica.step_time, float(requests.output_tokens.mean())))
