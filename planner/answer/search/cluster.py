"""A Dask cluster as the executor of a search; `dask.distributed` is an optional package."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from planner.errors import InvalidInput, PlannerError

ANSWERS_WITHIN_S = 10
#: inproc: a scheduler in this process
_ADDRESS = re.compile(r"^(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d+$|^inproc://\S+$")


@contextmanager
def dask_executor(address: str, answers_within_s: float = ANSWERS_WITHIN_S) -> Iterator[Executor]:
    """The executor of the Dask cluster whose scheduler has this address; the workers need Headroom's code.

    Parameters
    ----------
    address : str
        "tcp://10.0.0.5:8786", or "host:port".
    answers_within_s : float
        How long the scheduler may take to answer. [s]

    Raises
    ------
    InvalidInput
        When the address has no port, or no scheduler answers there.
    PlannerError
        When dask.distributed is not installed.
    """
    if not _ADDRESS.match(address):
        raise InvalidInput("--dask", address, "the address of a Dask scheduler, such as tcp://10.0.0.5:8786")
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise PlannerError("--dask needs the package dask.distributed: pip install distributed") from error
    try:
        client = distributed.Client(address, timeout=answers_within_s)
    except (OSError, ValueError, RuntimeError) as error:
        valid = f"a Dask scheduler that answers within {answers_within_s:g} s; start one with `dask scheduler`"
        raise InvalidInput("--dask", address, valid) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise InvalidInput("--dask", address, "a scheduler with at least one worker; start one with `dask worker`")
        yield client.get_executor()
