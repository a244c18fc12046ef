"""Data files as rows of text; every other module turns them into values of its own."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PLANNER = Path(__file__).parent
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@cache
def read_table(name: str) -> tuple[Mapping[str, str], ...]:
    """Rows of a data file, once per process.

    Parameters
    ----------
    name : str
        Path below `planner/`, such as "catalog/gpus.csv". Lines that begin with # are notes to its reader.

    Returns
    -------
    tuple of mappings
        Column to text, "" where a row is silent.
    """
    with (PLANNER / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(line for line in file if not line.startswith("#")))


def cell_of_text(value: object) -> object:
    """A table cell that no spreadsheet takes for a formula: text that could be one gets an apostrophe in front.

    Figures stay as they are, also those written as text. Source: OWASP, CSV Injection.
    """
    if not isinstance(value, str) or not value.lstrip(" ").startswith(FORMULA_STARTS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
