"""Serving overheads: what an engine adds beside its kernels, by engine and version, as data.

`catalog/serving_overheads.csv` holds one value per parameter, engine and first version, with its unit,
meaning, how it was fitted and the residual.
"""

from __future__ import annotations

import math
from functools import cache

from planner.inputs import release_of
from planner.tables import read_table


@cache
def overhead(engine: str, version: str, parameter: str, architecture: str = "") -> float:
    """Read one serving overhead of an engine at a version (unknown version: the newest).

    Parameters
    ----------
    engine : str
        Engine family; rows without an engine hold for all.
    version : str
        As released, "" for the newest.
    parameter : str
        Name in the data file, with its unit.
    architecture : str
        GPU generation, for kernels that differ between them.

    Returns
    -------
    float
        The value of the latest row that holds; NaN when none does.
    """
    have = release_of(version)
    value = math.nan
    for row in read_table("catalog/serving_overheads.csv"):
        since = tuple(int(part) for part in row["version_from"].split(".") if part)
        if row["parameter"] != parameter or row["architecture"] not in ("", architecture):
            continue
        if row["engine"] in ("", engine) and have >= since:
            value = float(row["value"])
    return value
