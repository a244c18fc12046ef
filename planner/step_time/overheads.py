"""Serving overheads: what an engine adds around its kernels, by engine and version.

`catalog/serving_overheads.csv` has one value per parameter, engine and first version, with unit, meaning, how it was
fitted and the residual.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from planner.inputs import first_of, release_of
from planner.tables import read_table

_scales: dict[tuple[str, str], float] = {}


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
    return _stored(engine, version, parameter, architecture) * _scales.get((engine, parameter), 1.0)


@contextmanager
def scales_in_force(scales: Mapping[tuple[str, str], float]) -> Iterator[None]:
    """Multiply overheads while the block runs, for a fit.

    Parameters
    ----------
    scales : mapping
        (engine family, parameter) to factor.
    """
    before = dict(_scales)
    _scales.update(scales)
    try:
        yield
    finally:
        _scales.clear()
        _scales.update(before)


@cache
def _stored(engine: str, version: str, parameter: str, architecture: str) -> float:
    have = release_of(version)
    value = math.nan
    for row in read_table("catalog/serving_overheads.csv"):
        if row["parameter"] != parameter or row["architecture"] not in ("", architecture):
            continue
        if row["engine"] in ("", engine) and have >= first_of(row["version_from"]):
            value = float(row["value"])
    return value
