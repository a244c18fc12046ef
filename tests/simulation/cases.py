"""Small makers shared by the tests of the simulator."""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from planner.catalog.engines import engine_names, get_engine
from planner.inputs.engine import EngineSettings, KvReservation
from planner.inputs.limits import Limits
from planner.simulation.machine import Machine
from planner.step_time.step_table import StepTimeTable
from planner.workload.requests import Requests

UNIT = StepTimeTable.unit(64)


def make(
    arrival: list[float], prompt: list[int], output: list[int], *, limit: list[int] | None = None, **more: object
) -> Requests:
    n = len(arrival)
    values = {
        "arrival_s": np.array(arrival, dtype=float),
        "prompt_tokens": np.array(prompt, dtype=np.int64),
        "output_tokens": np.array(output, dtype=np.int64),
        "output_limit_tokens": np.array(output if limit is None else limit, dtype=np.int64),
        "prefix_group": np.full(n, -1, dtype=np.int64),
        "prefix_tokens": np.zeros(n, dtype=np.int64),
    }
    return Requests(**{**values, **more})  # type: ignore[arg-type]


def give(machine: Machine, index: int) -> None:
    """Hand one more request to a replica."""
    machine.feed[machine.count("fed")] = index
    machine.state["fed"] += 1


def limits(
    seqs: int = 4, budget: int = 1000, max_len: int = 1000, blocks: int = 10_000, size: int = 1, fixed: int = 0
) -> Limits:
    return Limits(
        max_num_seqs=seqs,
        max_num_batched_tokens=budget,
        max_model_len=max_len,
        num_kv_blocks=blocks,
        block_size=size,
        fixed_blocks_per_sequence=fixed,
    )


def random_case(seed: int, *, pressure: bool = False) -> tuple[Requests, EngineSettings, Limits, StepTimeTable]:
    """A random engine, workload, capacity and step time; `pressure` makes memory scarce."""
    draw = random.Random(seed)
    n = draw.choice([1, 2, 5, 20, 60])
    spread = draw.choice([0.0, 0.3, 2.0])
    longest_prompt, longest_output = (10, 90) if pressure else (draw.choice([3, 20, 90]), draw.choice([1, 6, 40]))
    output = [draw.randint(1, longest_output) for _ in range(n)]
    prompt = np.array([draw.randint(1, longest_prompt) for _ in range(n)])
    groups = draw.choice([0, 0, 1, 3])
    group = np.array([draw.randrange(-1, groups) if groups else -1 for _ in range(n)])
    common = np.full(n, draw.choice([5, 16, 40]))
    if draw.random() < 0.4:  # as in conversations, where everybody repeats what was said so far
        common = np.array([draw.randint(0, 90) for _ in range(n)])
    closed = draw.random() < 0.25
    requests = make(
        sorted(round(draw.uniform(0, n * spread), 2) for _ in range(n)),
        prompt.tolist(),
        output,
        limit=[tokens + draw.choice([0, 5, 50]) for tokens in output],
        prefix_group=group,
        prefix_tokens=np.where(group >= 0, np.minimum(prompt, common), 0),
        priority=np.array([draw.choice([-1, 0, 5]) for _ in range(n)]) if draw.random() < 0.25 else None,
        kv_ready_tokens=prompt - 1 if draw.random() < 0.15 else None,
        closed_loop_users=draw.choice([1, 3, 9]) if closed else 0,
        think_time_s=draw.choice([0.0, 0.7]) if closed else 0.0,
        adapter=np.array([draw.randrange(-1, 5) for _ in range(n)]) if draw.random() < 0.3 else None,
    )
    name = draw.choice(["vllm", "sglang", "tensorrt-llm-max-utilization"] if pressure else engine_names())
    max_len = 140 if pressure else draw.choice([60, 140, 400])
    size = draw.choice([1, 4, 16])
    pool = draw.choice([1.1, 1.5, 2.5] if pressure else [0.5, 1, 1.5, 4, 20])
    capacity = limits(
        seqs=draw.choice([4, 16] if pressure else [1, 2, 4, 16, 64]),
        budget=draw.choice([8, 32, 128, 2000]),
        max_len=max_len,
        blocks=max(1, int(pool * max_len / size)),
        size=size,
        fixed=draw.choice([0, 0, 2]),
    )
    return (
        requests,
        _with_intervals(draw, _random_engine(draw, name)),
        capacity,
        _served(draw, _random_table(draw, seed)),
    )


