"""Predictions of published serving benchmarks: each row's workload, simulated on the engine that it names.

A row becomes a `ServingCase`; sizing gives the memory and limits of the deployment, the step-time
model its step times, and the simulator runs the published arrival pattern: everything at once,
a closed loop at the published concurrency, Poisson arrivals, or one static batch. No parameter belongs
to a row or a model: those of engines and GPUs live with the step-time model and its data files (some of
them were adjusted on published rows, as the README says), and what a row leaves open is an assumption
that `serving_rows` states.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.accuracy.cells import reason_of
from planner.accuracy.names import benchmark_model
from planner.accuracy.serving_deploy import Deployment, deployment_of
from planner.accuracy.serving_rows import RowSkipped, ServingCase, read_case
from planner.errors import PlannerError
from planner.inputs import Batching
from planner.simulation import SimulationResult, simulate
from planner.step_time import overhead
from planner.workload import Requests

COLUMNS = (
    "pred_output_tok_s_total",
    "pred_total_tok_s",
    "pred_req_s",
    "pred_ttft_ms_mean",
    "pred_ttft_ms_p50",
    "pred_tpot_ms_mean",
    "pred_tpot_ms_p50",
    "pred_e2e_s_mean",
)
# A closed loop is periodic after a few rounds and a burst settles after a few fillings of the engine;
# more requests than this change no mean by a visible amount.
MAX_CLOSED_ROUNDS = 10
MAX_CLOSED_REQUESTS = 3000
MAX_BURST_REQUESTS = 6000


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str]]:
    """Predict every row of a serving benchmark file.

    Parameters
    ----------
    frame : DataFrame
        Rows with the columns of `serving_benchmarks.csv`.

    Returns
    -------
    DataFrame
        `id` and `pred_<quantity>` of every row, blank where skipped.
    dict of int to str
        Why a row was skipped, by its number from 0.
    """
    deployments: dict[Hashable, Deployment | str] = {}
    results: dict[Hashable, dict[str, float]] = {}
    lines: list[dict[str, Any]] = []
    skipped: dict[int, str] = {}
    for number, published in enumerate(frame.to_dict("records")):
        row = {str(key): value for key, value in published.items()}
        lines.append({"id": row.get("id", str(number))})
        try:
            case = read_case(row, is_moe=_is_moe)
            key = dataclasses.replace(case, id="")
            if key not in results:
                results[key] = predict_case(case, deployments)
            lines[-1] |= results[key]
        except Exception as error:  # whatever a foreign row holds, it must not cost the other rows
            skipped[number] = reason_of(error)
    return pd.DataFrame(lines, columns=["id", *COLUMNS]), skipped


def _is_moe(name: str) -> bool:
    return benchmark_model(name).is_moe


def predict_case(case: ServingCase, deployments: dict[Hashable, Deployment | str] | None = None) -> dict[str, float]:
    """Predict one published run.

    Parameters
    ----------
    case : ServingCase
        The run.
    deployments : dict, optional
        Cache of sized deployments, shared between calls.

    Returns
    -------
    dict of str to float
        `pred_*` figures of the whole deployment: tokens and requests per second over all GPUs,
        TTFT and TPOT in milliseconds, end-to-end time in seconds.

    Raises
    ------
    RowSkipped
        When the deployment does not start by the memory model.
    """
    if case.any_width:
        return _predict_best_width(case, {} if deployments is None else deployments)
    found = deployment_of(case, {} if deployments is None else deployments)
    requests = draw_case(case)
    engine, table = found.engine, found.table
    if case.with_api:
        streaming_s = overhead(case.engine, ".".join(map(str, case.version)), "stream_us_per_sequence") * 1e-6
        table = dataclasses.replace(
            table,
            host_per_sequence_s=table.host_per_sequence_s + streaming_s,
            # the beams of a request are read once, and their tokens sent together
            server_per_request_s=table.server_per_request_s / case.beams,
            server_per_token_s=table.server_per_token_s / case.beams,
        )
    else:
        table = dataclasses.replace(table, request_overhead_s=0.0, server_per_request_s=0.0, server_per_token_s=0.0)
    engine = dataclasses.replace(
        engine,
        stream_interval_tokens=case.stream_interval_tokens,
        receive_interval_steps=case.receive_interval_steps,
    )
    if case.arrival == "static":
        engine = dataclasses.replace(engine, batching=Batching.STATIC, max_num_seqs=case.concurrency)
    return measure_case(case, simulate(requests, engine, found.limits, table))


def _predict_best_width(case: ServingCase, deployments: dict[Hashable, Deployment | str]) -> dict[str, float]:
    """Predict a run whose parallelism nobody published: the replicas that together make most tokens."""
    best: dict[str, float] = {}
    reason = "no width divides the GPUs"
    for width in (size for size in range(1, case.num_gpus + 1) if case.num_gpus % size == 0):
        replicas = case.num_gpus // width
        one = dataclasses.replace(case, any_width=False, tensor_parallel_size=width, replicas=replicas)
        try:
            found = predict_case(one, deployments)
        except (RowSkipped, PlannerError) as refused:
            reason = str(refused)
            continue
        if not best or found["pred_output_tok_s_total"] > 1.01 * best["pred_output_tok_s_total"]:
            best = found
    if not best:
        raise RowSkipped(reason)
    return best


def draw_case(case: ServingCase) -> Requests:
    """Draw the requests that one replica (or one attention rank's share) of a case serves."""
    shares = case.replicas
    count = max(1, round(case.num_requests / shares))
    users = max(1, round(case.concurrency / shares)) if case.concurrency else 0
    if case.arrival == "closed":
        count = min(max(count, users), max(MAX_CLOSED_ROUNDS * users, 10), max(MAX_CLOSED_REQUESTS, 3 * users))
    elif case.arrival == "burst":
        count = min(count, MAX_BURST_REQUESTS)
    seed = int.from_bytes(hashlib.sha256(repr((case.prompt_tokens, case.output_tokens)).encode()).digest()[:4], "big")
    rng = np.random.default_rng(seed)
    prompt = _draw(rng, case.prompt_tokens, case.prompt_low, case.prompt_high, count)
    output = _draw(rng, case.output_tokens, case.output_low, case.output_high, count)
    if case.decode_only:
        prompt = np.ones(count, dtype=np.int64)
    given = None
    if case.beams > 1:
        # the beams of a request share its prompt: one of them computes it, all attend to it
        prompt, output = np.repeat(prompt, case.beams), np.repeat(output, case.beams)
        given = np.where(np.arange(len(prompt)) % case.beams, prompt - 1, 0)
        count, users = len(prompt), users * case.beams
    arrival: NDArray[np.float64] = np.zeros(count)
    if case.arrival == "poisson":
        gaps = rng.exponential(shares / case.rate_rps, count // case.beams)
        arrival = np.repeat(np.cumsum(gaps) - gaps[0], case.beams)
    return Requests(
        arrival_s=arrival,
        prompt_tokens=prompt,
        output_tokens=output,
        output_limit_tokens=output,
        prefix_group=np.full(count, -1, dtype=np.int64),
        prefix_tokens=np.zeros(count, dtype=np.int64),
        closed_loop_users=users if case.arrival == "closed" else 0,
        kv_ready_tokens=given,
    )


def _draw(rng: np.random.Generator, mean: float, low: float, high: float, count: int) -> np.ndarray:
    if low < 0:
        # exponential, cut at `high` times the mean, brought back to the published mean
        drawn = np.minimum(rng.exponential(1.0, count), high)
        return np.maximum(1, np.rint(drawn * (mean / drawn.mean()))).astype(np.int64)
    if low == high:
        return np.full(count, max(1, round(mean)), dtype=np.int64)
    first, last = max(1, round(mean * low)), max(1, round(mean * high))
    drawn = rng.integers(first, last + 1, count)
    # Few draws scatter; the published means are of the drawn lengths, so keep the mean of the law.
    wanted = (first + last) / 2
    return np.maximum(1, np.rint(drawn * (wanted / drawn.mean()))).astype(np.int64)


def measure_case(case: ServingCase, result: SimulationResult) -> dict[str, float]:
    """Measure a simulated run as the benchmark clients do: over all requests, first wave included.

    Parameters
    ----------
    case : ServingCase
        What ran.
    result : SimulationResult
        One replica's run.

    Returns
    -------
    dict of str to float
        The `pred_*` figures.
    """
    done = np.isfinite(result.finish_s)
    if not done.any():
        raise RowSkipped("no request finished in the simulation")
    arrival, first, finish = result.arrival_s[done], result.first_token_s[done], result.finish_s[done]
    output = result.output_tokens[done]
    ttft = first - arrival
    several = output > 1
    tpot = (finish - first)[several] / (output[several] - 1)
    span = float(finish.max() - arrival.min())
    scale = case.replicas / span / case.beams if span > 0 else math.nan
    tokens = float(output.sum())
    if case.decode_only and several.any():
        # decode speed alone: tokens after the first over the time between first and last
        span = float((finish - first).mean())
        scale, tokens = case.replicas * max(1, case.concurrency) / span, float((output - 1).mean())
    total = tokens + float(result.prompt_tokens[done].sum())
    return {
        "pred_output_tok_s_total": tokens * scale,
        "pred_total_tok_s": total * scale,
        "pred_req_s": len(output) * scale,
        "pred_ttft_ms_mean": 1e3 * float(ttft.mean()),
        "pred_ttft_ms_p50": 1e3 * float(np.median(ttft)),
        "pred_tpot_ms_mean": 1e3 * float(tpot.mean()) if len(tpot) else math.nan,
        "pred_tpot_ms_p50": 1e3 * float(np.median(tpot)) if len(tpot) else math.nan,
        "pred_e2e_s_mean": float((finish - arrival).mean()),
    }
