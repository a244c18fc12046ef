"""Sequences that run at once at the traffic's lengths, with their derivation."""

from __future__ import annotations

from dataclasses import dataclass

from planner.memory_plan import Formula

SOURCE = "blocks as the engine's KV cache manager hands them out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalUse:
    """Blocks of a mean sequence of the traffic, and of one that reserves the maximum.

    `shared_blocks` of the `typical_blocks` hold a prompt that all sequences have in common.
    """

    usable_blocks: int
    typical_blocks: int
    shared_blocks: int
    full_blocks: int
    typical_tokens: float
    max_model_len: int

    @property
    def paged(self) -> float:
        """Sequences that fit when each holds what it has written."""
        return max(0, self.usable_blocks - self.shared_blocks) / (self.typical_blocks - self.shared_blocks)

    @property
    def reserved(self) -> float:
        """Sequences that fit when each reserves the maximum."""
        return self.usable_blocks / self.full_blocks

    def formulas(self) -> tuple[Formula, ...]:
        """Both figures with the values substituted."""
        usable, typical, shared = self.usable_blocks, self.typical_blocks, self.shared_blocks
        paged = ("blocks ÷ blocks of a sequence of the traffic", f"{usable:,} ÷ {typical:,}")
        if shared:
            paged = (
                "(blocks − blocks of the common prompt) ÷ (blocks of a sequence − blocks of the common prompt)",
                f"({usable:,} − {shared:,}) ÷ ({typical:,} − {shared:,})",
            )
        tokens, unit = f"{self.typical_tokens:,.0f} tokens", "sequences"
        return (
            Formula(
                name="typical_concurrency_paged",
                expression=paged[0],
                substituted=f"{paged[1]}, a sequence of {tokens} with its windows and states",
                value=self.paged,
                unit=unit,
                source=SOURCE,
            ),
            Formula(
                name="typical_concurrency_reserved",
                expression="blocks ÷ blocks of a sequence of max_model_len, while it generates",
                substituted=f"{usable:,} ÷ {self.full_blocks:,}, {self.max_model_len:,} tokens each",
                value=self.reserved,
                unit=unit,
                source=SOURCE,
            ),
        )
