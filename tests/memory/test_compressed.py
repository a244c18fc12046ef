"""Cache of DeepSeek-V4 against start-up logs and the engines' own sums."""

import pytest

from planner.catalog.models import get_model
from planner.memory import compressed
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout
from planner.model.shape import Mixer, MixerKind
from planner.units import GIB


# DeepSeek-V4-Flash in vLLM 0.22: 37.93 GiB hold 2,497,693 tokens, 9.76 sequences of 256,000 (groups and page sizes as
# kv_cache_utils.py makes them); from v0.23 on a block is packed into 1,039,680 bytes.
def v4_layout(version: tuple[int, int], family: str = "vllm", speculative: int = 0) -> KvLayout:
    return build_layout(
        get_model("deepseek-ai/DeepSeek-V4-Flash").layer_counts(), tensor_parallel_size=8, context_parallel=1,
        kv_cache_dtype="fp8", fp32=False, edition=Edition(family, version), block_size=16,
        num_speculative_tokens=speculative,
    )  # fmt: skip


def test_deepseek_v4_pool_of_a_log() -> None:
    layout = v4_layout((0, 22))
    blocks = 38_724
    assert layout.block_bytes * blocks / GIB == pytest.approx(37.93, abs=0.005)
    counted = layout.counted_blocks(256_000, 8192)
    assert counted == 3969
    assert int(blocks / counted * 256_000) == 2_497_693


def test_deepseek_v4_blocks_are_packed_later() -> None:
    assert v4_layout((0, 23)).block_bytes == 1_039_680
    assert v4_layout((0, 22)).block_bytes == 22 * (37_440 + 8640 + 1728)


# The check of vLLM 0.22: 30,000 tokens need 6.66 GiB with 16,384 tokens in flight; 131,072 need 1.34 GiB with 2,048.
@pytest.mark.parametrize(("length", "in_flight", "gib"), [(30_000, 16_384, 6.66), (131_072, 2048, 1.34)])
def test_deepseek_v4_needs(length: int, in_flight: int, gib: float) -> None:
    layout = v4_layout((0, 22))
    assert layout.blocks_at_peak(length, in_flight) * layout.block_bytes / GIB == pytest.approx(gib, abs=0.005)


# SGLang pool_configurator.py prints bytes_per_full_token: V4-Pro with its 62 entries (one of them the draft layer's
# window, allocated whether it drafts or not) 23,749.84, V4-Flash 15,955.85.
@pytest.mark.parametrize(("size", "expected"), [("Pro", 23_749.84), ("Flash", 15_955.85)])
def test_deepseek_v4_in_sglang(size: str, expected: float) -> None:
    layout = build_layout(
        get_model(f"deepseek-ai/DeepSeek-V4-{size}").layer_counts(), tensor_parallel_size=8, context_parallel=1,
        kv_cache_dtype="auto", fp32=False, edition=Edition("sglang", (0, 5)), block_size=1, num_speculative_tokens=0,
    )  # fmt: skip
    assert layout.bytes_per_token == pytest.approx(expected, abs=0.01)
    assert layout.main.block_tokens == 256


V4 = Mixer(kind=MixerKind.MLA, num_heads=64, kv_lora_rank=448, qk_rope_head_dim=64, indexer_head_dim=128)


# 448 values in fp8, 64 rotary ones in 16 bits and 8 bytes of scales: the 584 of vLLM's fp8_ds_mla for DeepSeek-V4;
# the indexer's key in fp8 with one 32-bit scale.
def test_bytes_of_an_entry() -> None:
    assert compressed.entry_width(V4) == 448 + 2 * 64 + 8 == 584
    assert compressed.indexer_width(V4) == 128 + 4


def test_overlapping_windows_keep_states_twice() -> None:
    assert compressed.state_elements(512, 4) == 2 * compressed.state_elements(512, 128) == 4 * 512


@pytest.mark.parametrize("size", [1, 575, 576, 577, 100_000])
def test_pages_are_aligned_for_flashmla(size: int) -> None:
    aligned = compressed._aligned(size)
    assert aligned % 576 == 0
    assert size <= aligned < size + 576


# 21 and 43 layers: groups of 22 leave 1 + 1 places empty, of 21 leave 0 + 20.
def test_groups_waste_the_fewest_places() -> None:
    assert compressed.shared_tuples([21, 43]) == 22
    assert compressed.shared_tuples([8, 8, 8]) == 8
