"""The seed article's example, served by the general simulator: 200 requests, 8 slots, unit steps."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass

import numpy as np

from planner.inputs import Batching, EngineSettings, KvReservation, Limits, OnMemoryShortage
from planner.simulation.machine import simulate
from planner.simulation.step_trace import StepTrace, record_steps
from planner.step_time import StepTimeTable
from planner.workload import Requests

SLOTS = 8
NUM_REQUESTS = 200
SCHEDULING = {
    "one at a time": Batching.SINGLE,
    f"static batches of {SLOTS}": Batching.STATIC,
    f"continuous, {SLOTS} slots": Batching.CONTINUOUS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRow:
    """One scheduling policy of the article's table. Waits are in steps and end at a request's own last token."""

    scheduling: str
    decode_steps: int
    tokens_per_step: float
    slots_busy_fraction: float
    median_wait_steps: float
    p95_wait_steps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedTable:
    """The article's table with its KV cache figures."""

    lengths: tuple[int, ...]
    rows: tuple[SeedRow, ...]
    gpt2_kv_bytes_per_token: int
    gpt2_kv_bytes: int
    seven_billion_kv_bytes_per_token: int
    seven_billion_kv_bytes: int


def seed_lengths() -> tuple[int, ...]:
    """The article's 200 output lengths. [tokens]"""
    rng = random.Random(7)
    return tuple(min(1000, int(rng.lognormvariate(4.6, 0.8))) for _ in range(NUM_REQUESTS))


def seed_table() -> SeedTable:
    """Serve the article's requests one at a time, in static batches and continuously.

    Returns
    -------
    SeedTable
        From the general simulator with a step time of 1; prompts of one token stand for "ignored",
        since the first token then comes out of the first step.
    """
    lengths = seed_lengths()
    rows = []
    for name, batching in SCHEDULING.items():
        result = simulate(*_case(batching))
        finished = sorted(result.finish_s.tolist())
        slots = 1 if batching == Batching.SINGLE else SLOTS
        rows.append(
            SeedRow(
                scheduling=name,
                decode_steps=result.num_steps,
                tokens_per_step=sum(lengths) / result.num_steps,
                slots_busy_fraction=result.mean_running / slots,
                median_wait_steps=statistics.median(finished),
                p95_wait_steps=finished[int(0.95 * len(finished))],
            )
        )
    gpt2, seven = kv_bytes_per_token(12, 768), kv_bytes_per_token(32, 4096)
    return SeedTable(
        lengths=lengths,
        rows=tuple(rows),
        gpt2_kv_bytes_per_token=gpt2,
        gpt2_kv_bytes=8 * 1024 * gpt2,
        seven_billion_kv_bytes_per_token=seven,
        seven_billion_kv_bytes=8 * 4096 * seven,
    )


def seed_steps(scheduling: str, num_steps: int) -> StepTrace:
    """The first steps of one row of the article's table, slot by slot.

    Parameters
    ----------
    scheduling : str
        As in `SCHEDULING`.
    num_steps : int
        Steps recorded, fewer where the last request ends before.
    """
    return record_steps(*_case(SCHEDULING[scheduling]), num_steps=num_steps)


def _case(batching: Batching) -> tuple[Requests, EngineSettings, Limits, StepTimeTable]:
    """The article's requests, scheduler, capacity and step time."""
    output = np.array(seed_lengths(), dtype=np.int64)
    ones = np.ones(len(output), dtype=np.int64)
    requests = Requests(
        arrival_s=np.zeros(len(output)),
        prompt_tokens=ones,
        output_tokens=output,
        output_limit_tokens=output,
        prefix_group=-ones,
        prefix_tokens=0 * ones,
    )
    engine = EngineSettings(
        family="generic",
        batching=batching,
        kv_reservation=KvReservation.MODEL_LIMIT,
        on_memory_shortage=OnMemoryShortage.NEVER,
    )
    limits = Limits(
        max_num_seqs=SLOTS, max_num_batched_tokens=8192, max_model_len=1024, num_kv_blocks=SLOTS * 64, block_size=16
    )
    return requests, engine, limits, StepTimeTable.unit(1024)


def kv_bytes_per_token(num_layers: int, width: int, bytes_each: int = 2) -> int:
    """Key and value of one token in every layer of a model without grouped heads. [bytes]"""
    return 2 * num_layers * width * bytes_each


def format_seed_table() -> str:
    """Print the comparison as the article does."""
    table = seed_table()
    lengths = table.lengths
    lines = [
        f"{len(lengths)} requests, output length median {statistics.median(lengths):.0f} tokens, "
        f"longest {max(lengths)}, total {sum(lengths):,} tokens",
        "",
        "scheduling              decode steps   tokens per step   slots busy   median wait   95th percentile",
    ]
    lines += [
        f"{row.scheduling:22} {row.decode_steps:>13,}   {row.tokens_per_step:>15.2f}   "
        f"{row.slots_busy_fraction:>10.0%}   {row.median_wait_steps:>11,.0f}   {row.p95_wait_steps:>15,.0f}"
        for row in table.rows
    ]
    lines += [
        "",
        f"key-value cache per token for a 12-layer, 768-wide model: {table.gpt2_kv_bytes_per_token / 1024:.0f} KB; "
        f"for 8 sequences of 1,024 tokens: {table.gpt2_kv_bytes / 2**20:.0f} MB",
        f"the same for a 32-layer, 4,096-wide model: {table.seven_billion_kv_bytes_per_token / 1024:.0f} KB per token, "
        f"{table.seven_billion_kv_bytes / 2**30:.0f} GB for 8 sequences of 4,096 tokens",
    ]
    return "\n".join(lines)
