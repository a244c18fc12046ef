"""Kernels that an engine's sources choose by release and chip, and their constants (`catalog/kernel_rules.csv`)."""

from __future__ import annotations

from functools import cache

from planner.inputs import first_of, release_of
from planner.tables import read_table


def runs_kernel(engine: str, version: str, kernel: str, architecture: str, *, asked: bool = False) -> bool:
    """Whether an engine runs these kernels for weights that they can multiply.

    Parameters
    ----------
    engine, version : str
        Family and release; "" = the newest.
    kernel : str
        awq, deep_gemm or flashinfer_cutlass.
    architecture : str
        Of an NVIDIA GPU, or the family of its chip.
    asked : bool
        Whether the user asks for them.

    Returns
    -------
    bool
    """
    have = release_of(version)
    for row in read_table("catalog/kernel_rules.csv"):
        if (row["engine"], row["kernel"], row["parameter"]) != (engine, kernel, "runs"):
            continue
        if row["architecture"] not in ("", architecture) or (row["value"] == "asked" and not asked):
            continue
        if have >= first_of(row["since"]) and (not row["until"] or have < first_of(row["until"])):
            return True
    return False


@cache
def kernel_constant(engine: str, kernel: str, parameter: str) -> float:
    """A constant of an engine's kernels, in the unit of its line.

    Raises
    ------
    LookupError
        When the catalog has none.
    """
    for row in read_table("catalog/kernel_rules.csv"):
        if row["engine"] in ("", engine) and (row["kernel"], row["parameter"]) == (kernel, parameter):
            return float(row["value"])
    raise LookupError(f"no {parameter} of {kernel} in {engine}")
