"""KV cache of engines that reserve it for every slot at start: llama.cpp and Ollama.

Full layers reserve slots × context. Windowed layers reserve a window and one physical batch for every slot, in cells of
256; where all slots share one context, the windows of all slots and one batch (llama.cpp llama-kv-cache-iswa.cpp).
"""

from __future__ import annotations

import math

from planner.inputs import EngineSettings
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.memory.kv_layout import entry_bytes
from planner.model import Layer, Mixer, MixerKind, kv_bits

CELLS = 256
PHYSICAL_BATCH_TOKENS = 512
#: Ollama: context up to this [tokens], physical batch [tokens] (llm/server.go, August 2026)
OLLAMA_BATCHES = ((4096, 512), (32_768, 1024), (math.inf, 2048))
OLLAMA_BATCH_BY_CONTEXT = (0, 32)
STATE_BYTES = 4  # recurrent and convolution states in fp32


def padded(tokens: float) -> int:
    """Cells for this many tokens: the next multiple of 256."""
    return math.ceil(tokens / CELLS) * CELLS


def physical_batch(engine: EngineSettings, edition: Edition, length: int) -> int:
    """Tokens that llama.cpp computes at once (n_ubatch); Ollama chooses it by the context of a slot."""
    if not engine.name.startswith("ollama") or not edition.since(OLLAMA_BATCH_BY_CONTEXT):
        return PHYSICAL_BATCH_TOKENS
    return next(tokens for longest, tokens in OLLAMA_BATCHES if length <= longest)


def reserved_bytes(
    layers: tuple[tuple[Layer, int], ...],
    length: int,
    slots: int,
    *,
    tensor_parallel_size: int,
    kv_cache_dtype: str,
    edition: Edition,
    unified: bool,
    num_speculative_tokens: int,
    batch_tokens: int,
    draft_mixer: Mixer | None,
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
    batch_tokens : int
        Physical batch, which windows hold beside their own tokens.
    draft_mixer : Mixer, optional
        Mixer of the multi-token-prediction layer; its cache is in 16 bits whatever the model's is.

    Returns
    -------
    float
        Bytes.
    """
    bits = kv_bits(kv_cache_dtype)
    streams = 1 if unified else slots
    all_cells = float(streams * padded(length))
    total = 0.0
    if draft_mixer is not None:
        total += all_cells * entry_bytes(draft_mixer, tensor_parallel_size, kv_bits("fp16"), edition, "fp16")
    for layer, count in layers:
        mixer, cells = layer.mixer, all_cells
        if mixer.kind in (MixerKind.SLIDING, MixerKind.CHUNKED):
            windows = (slots if unified else 1) * (mixer.window_tokens or 0)
            cells = float(streams * padded(min(length, windows + batch_tokens)))
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
