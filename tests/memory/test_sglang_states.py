"""States of hybrids in SGLang against its logs."""

import pytest

from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_layout import build_layout
from planner.memory.sglang_states import StatePool, state_pool
from planner.units import GIB


def states_of(model: str, gib: float, tp: int = 1, seqs: int = 48, **engine: object) -> StatePool:
    """Pool of states of a hybrid in SGLang that has `gib` beside its weights."""
    settings = EngineSettings(**({"family": "sglang", "name": "sglang", "version": "0.5.9"} | engine))  # type: ignore[arg-type]
    made = state_pool(get_model(model).layer_counts(), settings, max_num_seqs=seqs,
                      parallelism=Parallelism(tensor_parallel_size=tp), available_bytes=gib * GIB)  # fmt: skip
    assert made is not None
    return made


# SGLang, Qwen3.5-9B on two RTX 4090: 9.49 GiB beside the weights became 186 states (0.10 + 4.38 GiB), 62 requests and
# 327,310 tokens (K 2.50 + V 2.50).
def test_states_beside_the_cache_in_sglang() -> None:
    pool = states_of("Qwen/Qwen3.5-9B", 9.49, tp=2)
    assert pool.slots == pytest.approx(186, abs=1)  # of a pool printed to 0.01 GiB
    assert pool.max_sequences == 62
    assert pool.total_bytes / GIB == pytest.approx(0.10 + 4.38, abs=0.02)
    layout = build_layout(
        get_model("Qwen/Qwen3.5-9B").layer_counts(), tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto",
        fp32=False, edition=Edition("sglang", (0, 5)), block_size=1, num_speculative_tokens=0,
    )  # fmt: skip
    assert (9.49 * GIB - pool.total_bytes) / layout.bytes_per_token == pytest.approx(327_310, rel=0.003)


# Drafting keeps a state per drafted token and one more for each request that may run (Qwen3.5-4B: 24 layers of 32 heads
# of 128 × 128 in fp32; 64 requests × 16 took 48.75 GB of states in a log); slots can be told, and are one for each
# request without prefix caching.
def test_states_for_drafted_tokens() -> None:
    pool = states_of("Qwen/Qwen3.5-4B", 80.0, seqs=64, num_speculative_tokens=15)
    assert pool.drafting_bytes / GIB == pytest.approx(48.75, rel=0.03)
    assert pool.max_sequences == pool.slots // 4
    assert states_of("Qwen/Qwen3.5-4B", 80.0, max_state_slots=10).slots == 10
    # a memory of states as large as the cache's: half of what is there
    half = states_of("Qwen/Qwen3.5-4B", 80.0, mamba_full_memory_ratio=1.0)
    assert half.total_bytes == pytest.approx(40 * GIB, abs=half.slot_bytes)
    single = states_of("Qwen/Qwen3.5-4B", 80.0, enable_prefix_caching=False, max_num_seqs=48)
    assert (single.slots, single.max_sequences) == (48, 48)
