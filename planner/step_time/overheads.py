"""Serving overheads: what an engine adds around its kernels, by engine and version.

`catalog/serving_overheads.csv` has one value per parameter, engine and first version, with unit, meaning, how it was
fitted and the residual.
"""

from __future__ import annotations

import math
from functools import cache

from planner.inputs import release_of
from planner.tables import read_table


@cache
def overhead(engine: str, version: str, parameter: str, architecture: str = "") -> float:
    """Look up one serving overhead of an engine.

    Parameters
    ----------
    engine : str
        Engine family; rows without an engine apply to all.
    version : str
        Version as released; "" or unknown = the newest.
    parameter : str
        Name in the data file, which ends in its unit.
    architecture : str
        GPU generation, for kernels that differ by generation.

    Returns
    -------
    float
        Value of the last row that applies; NaN when none does.
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
