"""How a KV pool is cut into blocks: one group of layers, or several groups with equal pages for hybrid models.

For windows and states, vLLM puts every kind of layer into groups of its own. All groups have the same number of
layers (padded with unused ones) and draw blocks from one pool; a block is one page of every layer of a group.
Source: vLLM kv_cache_interface.py and kv_cache_utils.py; published logs are reproduced to the printed digit
(tests/memory/test_kv_layout.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.memory.compressed import compressed_layout, entry_width, indexer_width
from planner.memory.edition import HYBRID_POOL, Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.memory.packed import PackedEntries, packed_layout
from planner.memory.shards import kv_heads_per_rank
from planner.memory.sparse_workspace import PACKED
from planner.model import Layer, Mixer, MixerKind, kv_bits

DS_MLA_ENTRY_BYTES = 656  # 512 fp8 latent + 16 scales + 128 bf16 rope
NVFP4_DS_MLA_ENTRY_BYTES = 432  # 256 latent + 32 scales + 128 bf16 rope + 16, per layer in two logs of GLM-5.2
GROUPED = (MixerKind.STATE, MixerKind.SLIDING, MixerKind.CHUNKED)  # share the pool of full attention
MAX_HEADS = 4096
UNCOMPRESSED_HEAD_DIM = 256  # keys of 192 were padded to this when vLLM cached every head
V0_MLA_MULTIPLE = 128  # V0 pads the latent of 576 elements to 640
GROUP_SLACK = 1.25  # where the numbers of layers differ by less, groups take the larger one
BLOCK_ALIGNMENT = 16
#: MiniMax-M3: bf16 whatever the cache's type (vLLM AttentionConfig.indexer_kv_dtype; SGLang except with fp8 on Hopper)
INDEX_KEY_BYTES = 2
INDEX_BLOCK_TOKENS = 128  # MiniMax-M3: a page is a block that the indexer chooses (vLLM models/minimax_m3)
LATENT_BLOCK_ALIGNMENT = 128  # MLA beside states: its kernels need multiples of 128 (_align_hybrid_block_size)
SGLANG_WINDOW_SHARE = 0.8  # tokens in the pool of windows per token in that of full layers


def entry_bytes(mixer: Mixer, tensor_parallel_size: int, bits: float, edition: Edition, dtype: str) -> float:
    """Bytes that one token adds to one layer's cache on one GPU."""
    # SGLang's pools hold a slot for every layer, also for those that read another layer's (Gemma 4)
    shares = mixer.reuses_kv_of_another_layer and edition.family != "sglang"
    if shares or mixer.kind is MixerKind.NONE or mixer.is_state:
        return 0.0
    if mixer.kind is MixerKind.MLA:
        return _latent_bytes(mixer, tensor_parallel_size, bits, edition, dtype)
    heads = kv_heads_per_rank(mixer.num_kv_heads, tensor_parallel_size)
    return heads * (mixer.head_dim + mixer.value_head_dim) * bits / 8 + index_bytes(mixer, bits, edition)


def index_bytes(mixer: Mixer, bits: float, edition: Edition) -> float:
    """Bytes per token of an indexer's cache beside keys and values: one key for all heads, the same on every rank.

    llama.cpp keeps the unpooled keys too, in the cache's type (llama-memory-hybrid-idx.cpp).
    """
    if edition.family == "llamacpp" and mixer.indexer_compression > 1:
        return 2 * mixer.indexer_head_dim * bits / 8
    width = indexer_width(mixer) if mixer.kind is MixerKind.MLA else INDEX_KEY_BYTES * mixer.indexer_head_dim
    return width / mixer.indexer_compression


