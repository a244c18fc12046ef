"""How the load of a service runs over 24 hours, and how long an engine takes to start."""

from __future__ import annotations

from functools import lru_cache

from planner.errors import require_choice
from planner.tables import read_table


@lru_cache(maxsize=1)
def _shapes() -> dict[str, tuple[float, ...]]:
    rows = read_table("catalog/day_shapes.csv")
    return {row["name"]: tuple(float(cell) / 100 for cell in row["percent_of_peak"].split()) for row in rows}


def day_shape(name: str) -> tuple[float, ...]:
    """The rate in each hour of a day as a share of the busiest one, from midnight on.

    Raises
    ------
    InvalidInput
        When no shape has that name.
    """
    require_choice("day_shape", name, _shapes())
    return _shapes()[name]


def engine_start_s(family: str) -> tuple[float, str]:
    """Time from starting an engine until it serves, without reading the weights, and its source. [s]"""
    rows = {row["engine"]: row for row in read_table("catalog/startup_times.csv")}
    row = rows.get(family, rows["other"])
    return float(row["own_start_s"]), row["source"]
