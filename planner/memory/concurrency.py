"""How many sequences of the traffic's lengths fit at once, with the derivation."""

from __future__ import annotations

from dataclasses import dataclass

from planner.memory.memory_plan import Formula

SOURCE = "blocks as the engine's KV cache manager allocates them"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalUse:
    """Blocks of an average sequence of the traffic, and of one that reserves max_model_len.

    `shared_blocks` of the `typical_blocks` hold a prompt that sequences have in common: one prompt for all, or
    one of `num_prompts` that are used equally often.
    """

    usable_blocks: int
    typical_blocks: int
    shared_blocks: int
    full_blocks: int
    typical_tokens: float
    max_model_len: int
    num_prompts: int = 1

    @property
    def paged(self) -> float:
        """Sequences that fit when each holds only what it has written, and common prompts are held once.

        n sequences hold n × own blocks and, of G common prompts, the G × (1 − (1 − 1/G)ⁿ) that any of them uses.
        """
        own = self.typical_blocks - self.shared_blocks
        if self.num_prompts == 1 or not self.shared_blocks:
            return max(0, self.usable_blocks - self.shared_blocks) / own
        low, high = 0.0, self.usable_blocks / own
        for _ in range(60):
            middle = (low + high) / 2
            held = middle * own + self.prompts_in_use(middle) * self.shared_blocks
            low, high = (middle, high) if held <= self.usable_blocks else (low, middle)
        return low

    def prompts_in_use(self, sequences: float) -> float:
        """Average number of different common prompts among this many sequences."""
        groups = self.num_prompts
        return groups * (1 - (1 - 1 / groups) ** sequences) if groups > 1 else 1.0

    @property
    def reserved(self) -> float:
        """Sequences that fit when each reserves max_model_len."""
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
        if shared and self.num_prompts > 1:
            used = self.prompts_in_use(self.paged)
            paged = (
                "(blocks − different prompts in use × blocks of one) ÷ (blocks of a sequence − blocks of its prompt)",
                f"({usable:,} − {used:,.4g} × {shared:,}) ÷ ({typical:,} − {shared:,})",
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
