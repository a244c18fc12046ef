"""Cache of Qwen4 in vLLM: keys and values with the indexer's pooled keys beside them, states and rings in one pool.

A block holds a page of keys and values and one of pooled keys for every attention layer. Groups of states, the
n-gram layers' states and the rings of keys not yet pooled take whole blocks each. Source: vLLM
models/qwen4_exp/common/qsa_cache.py and v1/core/kv_cache_utils.py (_get_packed_kv_cache_groups), Platform.
_align_hybrid_block_size; reproduced to the printed digit on published logs (tests/test_sizing_packed.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.memory.compressed import shared_tuples
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.model import MixerKind

BLOCK_ALIGNMENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedEntries:
    """Layers of a stage on one GPU, all of a kind alike. Bytes per token, or per sequence for states."""

    attention_layers: int  # a draft layer included
    token_bytes: float  # keys and values of one layer
    index_bytes: float  # pooled keys of one layer
    state_layers: int
    state_bytes: float
    side_layers: int  # n-gram layers
    side_bytes: float


def packed_layout(entries: PackedEntries, block_size: int, state_pages: int, context_parallel: int) -> KvLayout:
    """Cut the cache into blocks of packed pages.

    Parameters
    ----------
    entries : PackedEntries
        What the stage caches.
    block_size : int
        Tokens per block before states enlarge it. [tokens]
    state_pages : int
        Pages that a sequence holds of each group of states: its own, drafted tokens', and those kept for reuse.
    context_parallel : int
        Division of tokens.

    Returns
    -------
    KvLayout
        Groups, bytes of a block, marginal bytes per token.
    """
    layers = entries.attention_layers
    largest = max(entries.state_bytes, entries.side_bytes)
    if not layers:  # a pipeline stage of states alone
        only = _states(entries.state_layers, state_pages)
        return KvLayout(groups=(only,), block_bytes=max(1.0, largest), bytes_per_token=0.0)
    needed = math.ceil(largest / entries.token_bytes / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT
    block = max(block_size, needed)
    page = block * entries.token_bytes
    stride = layers * (page + block * entries.index_bytes)
    counts = [layers, layers, *filter(None, (entries.state_layers, entries.side_layers))]
    per_group = min(shared_tuples(counts), math.floor(stride / page))
    groups = [KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block)]
    if entries.state_layers:
        groups.append(_states(math.ceil(entries.state_layers / per_group), state_pages))
    if entries.side_layers:
        groups.append(_states(math.ceil(entries.side_layers / per_group), state_pages))
    groups.append(_states(1, 1))  # rings of keys that wait to be pooled
    return KvLayout(
        groups=tuple(groups),
        block_bytes=stride,
        bytes_per_token=layers * (entries.token_bytes + entries.index_bytes),
        context_parallel=context_parallel,
    )


def _states(num_groups: int, pages: int) -> KvGroup:
    return KvGroup(kind=MixerKind.STATE, num_groups=num_groups, block_tokens=1, pages_per_sequence=pages)
