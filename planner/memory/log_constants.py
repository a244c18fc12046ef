"""Constants that no engine's source states: they were read off start-up logs (catalog/memory_constants.csv)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType

from planner.tables import read_table
from planner.units import GIB, MIB

FILE = "catalog/memory_constants.csv"
_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": 1024}
_changed: dict[str, float] = {}


def constant(name: str) -> float:
    """Value of a constant: bytes for those in GiB, MiB or KiB, else in the unit of the file.

    Parameters
    ----------
    name : str
        Name in the data file.

    Returns
    -------
    float

    Raises
    ------
    KeyError
        When the file has no such constant.
    """
    return _changed[name] if name in _changed else _stored()[name]


def stored_constants() -> Mapping[str, float]:
    """Every constant by name, in the order of the file; units as `constant` gives them."""
    return MappingProxyType(_stored())


def values_without_logs() -> Mapping[str, float]:
    """What would be assumed of each constant if there were no log; units as `constant` gives them."""
    return {row["name"]: float(row["without_logs"]) * _UNITS.get(row["unit"], 1) for row in read_table(FILE)}


@contextmanager
def constants_in_force(values: Mapping[str, float]) -> Iterator[None]:
    """Use other values while the block runs, for a fit; units as `constant` gives them."""
    before = dict(_changed)
    _changed.update(values)
    try:
        yield
    finally:
        _changed.clear()
        _changed.update(before)


@cache
def _stored() -> dict[str, float]:
    return {row["name"]: float(row["value"]) * _UNITS.get(row["unit"], 1) for row in read_table(FILE)}
