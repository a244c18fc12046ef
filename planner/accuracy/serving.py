"""Predictions of published serving benchmarks: each row's workload, simulated on the engine that it names.

A row becomes a `ServingCase`; sizing gives the memory and limits of the deployment, the step-time
model its step times, and the simulator runs the published arrival pattern: everything at once,
a closed loop at the published concurrency, Poisson arrivals, or one static batch. Nothing here is
fitted to rows: engine and GPU parameters live with the step-time model.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.accuracy.names import benchmark_model, checkpoint_shape
from planner.accuracy.serving_rows import RowSkipped, ServingCase, read_case
from planner.catalog.engine_catalog import get_engine
from planner.catalog.gpu_catalog import get_gpu
from planner.engine import Batching, EngineSettings, StepOrder
from planner.errors import PlannerError
from planner.hardware import Parallelism
from planner.memory_plan import MemoryPlan
from planner.model import MixerKind
from planner.quantization import kv_bits
from planner.simulation import simulate
from planner.simulation.records import Limits, Requests, SimulationResult
from planner.sizing import plan_memory
from planner.step_time import StepTimeTable, StepWork
from planner.step_time_model import step_time_table
from planner.step_time_model.overheads import overhead

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
# trtllm-bench (tensorrt_llm/bench/build/tuning.py)
TUNED_MEMORY_SHARE = 0.95
MOST_MEMORY = 0.95  # the largest share that engines' guides set
TUNED_BATCH_LIMIT = 4096
TUNED_TOKENS_LIMIT = 32768
TUNED_WEIGHT_BYTES = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5}


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Predict every row of a serving benchmark file.

    Parameters
    ----------
    frame : DataFrame
        Rows with the columns of `serving_benchmarks.csv`.

    Returns
    -------
    (DataFrame, dict)
        `id` and `pred_<quantity>` for the rows that can be predicted, and for each other row's id
        the reason why not.
    """
    deployments: dict[Hashable, Deployment | str] = {}
    results: dict[Hashable, dict[str, float]] = {}
    lines: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for published in frame.to_dict("records"):
        row = {str(key): value for key, value in published.items()}
        name = str(row.get("id", ""))
        try:
            case = read_case(row, is_moe=_is_moe)
            key = dataclasses.replace(case, id="")
            if key not in results:
                results[key] = predict_case(case, deployments)
            lines.append({"id": name} | results[key])
        except (RowSkipped, PlannerError) as reason:
            skipped[name] = str(reason)
    columns = ["id", *COLUMNS]
    return pd.DataFrame(lines, columns=columns), skipped


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One replica, sized and timed."""

    engine: EngineSettings
    memory: MemoryPlan
    limits: Limits
    table: StepTimeTable


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
    found = _deployment(case, {} if deployments is None else deployments)
    api_s, api_token_s = _api_s(case)
    requests = draw_case(case, api_s)
    engine, table = found.engine, found.table
    if case.with_api:
        streaming_s = overhead(case.engine, ".".join(map(str, case.version)), "stream_us_per_sequence") * 1e-6
        table = dataclasses.replace(table, host_per_sequence_s=table.host_per_sequence_s + streaming_s)
    else:
        table = dataclasses.replace(table, request_overhead_s=0.0)
    if case.arrival == "static":
        engine = dataclasses.replace(engine, batching=Batching.STATIC, max_num_seqs=case.concurrency)
    wait_s = _receive_wait_s(case, found)
    if wait_s:
        requests = dataclasses.replace(requests, think_time_s=wait_s)
    result = simulate(requests, engine, found.limits, table)
    per_request_s = api_s + api_token_s * case.output_tokens / case.stream_interval_tokens
    return measure_case(case, result, wait_s, per_request_s)


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


def _api_s(case: ServingCase) -> tuple[float, float]:
    """Serial work of the API server per request and per streamed answer, in seconds."""
    if not case.with_api:
        return 0.0, 0.0
    version = ".".join(map(str, case.version))
    return (
        overhead(case.engine, version, "api_ms_per_request") * 1e-3,
        overhead(case.engine, version, "api_us_per_token") * 1e-6,
    )


def _deployment(case: ServingCase, cache: dict[Hashable, Deployment | str]) -> Deployment:
    high = 2.5 if case.prompt_low < 0 else max(case.prompt_high, case.output_high)
    longest = math.ceil((case.prompt_tokens + case.output_tokens) * high) + 16
    max_tokens = case.max_num_batched_tokens or 0
    key = (
        case.model,
        case.gpu,
        case.engine,
        case.version,
        case.weight_dtype,
        case.kv_cache_dtype,
        case.tensor_parallel_size,
        case.pipeline_parallel_size,
        case.expert_parallel,
        case.attention_data_parallel_size,
        case.max_num_seqs,
        max_tokens,
        case.gpu_memory_utilization,
        case.max_model_len or longest,
        case.arrival == "static",
        case.moe_runner_backend,
        (case.prompt_tokens, case.output_tokens) if case.tuned_batch else (),
    )
    if key not in cache:
        try:
            cache[key] = _deploy(case, case.max_model_len or longest)
        except (PlannerError, RowSkipped) as reason:
            cache[key] = str(reason)
    found = cache[key]
    if isinstance(found, str):
        raise RowSkipped(found)
    return found


def engine_of(case: ServingCase) -> EngineSettings:
    """Choose the engine preset of a case: its family at the published version, with what the row sets."""
    engine = get_engine({"llamacpp": "llama.cpp", "generic": "vllm"}.get(case.engine, case.engine))
    changes: dict[str, Any] = {
        "version": ".".join(map(str, case.version)),
        "enable_prefix_caching": False,
        "moe_runner_backend": case.moe_runner_backend,
    }
    for name in ("max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"):
        if getattr(case, name) is not None:
            changes[name] = getattr(case, name)
    if case.engine == "vllm":
        # asynchronous scheduling became the default with 0.14; before it the host's work adds to each step
        changes["async_scheduling"] = not case.version or case.version >= (0, 14)
        # CUDA graphs came with 0.3 (January 2024)
        changes["cuda_graphs"] = not 0 < case.year < 2024 and (not case.version or case.version >= (0, 3))
        if case.version and case.version < (0, 8):
            # V0, the default until 0.8: whole prompts first, decoding waits
            changes |= {"step_order": StepOrder.PREFILL_FIRST, "enable_chunked_prefill": False}
    return dataclasses.replace(engine, **changes)


def tuned_batch(case: ServingCase) -> tuple[int, int]:
    """Batch size and token budget that trtllm-bench derives from model, GPU and mean lengths.

    As many requests as the memory beside the weights holds, at most 4,096, and the tokens that they bring
    per step while prompts keep pace with answers; both rounded up to the steps that the tool uses.

    Parameters
    ----------
    case : ServingCase
        The run.

    Returns
    -------
    max_num_seqs, max_num_batched_tokens : int, int
        Source: TensorRT-LLM `tensorrt_llm/bench/build/tuning.py`.
    """
    model, gpu = checkpoint_shape(case.model, case.weight_dtype), get_gpu(case.gpu)
    width = case.tensor_parallel_size * case.attention_data_parallel_size
    ranks = width * case.pipeline_parallel_size
    per_token = 0.0
    for layer, count in model.layer_counts():
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA:  # the published rates need more than the tool's own guess, which knows no latents
            per_token += count * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
        elif mixer.num_kv_heads:
            per_token += count * max(width, mixer.num_kv_heads) * (mixer.head_dim + mixer.value_head_dim)
    per_token *= kv_bits(case.kv_cache_dtype, model, case.weight_dtype) / 8
    weights = model.num_parameters * TUNED_WEIGHT_BYTES.get(case.weight_dtype, 2.0)
    room = TUNED_MEMORY_SHARE * (gpu.memory_bytes * ranks - weights)
    held = room / max(1.0, per_token * (case.prompt_tokens + case.output_tokens))
    batch = min(max(held, 1.0), TUNED_BATCH_LIMIT) / case.pipeline_parallel_size
    tokens = min(batch * (1 + case.prompt_tokens / case.output_tokens), TUNED_TOKENS_LIMIT)
    step = 32 if batch < 256 else 128 if batch < 1024 else 256
    quantum = 256 if tokens < 4096 else 512 if tokens < 8192 else 1024
    # of each micro-batch in flight; the simulated scheduler counts all of them
    batch = max(64, step * math.ceil(batch / step)) * case.pipeline_parallel_size
    return batch, max(2048, quantum * math.ceil(tokens / quantum))


def _deploy(case: ServingCase, max_model_len: int) -> Deployment:
    model, gpu, engine = checkpoint_shape(case.model, case.weight_dtype), get_gpu(case.gpu), engine_of(case)
    if case.tuned_batch:
        batch, budget = tuned_batch(case)
        engine = dataclasses.replace(
            engine,
            max_num_seqs=case.max_num_seqs or batch,
            max_num_batched_tokens=case.max_num_batched_tokens or budget,
        )
    parallelism = Parallelism(
        tensor_parallel_size=case.tensor_parallel_size,
        pipeline_parallel_size=case.pipeline_parallel_size,
        expert_parallel=case.expert_parallel,
        attention_data_parallel_size=case.attention_data_parallel_size,
    )
    memory = _plan(case, engine, parallelism, max_model_len)
    if not memory.starts and not case.expert_parallel and memory.kv_pool_bytes > 0:
        # Widths that a scheme's blocks do not divide run with whole experts per rank.
        other = _plan(case, engine, dataclasses.replace(parallelism, expert_parallel=True), max_model_len)
        memory = other if other.starts else memory
    for share in (None, MOST_MEMORY):
        if memory.starts or case.memory_share_stated:
            break
        # The harness's usual share of memory holds no weights here, and yet it ran: it had more.
        roomier = dataclasses.replace(engine, gpu_memory_utilization=share)
        other = _plan(case, roomier, parallelism, max_model_len)
        memory = other if other.starts else memory
    limits = memory.limits()
    if not memory.starts:
        # It was measured, so it ran: our memory model is a little too strict here. Give it the room of a few
        # requests, which errs on the slow side.
        if memory.weights_bytes > gpu.memory_bytes:
            raise RowSkipped(f"by our sizing the engine does not start: {memory.refusal}")
        blocks = max(memory.num_kv_blocks, 4 * math.ceil(max_model_len / memory.block_size) + 1)
        limits = dataclasses.replace(limits, num_kv_blocks=blocks)
    ranks = case.attention_data_parallel_size
    if ranks > 1:
        # Sizing speaks of one attention rank; the simulated scheduler deals requests to all of them evenly.
        limits = dataclasses.replace(
            limits,
            max_num_seqs=limits.max_num_seqs * ranks,
            max_num_batched_tokens=limits.max_num_batched_tokens * ranks,
            num_kv_blocks=limits.num_kv_blocks * ranks,
        )
    if case.arrival == "static":
        # A static engine pads to its batch: prompts of the whole batch go through at once.
        limits = dataclasses.replace(
            limits,
            max_num_seqs=max(limits.max_num_seqs, case.concurrency),
            max_num_batched_tokens=max(limits.max_num_batched_tokens, math.ceil(case.prompt_tokens * case.concurrency)),
            num_kv_blocks=max(
                limits.num_kv_blocks, case.concurrency * (math.ceil(max_model_len / limits.block_size) + 1)
            ),
        )
    engine = dataclasses.replace(
        engine,
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        gpu_memory_utilization=memory.gpu_memory_utilization,
        block_size=memory.block_size,
    )
    drafts = case.num_speculative_tokens
    table = step_time_table(
        model,
        gpu,
        engine,
        parallelism,
        weight_dtype=case.weight_dtype,
        kv_cache_dtype=case.kv_cache_dtype,
        max_tokens=max(limits.max_num_batched_tokens, limits.max_num_seqs * (1 + drafts)),
    )
    if drafts:
        table = speculate(table, drafts, case.tokens_per_step)
    return Deployment(engine=engine, memory=memory, limits=limits, table=table)


def speculate(table: StepTimeTable, drafts: int, tokens_per_step: float) -> StepTimeTable:
    """Turn step times into times per accepted token of a deployment that drafts and verifies.

    Parameters
    ----------
    table : StepTimeTable
        Step times without speculation.
    drafts : int
        Tokens drafted per sequence and step; verification runs 1 + drafts tokens per sequence.
    tokens_per_step : float
        Mean tokens that a sequence gains per step, (1 − a^(k+1))/(1 − a) at acceptance a.

    Returns
    -------
    StepTimeTable
        Decode figures divided by the tokens gained; drafting costs one layer of many per token.
    """
    sequences = np.arange((len(table.decode_s) - 1) // (1 + drafts) + 1)
    verify = table.decode_s[sequences * (1 + drafts)]
    draft = 1 + 0.05 * drafts
    gain = tokens_per_step
    return dataclasses.replace(
        table,
        decode_s=verify * draft / gain,
        attention_base_s=table.attention_base_s * draft / gain,
        attention_per_sequence_s=table.attention_per_sequence_s * draft / gain,
        attention_per_kv_token_s=table.attention_per_kv_token_s * draft / gain,
        attention_floor_s=table.attention_floor_s * draft / gain,
        window_base_s=table.window_base_s * draft / gain,
        window_per_kv_token_s=table.window_per_kv_token_s * draft / gain,
        window_floor_s=table.window_floor_s * draft / gain,
        host_s=table.host_s / gain,
        host_per_sequence_s=table.host_per_sequence_s / gain,
    )


def _plan(case: ServingCase, engine: EngineSettings, parallelism: Parallelism, max_model_len: int) -> MemoryPlan:
    return plan_memory(
        checkpoint_shape(case.model, case.weight_dtype),
        get_gpu(case.gpu),
        engine,
        parallelism,
        max_model_len=max_model_len,
        weight_dtype=case.weight_dtype,
        kv_cache_dtype=case.kv_cache_dtype,
    )


def draw_case(case: ServingCase, api_s: float = 0.0) -> Requests:
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
    elif case.arrival == "burst":
        # one API server reads the burst request by request
        arrival = np.asarray(api_s * shares * (np.arange(count) // case.beams), dtype=np.float64)
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


def _receive_wait_s(case: ServingCase, found: Deployment) -> float:
    """Mean wait before a scheduler that polls its inbox only every so many steps sees a request, in seconds."""
    if case.receive_interval_steps <= 1 or case.arrival != "closed":
        return 0.0
    users = max(1, case.concurrency // case.replicas)
    context = int(users * (case.prompt_tokens + case.output_tokens / 2))
    step = found.table.step_s(StepWork(num_decodes=users, kv_tokens=context, window_kv_tokens=0, num_logit_rows=users))
    return case.receive_interval_steps / 2 * step


def measure_case(
    case: ServingCase, result: SimulationResult, wait_s: float = 0.0, api_s: float = 0.0
) -> dict[str, float]:
    """Measure a simulated run as the benchmark clients do: over all requests, first wave included.

    Parameters
    ----------
    case : ServingCase
        What ran.
    result : SimulationResult
        One replica's run.
    wait_s : float
        Mean wait until the scheduler sees a request. [s]
    api_s : float
        Serial work of the API server per request, its streamed answers included. [s] Engine and API
        server are two stations in a loop: near the slower one's limit its queue stretches the answers.

    Returns
    -------
    dict of str to float
        The `pred_*` figures.
    """
    done = np.isfinite(result.finish_s)
    if not done.any():
        raise RowSkipped("no request finished in the simulation")
    arrival, first, finish = result.arrival_s[done], result.first_token_s[done], result.finish_s[done]
    if case.arrival == "burst":
        arrival = np.zeros_like(arrival)  # the clients sent everything at once
    output = result.output_tokens[done]
    whole_s = float(finish.max() - arrival.min())
    busy = api_s * len(output) / case.beams / whole_s if api_s and whole_s > 0 else 0.0
    stretch = (1 + busy**4) ** 0.25
    finish = first + (finish - first) * stretch
    if case.stream_interval_tokens > 1:
        # the first answer carries several tokens: later by their time, which the client's TPOT then misses
        held = np.minimum(case.stream_interval_tokens, output) - 1
        first = first + held * (finish - first) / np.maximum(1, output - 1)
    ttft = first - arrival + wait_s
    several = output > 1
    tpot = (finish - first)[several] / (output[several] - 1)
    span = float(result.finish_s[done].max() - arrival.min()) * stretch
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
        "pred_e2e_s_mean": float((finish - arrival).mean()) + wait_s,
    }


def explain_row(row: Mapping[str, Any]) -> tuple[ServingCase, Deployment]:
    """Read one row and size it, for the accuracy page and for looking into a residual."""
    case = read_case(row, is_moe=_is_moe)
    return case, _deployment(case, {})
