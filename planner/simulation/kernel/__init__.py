"""The compiled step loop: one scheduler for every engine, driven by `rules`.

`advance` runs one replica until a time. A general step is scheduled (`schedule`); runs of steps in which
nothing but the clock changes pass through `steps.decode_run`, whose cost per step does not depend on the
batch. Both add the same floating-point numbers in the same order, so a run equals its single steps
bit for bit. `dispatch` is the router in front of several replicas; it advances those whose load it looks at.

The arguments have the same names everywhere (planner.simulation.state): `jobs`, `slots`, `groups`, `runs`
and `calendar` are arrays of records, `tallies` and `tables` arrays of numbers, `rules`, `times` and
`st` (the state) single records.
"""

from planner.simulation.kernel.compiling import STOPPED_BY_FAULT, STOPPED_BY_LOAD, compiled_entry
from planner.simulation.kernel.dispatch import count_outstanding, dispatch
from planner.simulation.kernel.loop import advance

__all__ = [
    "STOPPED_BY_FAULT",
    "STOPPED_BY_LOAD",
    "advance",
    "compiled_entry",
    "count_outstanding",
    "dispatch",
    "is_compiled",
]


def is_compiled() -> bool:
    """Whether this process has the step loop ready to run."""
    return bool(getattr(advance, "signatures", True))
