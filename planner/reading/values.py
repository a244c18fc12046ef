"""A figure as a tool prints it, in the unit of a serving row's column, and the lines of a table that say which."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache

from planner.tables import read_table

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|µs|us|μs|ns|m|s)")
_PART_IN_MS = {"h": 3.6e6, "m": 6e4, "s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ns": 1e-6}
DURATIONS, RATE = {"duration": 1.0, "duration_s": 1e-3}, "1000/"


@cache
def lines_of(table: str, tool: str) -> tuple[Mapping[str, str], ...]:
    """The lines of a table that are about a tool.

    Parameters
    ----------
    table : str
        A data file with a column `tool`.
    tool : str
        As the table names it.
    """
    return tuple(row for row in read_table(table) if row["tool"] == tool)


def scaled(text: str, scale: str) -> float | str | None:
    """A figure in its column's unit.

    Parameters
    ----------
    text : str
        As the tool prints it; what follows the number is left out.
    scale : str
        A factor; "" keeps the text; "duration" reads Go's "1m2.5s" as ms, "duration_s" as s; "1000/" turns a rate
        per second into ms.

    Returns
    -------
    float, str or None
        None where the text holds no such figure.
    """
    if not scale:
        return text.strip()[:200]
    if text.lower() in ("inf", "infinity"):
        return "inf"
    if scale in DURATIONS:
        found = duration_ms(text)
        return None if found is None else found * DURATIONS[scale]
    match = _NUMBER.match(text)
    if match is None:
        return None
    value = float(match[0].replace(",", ""))
    if scale == RATE:
        return 1e3 / value if value > 0 else None
    return value * float(scale)


def duration_ms(text: str) -> float | None:
    """Milliseconds of a duration as Go writes it, such as "1m2.5s" or "931µs"; None where it is none."""
    parts = _PART.findall(text.strip())
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text.strip():
        return None
    found = math.fsum(float(number) * _PART_IN_MS[unit] for number, unit in parts)
    return found if math.isfinite(found) else None
