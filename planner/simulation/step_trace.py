"""What a replica does step by step: which slot computes what, who is preempted, what the KV pool holds.

The compiled loop stops at any time that it is given, so it is stopped after each step and its state read. The run is
the one that `simulate` makes, float for float; where no steps are recorded, nothing is slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.inputs import EngineSettings, Limits
from planner.simulation.machine import Machine, make_machine
from planner.simulation.state import DECODES, PARTIAL
from planner.step_time import StepTimeTable
from planner.workload import Requests

#: What a slot does in a step. HELD: its answer is complete, but the static batch keeps the slot. PAUSED: its sequence
#: is not in this step, since others' prompts go first or use up the token budget.
EMPTY, PREFILL, DECODE, RECOMPUTE, HELD, PAUSED = range(6)


class Span(NamedTuple):
    """One slot doing the same for the same request from step `first` up to, not including, step `end`."""

    slot: int
    request: int
    kind: int
    first: int
    end: int
    tokens: int  # prompt tokens computed; 0 where the kind computes none


class Mark(NamedTuple):
    """A request that lost its slot before the step, because the KV pool ran short."""

    step: int
    slot: int
    request: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTrace:
    """Consecutive steps of one replica: an entry for each step, and what the slots did in them.

    `decodes` are sequences that make a token, `prefill_tokens` of prompts computed, `waiting` requests in the queue,
    `kv_blocks_used` held by requests and `kv_tokens_written` in them. `before` steps passed before the first; the run
    is over after the last where `is_end`.
    """

    start_s: Floats
    end_s: Floats
    decodes: Ints
    prefill_tokens: Ints
    running: Ints
    waiting: Ints
    kv_blocks_used: Ints
    kv_tokens_written: Ints
    spans: tuple[Span, ...]
    preemptions: tuple[Mark, ...]
    num_slots: int
    num_blocks: int
    block_size: int
    before: int
    is_end: bool

    def __len__(self) -> int:
        return len(self.start_s)


def record_steps(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    from_s: float = 0.0,
    num_steps: int = 240,
) -> StepTrace:
    """Serve requests on one replica as `simulate` does, and record steps on the way.

    Parameters
    ----------
    requests, engine, limits, step_time
        As for `simulate`.
    from_s : float
        The first step recorded is the first that begins then or later. [s]
    num_steps : int
        Steps recorded, fewer where the run ends before.

    Returns
    -------
    StepTrace
    """
    machine = make_machine(requests, engine, limits, step_time)
    machine.run(from_s)
    recorder = _Recorder(machine)
    for _ in range(num_steps):
        start_s = next_step(machine)
        if start_s is None:
            return recorder.trace(is_end=True)
        recorder.look(start_s)
    return recorder.trace(is_end=False)


def next_step(machine: Machine) -> float | None:
    """Complete the step under way and compute the next. Returns when that begins; None when the run is over. [s]"""
    done, until = machine.count("steps"), machine.clock_s
    while True:
        machine.run(float(np.nextafter(until, math.inf)))
        if machine.count("stopped"):
            return None
        if machine.count("steps") > done:
            return until
        after = _next_event_s(machine)  # idle: on to whatever happens next
        if after == math.inf:
            return None
        if after <= until:
            raise RuntimeError("the step loop waits for something that has passed")
        until = after


def _next_event_s(machine: Machine) -> float:
    """When an idle replica reads the next request, or stops waiting for a fuller static batch; never: infinity. [s]"""
    state, jobs, rules = machine.state[0], machine.jobs, machine.rules[0]
    if state["next"] < state["read"]:
        arrival = float(jobs[machine.feed[state["next"]]]["waits_since"])
    elif state["read"] < state["fed"]:
        prompt = jobs[machine.feed[state["read"]]]["prompt"]
        reading = float(rules["server_request_s"] + rules["server_prompt_s"] * prompt)
        arrival = max(float(state["server_free"]), float(state["sending"])) + reading
    else:
        arrival = math.inf
    if rules["static"] and state["waiting"]:
        return min(arrival, float(jobs[state["queue_head"]]["arrival"] + rules["batch_timeout_s"]))
    return arrival


class _Recorder:
    """Reads the state of a machine after each step."""

    def __init__(self, machine: Machine) -> None:
        count = len(machine.slots)
        self.machine = machine
        self.before = machine.count("steps")
        self.rows: list[tuple[float, ...]] = []
        self.spans: list[Span] = []
        self.marks: list[Mark] = []
        self.kinds, self.requests = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
        self.begun, self.tokens = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.batch = np.zeros(count, dtype=bool)
        self.batch_requests = np.full(count, -1, dtype=np.int64)
        self.preempted, self.num_preempted = machine.jobs["preemptions"].copy(), machine.count("preemptions")

    def look(self, start_s: float) -> None:
        """Record the step that is under way since `start_s`."""
        state, step = self.machine.state[0], len(self.rows)
        kinds, requests, chunks = self._slots()
        self._note_preemptions(step)
        changed = np.flatnonzero((kinds != self.kinds) | (requests != self.requests))
        for slot in changed.tolist():
            self._close(slot, step)
        self.kinds, self.requests = kinds, requests
        self.begun[changed] = step
        self.tokens[changed] = 0
        for slot, tokens in chunks:
            self.tokens[slot] += tokens
        shared = int(state["shared_twice"]) * int(self.machine.rules["block_size"][0])
        self.rows.append(
            (
                start_s,
                float(state["clock"]),
                int((kinds == DECODE).sum()),
                sum(tokens for _, tokens in chunks),
                int(state["running"]),
                int(state["waiting"]),
                int(self.machine.rules["blocks"][0] - state["free_blocks"]),
                int(state["kv_tokens"] + state["partial_tokens"]) - shared,
            )
        )

    def _slots(self) -> tuple[Ints, Ints, list[tuple[int, int]]]:
        """What each slot does, for which request, and the parts of prompts in this step as (slot, tokens)."""
        machine = self.machine
        state, slots, jobs = machine.state[0], machine.slots, machine.jobs
        held, requests = slots["kind"].copy(), np.where(slots["kind"] > 0, slots["job"], -1)
        kinds = np.where(held == PARTIAL, PAUSED, EMPTY)
        kinds[held == DECODES] = DECODE if state["made"] else PAUSED
        count = int(state["chunks"])
        chunks = list(zip(slots["chunk_slot"][:count].tolist(), slots["chunk_tokens"][:count].tolist(), strict=True))
        for slot, _ in chunks:
            kinds[slot] = RECOMPUTE if jobs[requests[slot]]["preemptions"] else PREFILL
        if machine.rules["static"][0]:
            if count:
                self.batch, self.batch_requests = held > 0, requests.copy()
            idle = self.batch & (held == 0)
            kinds[idle], requests[idle] = HELD, self.batch_requests[idle]
        return kinds, requests, chunks

    def _note_preemptions(self, step: int) -> None:
        total = self.machine.count("preemptions")
        if total == self.num_preempted:
            return
        now, self.num_preempted = self.machine.jobs["preemptions"].copy(), total
        for request in np.flatnonzero(now > self.preempted).tolist():
            slot = np.flatnonzero(self.requests == request)
            self.marks.append(Mark(step, int(slot[0]) if len(slot) else -1, request))
        self.preempted = now

    def _close(self, slot: int, step: int) -> None:
        kind = int(self.kinds[slot])
        if kind != EMPTY:
            self.spans.append(
                Span(slot, int(self.requests[slot]), kind, int(self.begun[slot]), step, int(self.tokens[slot]))
            )

    def trace(self, *, is_end: bool) -> StepTrace:
        """Everything recorded."""
        for slot in range(len(self.kinds)):
            self._close(slot, len(self.rows))
        columns = np.array(self.rows, dtype=float).reshape(-1, 8).T
        whole = [column.astype(np.int64) for column in columns[2:]]
        rules = self.machine.rules
        return StepTrace(
            start_s=columns[0].copy(),
            end_s=columns[1].copy(),
            decodes=whole[0],
            prefill_tokens=whole[1],
            running=whole[2],
            waiting=whole[3],
            kv_blocks_used=whole[4],
            kv_tokens_written=whole[5],
            spans=tuple(sorted(self.spans, key=lambda span: (span.first, span.slot))),
            preemptions=tuple(self.marks),
            num_slots=int(rules["slots"][0]),
            num_blocks=int(rules["blocks"][0]),
            block_size=int(rules["block_size"][0]),
            before=self.before,
            is_end=is_end,
        )
