"""Sequences at once at the traffic's lengths."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from tests.memory.cases import LLAMA


def test_reserving_holds_fewer_sequences_than_paging() -> None:
    engine = EngineSettings(version="0.19.0")
    made = plan_memory(
        get_model(LLAMA), get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=8192, mean_sequence_tokens=1024
    )
    assert made.typical_concurrency_paged == pytest.approx(8 * made.typical_concurrency_reserved)


# A system prompt of 512 tokens is 32 blocks held once: (N − 32) ÷ (64 − 32) sequences of 1,024 tokens.
def test_shared_prefix_is_held_once() -> None:
    engine = EngineSettings(version="0.19.0")
    made = plan_memory(
        get_model(LLAMA),
        get_gpu("H100 SXM"),
        engine,
        Parallelism(),
        max_model_len=8192,
        mean_sequence_tokens=1024,
        shared_prefix_tokens=512,
    )
    assert made.typical_concurrency_paged == (made.num_kv_blocks - 32) / 32


def test_lookahead_takes_slots() -> None:
    engine = EngineSettings(version="0.19.0", num_speculative_tokens=16)
    made = plan_memory(get_model(LLAMA), get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=8192,
                       mean_sequence_tokens=1024)  # fmt: skip
    assert made.typical_concurrency_paged == made.num_kv_blocks / (64 + 1)
