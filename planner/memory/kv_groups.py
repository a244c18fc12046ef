"""Groups of layers that draw blocks from one pool, and the blocks that a sequence takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.model import MixerKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGroup:
    """Groups of layers of one kind.

    `counted_share` is the part of a block's bytes that the group fills: before v0.27 vLLM's printed concurrency counts
    blocks by bytes.
    """

    kind: MixerKind
    num_groups: int
    block_tokens: int
    window_tokens: int = 0
    pages_per_sequence: int = 0  # states: whatever the length
    counted_share: float = 1.0

    def blocks_at_peak(self, length: int, in_flight_tokens: int) -> int:
        """Blocks that one sequence of this length may hold during prefill."""
        if self.kind is MixerKind.STATE:
            return self.num_groups * self.pages_per_sequence
        if self.kind is MixerKind.SLIDING:
            held = min(self.window_tokens - 1 + in_flight_tokens, length)
            return self.num_groups * (-(-held // self.block_tokens) + 1)
        if self.kind is MixerKind.CHUNKED:
            length = min(self.window_tokens + in_flight_tokens, length)
        return self.num_groups * -(-length // self.block_tokens)

    def blocks_in_decode(self, length: float) -> int:
        """Blocks that one sequence of this length holds during decode."""
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

    `checked_block_bytes` is the block size in the start-up check, which differs for DeepSeek-V4 only.
    """

    groups: tuple[KvGroup, ...]
    block_bytes: float
    bytes_per_token: float  # of layers whose cache grows with the sequence; padding layers not counted
    context_parallel: int = 1
    checked_block_bytes: float = 0.0  # 0 = block_bytes

    @property
    def num_groups(self) -> int:
        """Groups of all kinds together."""
        return sum(group.num_groups for group in self.groups)

    @property
    def main(self) -> KvGroup:
        """The group that grows with the sequence, or the first one when none does."""
        growing = [g for g in self.groups if g.kind in (MixerKind.FULL, MixerKind.MLA)]
        return (growing or [g for g in self.groups if g.kind is not MixerKind.STATE] or list(self.groups))[0]

    @property
    def has_states(self) -> bool:
        """Whether running sequences hold pages of recurrent state; a cross-attention cache does not count."""
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
        """Blocks in a pool of this size, as the start-up check counts them. [blocks]."""
        return max(0, math.floor(pool_bytes / (self.checked_block_bytes or self.block_bytes)))

    def blocks_in_decode(self, length: float) -> int:
        """Blocks that a running sequence of this length holds. [blocks]."""
        return sum(group.blocks_in_decode(length / self.context_parallel) for group in self.groups)

    def fixed_blocks(self, length: float) -> int:
        """Blocks of a sequence outside the main group: windows, states and further groups. [blocks]."""
        local, main = length / self.context_parallel, self.main
        fixed = sum(group.blocks_in_decode(local) for group in self.groups if group is not main)
        extra_main = (main.num_groups - 1) * math.ceil(local / main.block_tokens)
        return fixed + extra_main
