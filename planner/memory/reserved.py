"""KV cache of engines that reserve it for every slot at start: llama.cpp and Ollama.

Full layers reserve slots × context. Windowed layers reserve the window of every slot and one physical batch, in cells
of 256 (llama.cpp llama-kv-cache-iswa.cpp): Gemma 3 4B at 131,072 tokens has 2,560 MiB of full layers and 174 MiB of
windows.
"""

from __future__ import annotations

import math

from planner.memory.edition import Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.memory.kv_layout import entry_bytes
from planner.model import Layer, MixerKind, kv_bits

CELLS = 256
PHYSICAL_BATCH_TOKENS = 512
STATE_BYTES = 4  # recurrent and convolution states in fp32


def reserved_bytes(
    layers: tuple[tuple[Layer, int], ...],
    length: int,
    slots: int,
    *,
    tensor_parallel_size: int,
    kv_cache_dtype: str,
    edition: Edition,
    unified: bool = False,
    num_speculative_tokens: int = 0,
) -> float:
    """KV cache of all slots on one GPU.

    Parameters
    ----------
    layers : tuple of (Layer, int)
        Distinct layers and how many of each.
    length : int
        Context of each slot, or of all slots together with `unified`. [tokens]
    slots : int
        Sequences that run at once.
    tensor_parallel_size : int
        Divides KV heads and states.
    kv_cache_dtype : str
        Element type; q8_0 and q4_0 include their scales.
    edition : Edition
        Says whether MLA caches the latent.
    unified : bool
        One context for all slots (kv_unified; llama-server's default when the number of slots is not set).
    num_speculative_tokens : int
        One more state per drafted token, to roll back to.

    Returns
    -------
    float
        Bytes.
    """
    bits = kv_bits(kv_cache_dtype)
    total = 0.0
    for layer, count in layers:
        mixer = layer.mixer
        cells = float(length if unified else slots * length)
        if mixer.kind in (MixerKind.SLIDING, MixerKind.CHUNKED):
            window = slots * (mixer.window_tokens or 0) + PHYSICAL_BATCH_TOKENS
            cells = min(cells, -(-window // CELLS) * CELLS)
        elif mixer.is_state:
            elements = mixer.state_elements + mixer.conv_elements + mixer.side_channels * mixer.side_taps
            total += count * slots * (1 + num_speculative_tokens) * STATE_BYTES * elements / tensor_parallel_size
        elif mixer.kind is MixerKind.STATE:
            cells = float(slots * (mixer.window_tokens or 0))
        total += count * cells * entry_bytes(mixer, tensor_parallel_size, bits, edition, kv_cache_dtype)
    return total


def reserved_layout(layout: KvLayout, pool_bytes: float, length: int, slots: int, block_tokens: int) -> KvLayout:
    """The same pool in blocks of one kind, so that it holds exactly `slots` sequences of the full length."""
    number = slots * -(-length // block_tokens)
    group = KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block_tokens)
    size = max(1.0, pool_bytes) / number
    return KvLayout(
        groups=(group,),
        block_bytes=math.nextafter(size * (1 - 1e-12), 0.0),  # rounding must not cost a block
        bytes_per_token=layout.bytes_per_token,
    )
