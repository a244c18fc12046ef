"""The API server in front of the engine: one serial station that can bind before the GPU does.

It reads each request (HTTP, chat template, tokenisation) and writes each streamed token. Its load is
the sum of both over time; engine and server work side by side, so the slower of the two sets the pace.
The two regimes are joined smoothly: stretch = (1 + load⁴)^¼, which is 1 far below the server's limit
and the load itself far above it. The exponent is the one that the published closed loops were fitted
with (catalog/serving_overheads.csv).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from planner.simulation.records import SimulationResult
from planner.step_time import StepTimeTable


def server_s(step_time: StepTimeTable, output_tokens: float) -> float:
    """Serial work of the API server for one request with that many output tokens. [s]"""
    return step_time.server_per_request_s + step_time.server_per_token_s * output_tokens


def stretch(load: float) -> float:
    """How much longer answers take when the API server is busy for a share `load` of the time."""
    return float((1 + load**4) ** 0.25)


def behind_server(result: SimulationResult, step_time: StepTimeTable, *, num_replicas: int = 1) -> SimulationResult:
    """Let the answers of a simulated engine pass through its API server.

    Parameters
    ----------
    result : SimulationResult
        What the engines did.
    step_time : StepTimeTable
        Carries the server's work per request and token.
    num_replicas : int
        Servers that share the requests.

    Returns
    -------
    SimulationResult
        The time from first to last token stretched; unchanged when the server has no work.
    """
    done = np.isfinite(result.finish_s)
    if not done.any() or not (step_time.server_per_request_s or step_time.server_per_token_s):
        return result
    span = float(result.finish_s[done].max() - result.arrival_s[done].min())
    if span <= 0:
        return result
    work = step_time.server_per_request_s * float(done.sum())
    work += step_time.server_per_token_s * float(result.output_tokens[done].sum())
    longer = stretch(work / num_replicas / span)
    finish = result.first_token_s + (result.finish_s - result.first_token_s) * longer
    return dataclasses.replace(result, finish_s=finish)
