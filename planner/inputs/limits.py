"""What one replica's scheduler may use: the limits and the KV blocks that memory leaves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The replica's capacity as the scheduler sees it (all resolved, nothing None).

    `num_kv_blocks` usable blocks of `block_size` tokens; `fixed_blocks_per_sequence` further ones that windowed or
    state layers (hybrids) hold for each running sequence, whatever its length.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    num_kv_blocks: int
    block_size: int
    fixed_blocks_per_sequence: int = 0