def _latent_bytes(mixer: Mixer, tensor_parallel_size: int, bits: float, edition: Edition, dtype: str) -> float:
    if not edition.caches_latent:
        padded = edition.family == "vllm"
        width = 2 * UNCOMPRESSED_HEAD_DIM if padded else mixer.head_dim + mixer.value_head_dim
        return mixer.num_heads / tensor_parallel_size * width * bits / 8
    elements = mixer.kv_lora_rank + mixer.qk_rope_head_dim
    if edition.family == "vllm" and edition.is_v0:
        elements = -(-elements // V0_MLA_MULTIPLE) * V0_MLA_MULTIPLE
    size = elements * bits / 8
    if dtype == PACKED:
        size = DS_MLA_ENTRY_BYTES
    elif mixer.indexer_top_k and dtype == "nvfp4":
        size = NVFP4_DS_MLA_ENTRY_BYTES
    if mixer.kv_compression > 1:
        size = entry_width(mixer)
    if mixer.indexer_head_dim:
        size += indexer_width(mixer) / mixer.indexer_compression
    return size / mixer.kv_compression


def state_bytes(mixer: Mixer, tensor_parallel_size: int, num_speculative_tokens: int = 0) -> float:
    """Bytes of one sequence's state in one layer on one GPU: recurrent state and convolution state.

    A convolution over 4 tokens keeps 3 columns, and one more for every drafted token.
    """
    tail = mixer.conv_elements * (1 + num_speculative_tokens / 3)
    return (mixer.state_elements * mixer.state_element_bytes + tail * 2) / tensor_parallel_size


def side_state_bytes(mixer: Mixer, num_speculative_tokens: int = 0) -> float:
    """Bytes of one sequence's state in an n-gram layer, the same on every rank."""
    return 2.0 * mixer.side_channels * (mixer.side_taps + num_speculative_tokens) if mixer.side_channels else 0.0


def _key(mixer: Mixer, pools_windows: bool, ranks: int) -> tuple[MixerKind, int, int]:
    """Key of a mixer's group: kind, window and, where groups share a pool (`ranks` > 0), the heads of full attention.

    vLLM groups layers only when their KVCacheSpec is equal: a draft model with other heads is a group of its own.
    """
    if mixer.kind in (MixerKind.SLIDING, MixerKind.CHUNKED):
        return (mixer.kind, mixer.window_tokens or 0, 0) if pools_windows else (MixerKind.FULL, 0, 0)
    if mixer.kind is MixerKind.STATE:
        return mixer.kind, mixer.window_tokens or 0, 0
    if not ranks or mixer.kind is not MixerKind.FULL:
        return MixerKind.FULL, 0, 0
    heads = kv_heads_per_rank(mixer.num_kv_heads, ranks)
    return MixerKind.FULL, 0, heads + MAX_HEADS * (mixer.head_dim + MAX_HEADS * mixer.value_head_dim)


class _Alike(NamedTuple):
    """Layers that share a group: how many, and the bytes that one token adds to all of them together."""

    number: int
    token_bytes: float

    @property
    def each_bytes(self) -> float:
        """Bytes that one token adds to one of the layers."""
        return self.token_bytes / self.number


_Groups = dict[tuple[MixerKind, int, int], _Alike]  # by `_key`


def _grouped(entries: list[tuple[Mixer, int]], sizes: list[float], pools_windows: bool, ranks: int) -> _Groups:
    """Layers by group; `sizes` are the bytes that a token adds to one layer of each entry."""
    found: _Groups = {}
    for (mixer, count), size in zip(entries, sizes, strict=True):
        if size or mixer.is_state:
            key = _key(mixer, pools_windows, ranks)
            number, token_bytes = found.get(key, (0, 0.0))
            found[key] = _Alike(number + count, token_bytes + count * size)
    return found


def build_layout(
    layers: tuple[tuple[Layer, int], ...],
    *,
    tensor_parallel_size: int,
    context_parallel: int,
    kv_cache_dtype: str,
    fp32: bool,
    edition: Edition,
    block_size: int,
    num_speculative_tokens: int,
    state_checkpoints: int = 0,
    draft_mixer: Mixer | None = None,
    splits_windows: bool = False,
) -> KvLayout:
    """Cut the KV cache of a pipeline stage into groups and blocks.

    Parameters
    ----------
    layers : tuple of (Layer, int)
        Distinct layers of the stage and how many of each.
    tensor_parallel_size, context_parallel : int
        What divides heads, and what divides tokens.
    kv_cache_dtype, fp32
        Element type of the cache; "auto" is fp32 when the model runs in fp32.
    edition : Edition
        Decides whether windowed layers have groups of their own.
    block_size : int
        Tokens per block, before states enlarge it.
    num_speculative_tokens, state_checkpoints : int
        Drafted tokens and states kept for reuse: each adds a state page per sequence.
    draft_mixer : Mixer, optional
        Mixer of the multi-token-prediction layer, when it drafts.
    splits_windows : bool
        Whether SGLang has a pool of its own for the windows of this model.

    Returns
    -------
    KvLayout
        Groups, bytes of a block, bytes per additional token.
    """
    bits = kv_bits(kv_cache_dtype, "fp32" if fp32 else "auto")
    pools = edition.family != "vllm" or (edition.since(HYBRID_POOL) and not edition.is_v0)
    entries = [(layer.mixer, count) for layer, count in layers]
    if draft_mixer is not None:
        entries.append((draft_mixer, 1))
    shares = edition.family == "vllm" and pools and any(mixer.kind in GROUPED for mixer, _ in entries)
    sizes = [entry_bytes(mixer, tensor_parallel_size, bits, edition, kv_cache_dtype) for mixer, _ in entries]
    layers_of = _grouped(entries, sizes, pools, tensor_parallel_size if shares else 0)
    states = max(
        (state_bytes(x, tensor_parallel_size, num_speculative_tokens) for x, _ in entries if x.is_state), default=0.0
    )
    if any(mixer.kv_compression > 1 for mixer, _ in entries):
        growing = layers_of[(MixerKind.FULL, 0, 0)].token_bytes
        return compressed_layout(entries, growing, edition, block_size, num_speculative_tokens > 0)
    if shares and any(x.indexer_compression > 1 for x, _ in entries):
        packed = _packed_entries(entries, tensor_parallel_size, bits, edition, kv_cache_dtype, num_speculative_tokens)
        return packed_layout(packed, block_size, 1 + num_speculative_tokens + state_checkpoints, context_parallel)
    if edition.family == "vllm" and any(x.indexer_head_dim and x.kind is MixerKind.FULL for x, _ in entries):
        block_size = max(block_size, INDEX_BLOCK_TOKENS)
    if edition.family == "sglang":
        return _sglang_layout(layers_of, block_size, context_parallel, splits_windows)
    growing = sum(alike.token_bytes for (kind, _, _), alike in layers_of.items() if kind is not MixerKind.STATE)
    if len(layers_of) == 1 and not states:
        (((kind, window, _), alike),) = layers_of.items()
        group = KvGroup(kind=kind, num_groups=1, block_tokens=block_size, window_tokens=window)
        return KvLayout(
            groups=(group,),
            block_bytes=alike.token_bytes * block_size,
            bytes_per_token=growing,
            context_parallel=context_parallel,
        )
    pages = 1 + num_speculative_tokens + state_checkpoints
    latent = any(mixer.kind is MixerKind.MLA for mixer, _ in entries)
    alignment = LATENT_BLOCK_ALIGNMENT if latent else BLOCK_ALIGNMENT
    return _hybrid_layout(layers_of, states, growing, block_size, alignment, pages, context_parallel)


def _packed_entries(
    entries: list[tuple[Mixer, int]], tp: int, bits: float, edition: Edition, dtype: str, speculative: int
) -> PackedEntries:
    """Attention layers with an indexer, state layers and n-gram layers, summed up for a pool of packed pages."""
    full = [(mixer, count) for mixer, count in entries if mixer.kind in (MixerKind.FULL, MixerKind.MLA)]
    states = [(mixer, count) for mixer, count in entries if mixer.is_state]
    index = max((index_bytes(mixer, bits, edition) for mixer, _ in full), default=0.0)
    widest = max((entry_bytes(mixer, tp, bits, edition, dtype) for mixer, _ in full), default=0.0)
    return PackedEntries(
        attention_layers=sum(count for _, count in full),
        token_bytes=widest - index,
        index_bytes=index,
        alignment=LATENT_BLOCK_ALIGNMENT if any(x.kind is MixerKind.MLA for x, _ in full) else BLOCK_ALIGNMENT,
        state_layers=sum(count for _, count in states),
        state_bytes=max((state_bytes(mixer, tp, speculative) for mixer, _ in states), default=0.0),
        side_layers=sum(count for mixer, count in entries if mixer.side_channels),
        side_bytes=max((side_state_bytes(mixer, speculative) for mixer, _ in entries), default=0.0),
    )


def _sglang_layout(
    layers_of: _Groups,
    block_size: int,
    context_parallel: int,
    splits_windows: bool,
) -> KvLayout:
    """SGLang: one slot per token for every layer. States have a pool of their own; so do windows where it splits them.

    The windows' pool then has 0.8 times the tokens (swa_full_tokens_ratio).
    """
    windowed = (MixerKind.SLIDING, MixerKind.CHUNKED)
    total = sum(
        alike.token_bytes * (SGLANG_WINDOW_SHARE if splits_windows and kind in windowed else 1.0)
        for (kind, _, _), alike in layers_of.items()
    )
    grow = [alike for (kind, _, _), alike in layers_of.items() if kind not in (*windowed, MixerKind.STATE)]
    growing = sum(alike.token_bytes for alike in grow)
    group = KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block_size)
    return KvLayout(
        groups=(group,),
        block_bytes=max(1.0, total * block_size),
        bytes_per_token=growing if splits_windows else total,
        context_parallel=context_parallel,
    )


