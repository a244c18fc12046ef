"""Groups of layers that share a pool: what a sequence takes of them while it is computed and while it generates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.memory.kv_layout import build_layout
from planner.model.config.build import model_from_config
from planner.model.shape import MixerKind
from planner.units import GIB
from tests.memory.cases import plan


# vLLM 0.23.1, Qwen3.8-27B TP 2: blocks of 784 tokens, 161 blocks in 3.86 GiB; 122,633 tokens need 160 -> 123,399 tokens
# in the log; with 161 blocks the longest context is 123,872 (vllm issue with both messages).
def test_state_hybrid_counts_blocks_as_the_engine_does() -> None:
    from planner.memory.edition import Edition
    from planner.memory.kv_layout import build_layout
    from planner.memory.shards import pipeline_stages

    model = get_model("Qwen/Qwen3.8-27B")
    stage = pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=2), False)[0]
    layout = build_layout(
        stage.layers, tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto", fp32=False,
        edition=Edition("vllm", (0, 23)), block_size=16, num_speculative_tokens=0,
    )  # fmt: skip
    assert layout.main.block_tokens == 784
    assert math.floor(3.86 * GIB / layout.block_bytes) == 161
    needed = layout.blocks_at_peak(122_633, 2048)
    assert needed == 160
    assert int(161 / needed * 122_633) == 123_399
    assert layout.blocks_at_peak(123_872, 2048) == 161
    assert layout.blocks_at_peak(123_873, 2048) == 162


# gpt-oss-20b: 8,192 tokens in decode hold 512 + 9 blocks, not 1,024 (engine semantics, example D).
def test_windowed_sequence_holds_few_blocks_in_decode() -> None:
    made = plan("openai/gpt-oss-20b", length=8192)
    assert made.block_size == 16
    assert made.fixed_blocks_per_sequence == 9
    assert made.num_kv_blocks / made.typical_concurrency_paged == 512 + 9


# vLLM #50991: from v0.28 on states are kept for reuse without being asked.
def test_states_are_kept_for_reuse_by_default_since_v028() -> None:
    hybrid = "Qwen/Qwen3.8-27B"
    asked = plan(hybrid, tp=2, version="0.27", cache_state_prefixes=True)
    assert plan(hybrid, tp=2, version="0.28").blocks_per_sequence == asked.blocks_per_sequence
    before, without = (
        plan(hybrid, tp=2, version="0.27"),
        plan(hybrid, tp=2, enable_prefix_caching=False, version="0.28"),
    )
    assert before.blocks_per_sequence == without.blocks_per_sequence == asked.blocks_per_sequence - 3


# Gemma-3-27B: 62 layers = 10 full and 52 sliding: groups of 10, 1 + 6 of them, 8 padding layers.
def test_groups_of_gemma() -> None:
    made = plan("google/gemma-3-27b-it")
    full, sliding = 8192 // 16, math.ceil((1024 - 1 + 8192) / 16)
    assert made.max_concurrency == pytest.approx((made.num_kv_blocks + 1) / (full + 6 * min(full + 1, sliding + 1)))


# vLLM #47728 (v0.26): windows keep the tokens of both batches that async scheduling overlaps; gemma-3-27b has 6 groups
# of windows of 1,024 and one full group.
def test_two_batches_in_flight() -> None:
    earlier, later = (plan("google/gemma-3-27b-it", version=v, length=131_072) for v in ("0.25.0", "0.26.0"))
    held = {v: 8192 + 6 * (math.ceil((1023 + tokens) / 16) + 1) for v, tokens in (("a", 8192), ("b", 16_384))}
    assert (earlier.num_kv_blocks + 1) / earlier.max_concurrency == pytest.approx(held["a"])
    assert (later.num_kv_blocks + 1) / later.max_concurrency == pytest.approx(held["b"])


# vLLM #49878: Gemma-4-31B at 262,144 tokens in steps of 32,768 needs 45.79 GiB, from v0.26 on 70.79 GiB.
@pytest.mark.parametrize(
    ("version", "settings", "gib"),
    [("0.25.1", {}, 45.79), ("0.26.0", {}, 70.79), ("0.26.0", {"async_scheduling": False}, 45.79)],
)
def test_cache_that_one_full_sequence_of_gemma_4_needs(version: str, settings: dict[str, object], gib: float) -> None:
    made = plan("google/gemma-4-31B-it", get_gpu("H200 SXM"), version=version, length=262_144,
                max_num_batched_tokens=32_768, **settings)  # fmt: skip
    needed = made.kv_pool_bytes / made.num_kv_blocks * (made.num_kv_blocks / made.max_concurrency) / GIB
    assert needed == pytest.approx(gib, rel=1e-3)


# vLLM 0.20, Qwen3.6-27B TP 2 with a DFlash draft: 67,728 tokens = 83 × 816 in 9.74 GiB, 5 layers per block.
def test_draft_with_other_heads_is_a_group_of_its_own() -> None:
    model = get_model("Qwen/Qwen3.6-27B")
    draft = model_from_config({
        "model_type": "qwen3", "num_hidden_layers": 5, "hidden_size": model.hidden_size, "intermediate_size": 17_408,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 64,
        "tie_word_embeddings": True, "max_position_embeddings": model.max_position_embeddings,
    })  # fmt: skip
    layers = model.layer_counts() + draft.layer_counts()
    layout = build_layout(
        layers, tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto", fp32=False,
        edition=Edition("vllm", (0, 20)), block_size=16, num_speculative_tokens=5,
    )  # fmt: skip
    assert (layout.num_groups, layout.main.block_tokens) == (15, 816)
    assert math.floor(9.74 * GIB / layout.block_bytes) // 15 * 816 == 67_728


FULL = KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=16)
WINDOW = KvGroup(kind=MixerKind.SLIDING, num_groups=3, block_tokens=16, window_tokens=128)
CHUNK = KvGroup(kind=MixerKind.CHUNKED, num_groups=1, block_tokens=16, window_tokens=64)
STATE = KvGroup(kind=MixerKind.STATE, num_groups=2, block_tokens=1, pages_per_sequence=3)


# vLLM kv_cache_interface.py: cdiv(length, block) of full layers; windows hold min(window − 1 + batch, length) and one
# block more, since they need not begin at a block.
@pytest.mark.parametrize(
    ("group", "length", "at_peak", "in_decode"),
    [
        (FULL, 100, 7, 7),
        (WINDOW, 10_000, 3 * ((127 + 512 + 15) // 16 + 1), 3 * 9),
        (WINDOW, 32, 3 * 3, 3 * 2),
        (CHUNK, 10_000, 36, 4),
        (STATE, 10, 6, 6),
        (STATE, 10_000, 6, 6),
    ],
)
def test_blocks_by_hand(group: KvGroup, length: int, at_peak: int, in_decode: int) -> None:
    assert group.blocks_at_peak(length, 512) == at_peak
    assert group.blocks_in_decode(length) == in_decode


@given(st.sampled_from([FULL, WINDOW, CHUNK, STATE]), st.integers(1, 10**6), st.integers(0, 10_000))
def test_a_longer_sequence_never_holds_less_and_decode_never_more_than_the_peak(
    group: KvGroup, length: int, more: int
) -> None:
    assert group.blocks_at_peak(length, 512) <= group.blocks_at_peak(length + more, 512)
    assert group.blocks_in_decode(length) <= group.blocks_in_decode(length + more)
    assert group.blocks_in_decode(length) <= group.blocks_at_peak(length, 512)


def test_a_layout_is_the_sum_of_its_groups() -> None:
    layout = KvLayout(groups=(STATE, WINDOW, FULL), block_bytes=1000.0, bytes_per_token=10.0)
    assert layout.num_groups == 6
    assert layout.main is FULL
    assert layout.has_states
    assert layout.blocks_in_decode(160) == 6 + 3 * 9 + 10
    assert layout.fixed_blocks(160) == 6 + 3 * 9
    assert layout.blocks_at_peak(160, 16) == 6 + 3 * ((127 + 16 + 15) // 16 + 1) + 10
    assert layout.fitting_blocks(9999.0) == 9
    assert layout.fitting_blocks(-5.0) == 0


def test_ranks_that_share_the_tokens_hold_a_part_each() -> None:
    layout = KvLayout(groups=(FULL,), block_bytes=1.0, bytes_per_token=1.0, context_parallel=4)
    assert layout.blocks_at_peak(1024, 0) == layout.blocks_in_decode(1024) == 1024 / 4 / 16


def test_the_source_of_cross_attention_is_no_state() -> None:
    source = KvGroup(kind=MixerKind.STATE, num_groups=1, block_tokens=16, window_tokens=1500, pages_per_sequence=94)
    assert not KvLayout(groups=(FULL, source), block_bytes=1.0, bytes_per_token=1.0).has_states
