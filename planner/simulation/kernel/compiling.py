"""How the step loop is compiled, and how its machine code is kept on disk."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

MAX_STEPS = 500_000_000
ENOUGH_DONE = 200  # requests that end before an overloaded run is stopped, so that its capacity can be measured
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
        entry: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        entry._cache = _SafeCache(entry.py_func)
        return entry
    except RuntimeError:  # no folder to write to: compile in memory, once per process
        return numba.njit(nogil=True, error_model="numpy")(function)


class _CheckedFile(IndexDataCacheFile):
    """Machine code behind a digest: a file that is cut off or damaged counts as none, so it is compiled and saved anew.

    numba itself trusts what it finds, and would raise, or run damaged code.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # unpickling a damaged file can raise anything
            return {}

    def _save_data(self, name: str, data: Any) -> None:
        body = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(body).digest() + body)

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            raise OSError("damaged")  # for numba: as if the file were gone
        return pickle.loads(data[32:])


class _SafeCache(FunctionCache):
    """numba's cache of one function, which neither a damaged file nor a full disk can stop."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def source_digest() -> str:
    """Digest of the sources of the loop and of the records and constants that it works on."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "state.py", here.parent / "records.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