def _hybrid_layout(
    layers_of: _Groups,
    states: float,
    growing: float,
    block_size: int,
    alignment: int,
    state_pages: int,
    context_parallel: int,
) -> KvLayout:
    if not layers_of:
        group = KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block_size)
        return KvLayout(groups=(group,), block_bytes=1.0, bytes_per_token=0.0)
    widest = max(alike.each_bytes for alike in layers_of.values())
    block = block_size
    if states and widest:
        needed = math.ceil(states / widest / alignment) * alignment
        block = max(block_size, needed)
    page = max(block * widest, states)
    numbers = [alike.number for alike in layers_of.values()]
    group_size = max(numbers) if max(numbers) < GROUP_SLACK * min(numbers) else min(numbers)
    groups = tuple(
        KvGroup(
            kind=kind,
            num_groups=math.ceil(alike.number / group_size),
            block_tokens=_tokens_of(page, alike.each_bytes, block_size) or block,
            window_tokens=window,
            pages_per_sequence=_pages(kind, window, block, state_pages),
        )
        for (kind, window, _), alike in layers_of.items()
    )
    return KvLayout(
        groups=groups,
        block_bytes=page * group_size,
        bytes_per_token=growing,
        context_parallel=context_parallel,
    )


def _tokens_of(page_bytes: float, token_bytes: float, block_size: int) -> int:
    """Tokens of one layer on a page, in whole blocks; 0 where none fits, or tokens take no room."""
    return int(page_bytes // token_bytes) // block_size * block_size if token_bytes else 0


def _pages(kind: MixerKind, source_tokens: int, block: int, state_pages: int) -> int:
    """Pages that a sequence holds whatever its length: its states, or the whole source of cross-attention."""
    if kind is not MixerKind.STATE:
        return 0
    return -(-source_tokens // block) if source_tokens else state_pages
