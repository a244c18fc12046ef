"""KV cache of Qwen4 and GLM-5.3-Flash in vLLM: keys and values, the indexer's pooled keys and states share one pool.

A block holds a page of keys and values and a page of pooled keys for every attention layer. States, the states of
n-gram layers and the rings of keys that are not pooled yet take whole blocks. Source: vLLM
models/qwen4_exp/common/qsa_cache.py, models/glm5next/common/attention.py, v1/core/kv_cache_utils.py
(_get_packed_kv_cache_groups), Platform._align_hybrid_block_size; published logs are reproduced to the printed digit
(tests/memory/test_packed.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.memory.compressed import shared_tuples
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.model import MixerKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedEntries:
    """Layers of a stage on one GPU. Bytes are per token, for states per sequence."""

    attention_layers: int  # a draft layer included
    token_bytes: float  # keys and values of one layer
    index_bytes: float  # pooled keys of one layer
    state_layers: int
    state_bytes: float
    side_layers: int  # n-gram layers
    side_bytes: float
    alignment: int = 16  # of the tokens per block


def packed_layout(entries: PackedEntries, block_size: int, state_pages: int, context_parallel: int) -> KvLayout:
    """Cut the cache into blocks of packed pages.

    Parameters
    ----------
    entries : PackedEntries
        Layers of the stage and their bytes.
    block_size : int
        Tokens per block, before states enlarge it.
    state_pages : int
        Pages that a sequence holds in each group of states: its own, one per drafted token, and those kept for reuse.
    context_parallel : int
        What divides tokens.

    Returns
    -------
    KvLayout
        Groups, bytes of a block, bytes per additional token.
    """
    layers = entries.attention_layers
    largest = max(entries.state_bytes, entries.side_bytes)
    if not layers:  # a pipeline stage of states alone
        only = _states(entries.state_layers, state_pages)
        return KvLayout(groups=(only,), block_bytes=max(1.0, largest), bytes_per_token=0.0)
    needed = math.ceil(largest / entries.token_bytes / entries.alignment) * entries.alignment
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
    groups.append(_states(1, 1))  # the ring of keys that are not pooled yet
    return KvLayout(
        groups=tuple(groups),
        block_bytes=stride,
        bytes_per_token=layers * (entries.token_bytes + entries.index_bytes),
        context_parallel=context_parallel,
    )


def _states(num_groups: int, pages: int) -> KvGroup:
    return KvGroup(kind=MixerKind.STATE, num_groups=num_groups, block_tokens=1, pages_per_sequence=pages)
