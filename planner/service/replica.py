"""One replica as the service uses it: scheduler, capacity and step time."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from planner.inputs import EngineSettings, Limits
from planner.simulation import SimulationResult, simulate
from planner.step_time import StepTimeTable
from planner.workload import Requests

Given = TypeVar("Given")
Found = TypeVar("Found")


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="simulate")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked worker inherits the pool without its threads


def in_parallel(function: Callable[[Given], Found], items: Iterable[Given]) -> list[Found]:
    """Apply a function to each item on all cores, in order; the compiled simulator holds no lock."""
    return list(_threads().map(function, items))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """What the simulator needs of one replica: scheduler, capacity and step time."""

    engine: EngineSettings
    limits: Limits
    step_time: StepTimeTable

    def run(self, requests: Requests, *, timeline: bool = False) -> SimulationResult:
        """Serve the requests on this replica."""
        result = simulate(requests, self.engine, self.limits, self.step_time, timeline=timeline)
        return with_windows(result, self.limits)


def with_windows(result: SimulationResult, limits: Limits, *, num_replicas: int = 1) -> SimulationResult:
    """Count the blocks of windows and states as written: each running sequence fills its own.

    The simulator counts a token once, in the blocks of the layers that grow with the sequence.
    """
    if not limits.fixed_blocks_per_sequence or not limits.num_kv_blocks:
        return result
    fixed = result.mean_running / num_replicas * limits.fixed_blocks_per_sequence / limits.num_kv_blocks
    written = min(result.mean_kv_used_fraction, result.mean_kv_written_fraction + fixed)
    return dataclasses.replace(result, mean_kv_written_fraction=written)
