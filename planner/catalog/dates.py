"""When models appeared on the hub (model_dates.csv)."""

from __future__ import annotations

from functools import lru_cache

from planner.tables import read_table


def created_on(name: str) -> str:
    """Day on which a model's repository was made, such as "2025-04-27"; "" where the catalog does not know it.

    Parameters
    ----------
    name : str
        Id of a catalog model.
    """
    return _days().get(name, "")


@lru_cache(maxsize=1)
def _days() -> dict[str, str]:
    return {row["model"]: row["created"] for row in read_table("catalog/model_dates.csv")}
