"""How the step loop is compiled, and how its machine code is kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

MAX_STEPS = 500_000_000
ENOUGH_DONE = 200  # an overloaded run goes on until its capacity can be told
STOPPED_BY_LOAD, STOPPED_BY_FAULT = 1, 2


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a part of the loop, which only other parts call.

    Nothing in the loop is allocated, so the parts do without numba's reference counts (`_nrt`): 1.4 times as fast.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def compiled_entry(function: Callable[..., Any]) -> Any:
    """Compile the loop's entry; keep the machine code on disk where some cache folder can be written.

    numba files the machine code under the function's name and sees changes only in its own file, so the
    name holds a digest of all files that are compiled into it.
    """
    function.__qualname__ = f"{function.__name__}_{source_digest()}"
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to write to: compile in memory, once per process
        return numba.njit(nogil=True, error_model="numpy")(function)


@cache
def source_digest() -> str:
    """Digest of the sources of the loop and of the records and constants that it works on."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "state.py", here.parent / "records.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
