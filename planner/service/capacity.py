"""Requests per second that one replica finishes while its queue never empties."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from planner.service.replica import Replica
from planner.simulation import server_s, simulate
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
    """Requests per second that may be offered to one replica before its queue grows without end.

    Those that it turns away at once, because they are too long for it, count as offered.

    All requests wait from the start. Until the engine has been filled a few times prompts and answers are
    out of step, and once the last request is taken up only answers are left: completions are counted
    between the two. The requests are repeated until that span holds several fillings.

    With a queue that never empties, engine and API server never wait for each other: the engine is simulated without
    its API server, and the slower of the two sets the rate. Nor do LoRA adapters wait for each other (`without_turns`).

    Parameters
    ----------
    replica : Replica
        Scheduler, capacity, step time and the work of the API server.
    requests : Requests
        The workload; its arrival times do not matter.

    Returns
    -------
    float
        0 when no request of the workload fits.
    """
    engine = replica.engine.with_patient_clients()
    requests = without_turns(requests, engine.max_loras)
    alone = dataclasses.replace(
        replica.step_time, server_per_request_s=0.0, server_per_prompt_token_s=0.0, server_per_token_s=0.0
    )
    result = simulate(at_once(requests), engine, replica.limits, alone)
    if len(requests) < FILLINGS * result.peak_running:
        more = at_once(repeated(requests, FILLINGS * result.peak_running))
        result = simulate(more, engine, replica.limits, alone)
    done = np.isfinite(result.finish_s)
    finished = np.sort(result.finish_s[done])
    if len(finished) < 2:
        return 0.0
    high = max(1, len(finished) - 1 - result.peak_running)
    low = min(FILLINGS_LEFT_OUT * result.peak_running, high - 1)
    span = finished[high] - finished[low]
    rate = float((high - low) / span) if span > 0 else len(finished) / max(result.duration_s, 1e-9)
    lengths = (float(tokens[done].mean()) for tokens in (result.prompt_tokens, result.output_tokens))
    work_s = server_s(replica.step_time, engine, *lengths)
    most = min(rate, 1 / work_s) if work_s else rate
    return most / float(done.mean())
