"""Sequences at once at the traffic's lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.concurrency import TypicalUse
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


def use(usable: int, typical: int, shared: int = 0, *, full: int = 512, prompts: int = 1) -> TypicalUse:
    return TypicalUse(usable_blocks=usable, typical_blocks=typical, shared_blocks=shared, full_blocks=full,
                      typical_tokens=16.0 * typical, max_model_len=16 * full, num_prompts=prompts)  # fmt: skip


def test_sequences_by_hand() -> None:
    assert use(1000, 10).paged == 100
    assert use(1000, 10, 4).paged == (1000 - 4) / 6
    assert use(1000, 10).reserved == 1000 / 512
    assert use(3, 10, 4).paged == 0  # the common prompt alone does not fit


# Ten prompts, each asked for by one of ten sequences: 10 × (1 − 0.9ⁿ) of them are in use.
def test_prompts_in_use() -> None:
    many = use(1000, 10, 4, prompts=10)
    assert many.prompts_in_use(0) == 0
    assert many.prompts_in_use(1) == pytest.approx(1)
    assert many.prompts_in_use(2) == pytest.approx(1.9)
    assert many.prompts_in_use(1e6) == pytest.approx(10)
    assert use(1000, 10, 4).prompts_in_use(5) == 1


@given(st.integers(1000, 10**6), st.integers(2, 1000), st.data())
def test_what_runs_fills_the_pool(usable: int, typical: int, data: st.DataObject) -> None:
    shared, prompts = data.draw(st.integers(1, typical - 1)), data.draw(st.integers(2, 1000))
    made = use(usable, typical, shared, prompts=prompts)
    held = made.paged * (typical - shared) + made.prompts_in_use(made.paged) * shared
    assert held == pytest.approx(usable, rel=1e-6)
    # Never fewer than without anything in common, never more than if one prompt served all.
    assert use(usable, typical).paged * (1 - 1e-9) <= made.paged
    assert made.paged <= usable / (typical - shared) * (1 + 1e-9)


@pytest.mark.parametrize("made", [use(1000, 10), use(1000, 10, 4), use(1000, 10, 4, prompts=7)])
def test_the_formulas_come_to_the_figures(made: TypicalUse) -> None:
    paged, reserved = made.formulas()
    assert (paged.value, reserved.value) == (made.paged, made.reserved)
    for item in (paged, reserved):
        text = item.substituted.split(", ")[0].replace(",", "").replace("−", "-").replace("×", "*").replace("÷", "/")
        assert eval(text) == pytest.approx(item.value, rel=1e-3)
