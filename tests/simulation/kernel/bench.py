"""The parts of the step loop as plain Python, on a replica whose records a test reads and sets."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from planner.catalog.engines import get_engine
from planner.inputs.limits import Limits
from planner.simulation.kernel import queue, schedule, sequences, steps
from planner.simulation.machine import make_machine
from planner.simulation.state import DECODES, NO_SLOT, Records
from planner.step_time.step_table import StepTimeTable
from planner.workload.requests import Requests
from tests.simulation.cases import UNIT

NAMES = ("arrivals", "blocks", "dispatch", "loop", "queue", "schedule", "sequences", "server", "steps", "timing")
PARTS = tuple(importlib.import_module(f"planner.simulation.kernel.{name}") for name in NAMES)


class Row:
    """A record whose fields are attributes, as numba reads it."""

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        return self.record[name].item()

    def __setattr__(self, name: str, value: float) -> None:
        self.record[name] = value


class Rows:
    """An array of records; a field of it is a column."""

    def __init__(self, array: Records) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: int) -> Row:
        return Row(self.array[index])

    def __getattr__(self, name: str) -> Any:
        return self.array[name]


class Bench:
    """One replica before its first step."""

    def __init__(
        self, requests: Requests, limits: Limits, *, table: StepTimeTable = UNIT, name: str = "vllm", **changes: Any
    ) -> None:
        engine = dataclasses.replace(get_engine(name), **changes)
        self.machine = make_machine(requests, engine, limits, table, timeline=True)
        machine = self.machine
        self.jobs, self.slots, self.groups = Rows(machine.jobs), Rows(machine.slots), Rows(machine.groups)
        self.runs, self.calendar = Rows(machine.runs), Rows(machine.calendar)
        self.rules, self.times, self.st = Row(machine.rules[0]), Row(machine.times[0]), Row(machine.state[0])
        self.tallies, self.tables, self.feed = machine.tallies, machine.tables, machine.feed

    def do(self, part: Callable[..., Any], **given: Any) -> Any:
        """Call a part; the arguments that are not given are the bench's own of that name."""
        part = getattr(part, "py_func", part)
        names = inspect.signature(part).parameters
        return part(*(given[name] if name in given else getattr(self, name) for name in names))

    # -- what a step does, part by part

    def enqueue(self, *jobs: int) -> None:
        for job in jobs:
            self.jobs[job].waits_since = self.jobs[job].arrival
            self.do(queue.push_tail, job=job)

    def admit(self, *jobs: int) -> list[int]:
        """Queue requests and start all that may start; returns their slots."""
        self.enqueue(*jobs)
        self.do(schedule.admit_all, budget=int(self.rules.budget))
        return [int(self.jobs[job].place) - 1 for job in jobs]

    def prefill(self, *jobs: int) -> list[int]:
        """Run the prompts of requests to their end, each in a step of its own length; returns their slots."""
        slots = self.admit(*jobs)
        self.do(steps.execute_step, decodes=0, gain=1, pad=0)
        self.st.server_free = self.st.clock
        self.do(steps.complete_chunks)
        return slots

    def decode(self, steps_made: int = 1) -> None:
        """Steps in which every decoding sequence makes one token; ends those that are due."""
        for _ in range(steps_made):
            self.do(sequences.grow_all, gain=1)
            self.do(steps.execute_step, decodes=self.st.decoding, gain=1, pad=0)
            self.st.server_free = self.st.clock
            self.do(steps.decode_step_done, gain=1)
            self.do(sequences.finish_due, gain=1)

    # -- what the linked lists hold

    @property
    def waiting(self) -> list[int]:
        """Requests in the queue, first to last."""
        found, job = [], int(self.st.queue_head)
        while job >= 0:
            found.append(job)
            job = int(self.jobs[job].after)
        assert len(found) == self.st.waiting
        return found

    @property
    def running(self) -> list[int]:
        """Requests that hold a slot, in the order of admission."""
        found, slot = [], int(self.st.run_first)
        while slot != NO_SLOT:
            found.append(int(self.slots[slot].job))
            slot = int(self.slots[slot].run_after)
        assert len(found) == self.st.running
        return found

    @property
    def decoding(self) -> list[int]:
        """Requests that decode, in the order of admission."""
        return [job for job in self.running if self.slots[self.jobs[job].place - 1].kind == DECODES]

    @property
    def free_runs(self) -> list[tuple[int, int, int]]:
        """(dead blocks before it, first block, end) of each run of free blocks, oldest first."""
        found, run = [], int(self.st.oldest_run)
        while run:
            found.append((int(self.runs[run].dead), int(self.runs[run].low), int(self.runs[run].high)))
            run = int(self.runs[run].after)
        return found
