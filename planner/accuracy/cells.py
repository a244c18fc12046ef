"""Cells of measurement tables: blank, words, or a number that a run can have.

Tables come from many hands. A blank cell (or a column that is not there) is "not stated"; a number that no
run can have (infinite, negative, half a GPU) is refused with its column, so that the row and not the file
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.errors import InvalidInput, PlannerError

MAX_REASON = 200  # characters of a reason: one line of a terminal or two
_BLANK = ("", "nan", "none", "null", "n/a")


class _Limits(NamedTuple):
    most: float
    whole: bool


#: Largest figures that a published run may have.
LIMITS = {
    "n_gpus": _Limits(10_000, True),
    "tp": _Limits(1024, True),
    "pp": _Limits(1024, True),
    "ep": _Limits(1024, True),
    "moe_tp": _Limits(1024, True),
    "moe_ep": _Limits(1024, True),
    "batch": _Limits(100_000, True),
    "concurrency": _Limits(65_536, True),
    "n_requests": _Limits(1_000_000, True),
    "request_rate_rps": _Limits(1_000_000, False),
    "isl": _Limits(10_000_000, False),  # the longest context window published; means may be fractions
    "ctx": _Limits(10_000_000, False),
    "osl": _Limits(1_000_000, False),
}


def text_of(row: Mapping[str, Any], key: str) -> str:
    """Read a cell as text.

    Parameters
    ----------
    row : mapping
        Column name to cell, as text or number.
    key : str
        Column; it may be missing.

    Returns
    -------
    str
        Without surrounding space; "" for what is not stated.
    """
    value = row.get(key)
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in _BLANK else text


def number_of(row: Mapping[str, Any], key: str) -> float | None:
    """Read a number that the row may state.

    Parameters
    ----------
    row : mapping
        Column name to cell.
    key : str
        A column of `LIMITS`.

    Returns
    -------
    float or None
        None where the cell is blank or holds words.

    Raises
    ------
    InvalidInput
        When it is a number that no run can have.
    """
    text = text_of(row, key)
    try:
        value = float(text)
    except ValueError:
        return None
    limits = LIMITS[key]
    if not 0 <= value <= limits.most or (limits.whole and not value.is_integer()):
        kind = "a whole number" if limits.whole else "a number"
        raise InvalidInput(key, text, f"{kind} from 0 to {limits.most:,.0f}")
    return value


def count_of(row: Mapping[str, Any], key: str) -> int | None:
    """Read a number of things, at least 1 where the row states it.

    Raises
    ------
    InvalidInput
        When the cell holds a number that no run can have, 0 among them.
    """
    return None if number_of(row, key) is None else int(needed_number(row, key))


def needed_number(row: Mapping[str, Any], key: str) -> float:
    """Read a number of at least 1 that the prediction cannot do without.

    Raises
    ------
    InvalidInput
        When the cell is blank, holds words or a number that no run can have.
    """
    value = number_of(row, key)
    if value is None or value < 1:
        raise InvalidInput(key, text_of(row, key), f"a number from 1 to {LIMITS[key].most:,.0f}")
    return value


def reason_of(error: Exception) -> str:
    """Say in one line why a row is skipped; errors that no rule foresaw keep their name."""
    known = isinstance(error, PlannerError) or type(error).__module__.startswith("planner.")
    line = " ".join(str(error).split())
    line = line if known else f"the row cannot be read ({type(error).__name__}: {line})"
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
