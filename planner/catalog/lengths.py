"""Token-length distributions of public request traces, as quantiles from 0 to 100 %."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from planner.errors import InvalidInput
from planner.tables import read_table

LENGTH_SET_TITLES = {
    "azure23_conv": "Azure 2023, conversation",
    "azure23_code": "Azure 2023, code completion",
    "mooncake_conversation": "Mooncake, long conversation",
    "mooncake_synthetic": "Mooncake, synthetic long context",
    "arxivsum": "arXiv summarisation",
}


@lru_cache(maxsize=1)
def _columns() -> dict[str, tuple[float, ...]]:
    rows = read_table("catalog/length_quantiles.csv")
    levels = [float(row["pct"]) for row in rows]
    names = [name for name in rows[0] if name != "pct"]
    return {name: at_equal_steps(levels, [float(row[name]) for row in rows]) for name in names}


def at_equal_steps(levels: Sequence[float], values: Sequence[float]) -> tuple[float, ...]:
    """Quantiles at 1,001 equal steps from 0 to 100 %, linear between those that are known. [tokens]

    Parameters
    ----------
    levels, values : sequences of float
        Known quantiles, rising levels from 0 to 100. [%], [tokens]
    """
    # Published levels are finer near 100 %; steps of 0.1 % keep that detail in one table.
    resampled, left = [], 0
    for step in range(1001):
        level = step / 10
        while left < len(levels) - 2 and levels[left + 1] <= level:
            left += 1
        share = (level - levels[left]) / (levels[left + 1] - levels[left])
        resampled.append(values[left] + share * (values[left + 1] - values[left]))
    return tuple(resampled)


def length_set_names() -> tuple[str, ...]:
    """Names of the traces with known prompt and output lengths."""
    return tuple(LENGTH_SET_TITLES)


def length_quantiles(column: str) -> tuple[float, ...]:
    """Quantiles of one column, for example `azure23_conv_in`, at 1,001 equal steps from 0 to 100 %. [tokens]

    Raises
    ------
    InvalidInput
        When no trace has that name.
    """
    columns = _columns()
    if column not in columns:
        raise InvalidInput("length_trace", column, "one of " + ", ".join(length_set_names()))
    return columns[column]
