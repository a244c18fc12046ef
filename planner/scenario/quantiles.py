"""Lengths of a user's own recording, as the few quantiles that a link can carry."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from planner.catalog import at_equal_steps
from planner.errors import InvalidInput

#: shares at which the lengths of a recording are kept; the ends, where requests are long, more finely
LEVELS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
MOST_TOKENS = 9_999_999  # so that sixteen of them fit in a field of a link


def quantiles_text(values: Iterable[float]) -> str:
    """Quantiles as a link carries them: whole tokens with full stops between them."""
    return ".".join(str(min(MOST_TOKENS, max(1, round(value)))) for value in values)


@lru_cache(maxsize=64)  # every Scenario checks its own, most of them the same
def quantiles_of(field: str, text: str) -> tuple[float, ...]:
    """Quantiles at 1,001 equal steps from 0 to 100 %, linear between those that a link carries. [tokens]

    Raises
    ------
    InvalidInput
        When they are not as many whole numbers as there are levels, rise nowhere below 1 token, or fall.
    """
    parts = text.split(".")
    valid = f"{len(LEVELS)} whole numbers of tokens that never fall, with full stops between them"
    if len(parts) != len(LEVELS) or not all(part.isascii() and part.isdigit() and len(part) <= 7 for part in parts):
        raise InvalidInput(field, text, valid)
    values = [int(part) for part in parts]
    if values[0] < 1 or values != sorted(values):
        raise InvalidInput(field, text, valid)
    return at_equal_steps([100 * level for level in LEVELS], values)
