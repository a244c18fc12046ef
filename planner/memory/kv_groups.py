"""Groups of layers that draw blocks from one pool, and what a sequence takes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.model import MixerKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGroup:
    """`num_groups` groups of layers of one kind.

    `counted_share` is the part of a block's bytes that the group fills: vLLM before v0.27 counts its
    blocks in the printed concurrency by bytes.
    """

    kind: MixerKind
    num_groups: int
    block_tokens: int
    window_tokens: int = 0
    pages_per_sequence: int = 0  # states: whatever the length
    counted_share: float = 1.0

    def blocks_at_peak(self, length: int, in_flight_tokens: int) -> int:
        """Blocks that one sequence of this length may hold while its prompt is computed."""
        if self.kind is MixerKind.STATE:
            return self.num_groups * self.pages_per_sequence
        if self.kind is MixerKind.SLIDING:
            held = min(self.window_tokens - 1 + in_flight_tokens, length)
            return self.num_groups * (-(-held // self.block_tokens) + 1)
        if self.kind is MixerKind.CHUNKED:
            length = min(self.window_tokens + in_flight_tokens, length)
        return self.num_groups * -(-length // self.block_tokens)

    def blocks_in_decode(self, length: float) -> int:
        """Blocks that one sequence of this length holds while it generates."""
        whole = math.ceil(length / self.block_tokens)
        if self.kind is MixerKind.STATE:
            return self.num_groups * self.pages_per_sequence
        if self.kind is MixerKind.SLIDING:
            whole = min(whole, -(-self.window_tokens // self.block_tokens) + 1)
        if self.kind is MixerKind.CHUNKED:
            whole = min(whole, -(-self.window_tokens // self.block_tokens))
        return self.num_groups * whole


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLayout:
    """Blocks of one pipeline stage on one GPU.

    `checked_block_bytes` is what the start-up check takes for a block; only DeepSeek-V4's differs.
    """

    groups: tuple[KvGroup, ...]
    block_bytes: float
    bytes_per_token: float  # of layers whose cache grows with the sequence, padding layers excluded
    context_parallel: int = 1
    checked_block_bytes: float = 0.0  # 0 = block_bytes

    @property
    def num_groups(self) -> int:
        """All groups."""
        return sum(group.num_groups for group in self.groups)

    @property
    def main(self) -> KvGroup:
        """The group that grows with the sequence; the first when none does."""
        growing = [g for g in self.groups if g.kind in (MixerKind.FULL, MixerKind.MLA)]
        return (growing or [g for g in self.groups if g.kind is not MixerKind.STATE] or list(self.groups))[0]

    @property
    def has_states(self) -> bool:
        """Whether running sequences hold state pages (a cross-attention cache is none)."""
        return any(group.kind is MixerKind.STATE and not group.window_tokens for group in self.groups)

    def blocks_at_peak(self, length: int, in_flight_tokens: int) -> int:
        """Blocks for one sequence of this length, as the engine's start-up check counts. [blocks]."""
        local = -(-length // self.context_parallel)
        return sum(group.blocks_at_peak(local, in_flight_tokens) for group in self.groups)

    def counted_blocks(self, length: int, in_flight_tokens: int) -> int:
        """Blocks for one sequence of this length, as the engine's printed concurrency counts. [blocks]."""
        local = -(-length // self.context_parallel)
        return math.ceil(
            math.fsum(group.counted_share * group.blocks_at_peak(local, in_flight_tokens) for group in self.groups)
        )

    def fitting_blocks(self, pool_bytes: float) -> int:
        """Blocks of this pool, as the start-up check sees them. [blocks]."""
        return max(0, math.floor(pool_bytes / (self.checked_block_bytes or self.block_bytes)))

    def blocks_in_decode(self, length: float) -> int:
        """Blocks that a running sequence of this length holds. [blocks]."""
        return sum(group.blocks_in_decode(length / self.context_parallel) for group in self.groups)

    def fixed_blocks(self, length: float) -> int:
        """Blocks beside those of the growing groups: windows and states. [blocks]."""
        local, main = length / self.context_parallel, self.main
        fixed = sum(group.blocks_in_decode(local) for group in self.groups if group is not main)
        extra_main = (main.num_groups - 1) * math.ceil(local / main.block_tokens)
        return fixed + extra_main