def _with_intervals(draw: random.Random, engine: EngineSettings) -> EngineSettings:
    return dataclasses.replace(
        engine,
        stream_interval_tokens=draw.choice([1, 1, 1, 2, 5, 30]),
        receive_interval_steps=draw.choice([1, 1, 1, 2, 3, 20]),
    )


def _served(draw: random.Random, table: StepTimeTable) -> StepTimeTable:
    """The table with an API server that has no work, little, or so much that it sets the pace."""
    return dataclasses.replace(
        table,
        server_per_request_s=draw.choice([0.0, 0.0, 0.001, 0.1, 0.5]),
        server_per_token_s=draw.choice([0.0, 0.0, 0.0001, 0.003, 0.03]),
        server_per_prompt_token_s=draw.choice([0.0, 0.0, 0.001, 0.02]),
    )


def _random_engine(draw: random.Random, name: str) -> EngineSettings:
    engine = get_engine(name)
    changes: dict[str, object] = {}
    if draw.random() < 0.3:
        changes["long_prefill_token_threshold"] = draw.choice([3, 8, 30])
    if draw.random() < 0.2:
        changes["num_speculative_tokens"] = draw.choice([1, 3])
        changes["speculative_acceptance"] = draw.choice([0.0, 0.5, 0.8, 1.0])
    if draw.random() < 0.2:
        changes["max_queued_requests"] = draw.choice([0, 2, 10])
    changes["max_loras"] = draw.choice([0, 1, 1, 2, 4])
    if draw.random() < 0.2:
        changes["patience_s"] = draw.choice([0.5, 3.0, 20.0])
    if draw.random() < 0.2:
        changes["timeout_s"] = draw.choice([0.5, 3.0, 20.0])
    if draw.random() < 0.3:
        changes["enable_chunked_prefill"] = draw.random() < 0.5
    if name == "tgi":
        changes["max_concurrent_requests"] = draw.choice([3, 10, 128])
    if draw.random() < 0.2:
        changes["enable_prefix_caching"] = not engine.enable_prefix_caching
    if draw.random() < 0.15:
        changes["kv_reservation"] = draw.choice(list(KvReservation))
    return dataclasses.replace(engine, **changes)  # type: ignore[arg-type]


def _random_table(draw: random.Random, seed: int) -> StepTimeTable:
    if draw.random() < 0.15:
        return StepTimeTable.unit(draw.choice([4, 300]))
    rng = np.random.default_rng(seed)
    return StepTimeTable(
        decode_s=np.cumsum(rng.random(draw.choice([3, 80])) * 0.01),
        mixed_s=np.cumsum(rng.random(draw.choice([5, 200])) * 0.01),
        head_s=np.cumsum(rng.random(40) * 0.001),
        attention_base_s=0.001 * draw.random(),
        attention_per_sequence_s=1e-4 * draw.random(),
        attention_per_kv_token_s=1e-4 * draw.random(),
        attention_floor_s=0.002 * draw.random(),
        window_base_s=0.001,
        window_per_sequence_s=1e-4 * draw.random(),
        window_per_kv_token_s=1e-4,
        window_floor_s=0.002 * draw.random(),
        window_tokens=draw.choice([0, 0, 7, 50]),
        prefill_pair_s=1e-5 * draw.random(),
        prefill_token_s=1e-5 * draw.random(),
        window_prefill_pair_s=1e-5 * draw.random(),
        host_s=0.005 * draw.random(),
        launch_s=draw.choice([0.0, 0.004, 0.02]),
        host_per_sequence_s=0.001 * draw.random(),
        host_overlaps=draw.random() < 0.5,
    )
