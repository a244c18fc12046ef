"""Discrete-event simulation of the engine's step loop, from request arrays to per-request records.

`simulate` serves requests on one replica, `simulate_fleet` on several behind a router. Both are
loaded on first use, because their compiled loop needs numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.simulation.fleet import simulate_fleet as simulate_fleet
    from planner.simulation.replica import simulate as simulate

_HOME = {"simulate": "planner.simulation.replica", "simulate_fleet": "planner.simulation.fleet"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(name)
