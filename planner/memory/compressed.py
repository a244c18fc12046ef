"""KV cache of DeepSeek-V4: compressed tokens, windows and compressor states share one pool of blocks.

Sources: vLLM models/deepseek_v4 (compressor.py, sparse_swa.py) and v1/core/kv_cache_utils.py
(group_and_unify_kv_cache_specs, _get_kv_cache_groups_uniform_groups); SGLang pool_configurator.py
(DSV4PoolConfigurator). Start-up logs are reproduced to the printed digit (tests/memory/test_compressed.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.memory.edition import BLOCKS_PER_GROUP, PACKED_POOL, Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.model import Mixer, MixerKind

MIN_BLOCK_TOKENS = 256  # engines enforce it: 64 entries compressed 4:1
WINDOW_BLOCK_TOKENS = 64
PAGE_ALIGNMENT = 576  # FlashMLA
STATE_BYTES = 4  # compressor states are fp32
#: by compression ratio: tokens of a page of compressor states, and of their window
STATE_BLOCK_TOKENS = {4: 4, 128: 8}
STATE_WINDOW_TOKENS = {4: 8, 128: 128}
SGLANG_WINDOW_SHARE = 0.1  # swa_full_tokens_ratio
SGLANG_WINDOW_PAGE = 128
#: rows of the rings of compressor states per window page, without and with speculation
SGLANG_RINGS = {4: (8, 16), 128: (128, 256)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pages:
    """Pages of one kind of cache, one per layer."""

    size_bytes: int
    layers: int


def entry_width(mixer: Mixer) -> int:
    """Bytes of one cached entry: the fp8 part, the 16-bit rotary part and 8 bytes of scales."""
    return mixer.kv_lora_rank + 2 * mixer.qk_rope_head_dim + 8


def indexer_width(mixer: Mixer) -> int:
    """Bytes of one entry of the indexer: fp8 and one 32-bit scale per 128 elements."""
    return mixer.indexer_head_dim + mixer.indexer_head_dim // 128 * 4


def state_elements(width: int, ratio: int) -> int:
    """Elements of one compressor state: key and score, doubled at ratio 4, where windows overlap."""
    return 2 * width * (2 if ratio == 4 else 1)


def _aligned(size: int) -> int:
    return -(-size // PAGE_ALIGNMENT) * PAGE_ALIGNMENT


def shared_tuples(counts: list[int]) -> int:
    """Layers per group that leave the fewest places empty; at least as many as the first kind has."""
    candidates = range(counts[0], max(counts) + 1)
    return min(candidates, key=lambda size: (sum(-(-number // size) * size - number for number in counts), size))


def compressed_layout(
    entries: list[tuple[Mixer, int]], growing: float, edition: Edition, block_size: int, speculative: bool
) -> KvLayout:
    """Cut the cache into groups and blocks as the engine does.

    Parameters
    ----------
    entries : list of (Mixer, int)
        Mixers of the stage with the number of their layers.
    growing : float
        Bytes that one more token adds. [bytes]
    edition : Edition
        SGLang splits the pool in fixed proportions; in vLLM all kinds draw from one pool.
    block_size : int
        Tokens per block that the user asked for; engines take at least 256.
    speculative : bool
        SGLang doubles the rings of states.

    Returns
    -------
    KvLayout
        Groups with their windows, bytes of a block.
    """
    block = max(block_size, MIN_BLOCK_TOKENS)
    if edition.family != "vllm":
        return _sglang_layout(entries, block, speculative)
    return _vllm_layout(entries, growing, edition, block)


def _layers_of(entries: list[tuple[Mixer, int]], ratio: int) -> int:
    return sum(count for mixer, count in entries if mixer.kv_compression == ratio)


def _vllm_layout(entries: list[tuple[Mixer, int]], growing: float, edition: Edition, block: int) -> KvLayout:
    widest = next(mixer for mixer, _ in entries if mixer.kv_compression > 1)
    layers = sum(count for mixer, count in entries if mixer.kind is not MixerKind.NONE)
    short, long = _layers_of(entries, 4), _layers_of(entries, 128)
    indexer = next((indexer_width(mixer) for mixer, _ in entries if mixer.indexer_head_dim), 0)
    page = _aligned(block // 4 * entry_width(widest))
    small, tiny = _aligned(block // 4 * indexer), _aligned(block // 128 * entry_width(widest))
    main = [_Pages(size_bytes=page, layers=short), _Pages(size_bytes=small, layers=short)]
    main.append(_Pages(size_bytes=tiny, layers=long))
    window = widest.window_tokens or 128
    tuples = shared_tuples([max(short, long), layers, short, long])
    bytes_of_main = sum(pages.size_bytes * pages.layers for pages in main)
    groups = [KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block)]
    split = math.ceil(layers / tuples)
    parts = (
        (WINDOW_BLOCK_TOKENS, window, split, page * layers / split),
        (STATE_BLOCK_TOKENS[4], STATE_WINDOW_TOKENS[4], 1, float((page + small) * short)),
        (STATE_BLOCK_TOKENS[128], STATE_WINDOW_TOKENS[128], 1, float(page * long)),
    )
    for tokens, width, number, size in parts:
        if size:
            share = 1.0 if edition.since(BLOCKS_PER_GROUP) else size / bytes_of_main
            groups.append(
                KvGroup(kind=MixerKind.SLIDING, num_groups=number, block_tokens=tokens, window_tokens=width,
                        counted_share=share)
            )  # fmt: skip
    packed = tuples * page + short * small + long * tiny
    unpacked = tuples * (page + small + tiny)
    return KvLayout(
        groups=tuple(groups),
        block_bytes=packed if edition.since(PACKED_POOL) else unpacked,
        checked_block_bytes=unpacked,
        bytes_per_token=growing,
    )


def _sglang_layout(entries: list[tuple[Mixer, int]], block: int, speculative: bool) -> KvLayout:
    """SGLang: pools in fixed proportions; windows and states for a tenth of the tokens (bytes_per_full_token)."""
    total = 0.0
    layers = sum(count for mixer, count in entries if mixer.kind is not MixerKind.NONE)
    for mixer, count in entries:
        if mixer.kv_compression == 1:
            continue
        ratio, width = mixer.kv_compression, mixer.kv_lora_rank + mixer.qk_rope_head_dim
        ring = SGLANG_RINGS[ratio][speculative] / SGLANG_WINDOW_PAGE
        states = state_elements(width, ratio) + (
            state_elements(mixer.indexer_head_dim, ratio) if mixer.indexer_head_dim else 0
        )
        per_token = (entry_width(mixer) + indexer_width(mixer)) / ratio
        total += count * (per_token + SGLANG_WINDOW_SHARE * ring * states * STATE_BYTES)
    entry = entry_width(next(mixer for mixer, _ in entries if mixer.kv_compression > 1))
    total += SGLANG_WINDOW_SHARE * entry * (layers + 1)  # with the draft layer, even when nothing drafts
    group = KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block)
    return KvLayout(groups=(group,), block_bytes=total * block, bytes_per_token=total)
