"""Data files as rows of text; every other module turns them into values of its own."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PLANNER = Path(__file__).parent


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
