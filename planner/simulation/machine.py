"""One replica: requests in, records out, and the verdict whether it keeps up."""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput
from planner.inputs import EngineSettings, Limits
from planner.simulation import kernel, state
from planner.simulation.records import ABANDONED, FINISHED, REJECTED, SimulationResult, Timeline
from planner.simulation.state import Records
from planner.step_time import StepTimeTable
from planner.workload import Requests

log = logging.getLogger(__name__)

STOP_QUEUE_REQUESTS = 20_000  # a queue beyond this, and beyond 30 % of all arrivals, ends an overloaded run
BINDING = ("none", "max_num_seqs", "kv cache", "token budget", "lora slots")
_RESULT_FIELDS = ("arrival", "first_token", "finish", "admitted", "max_gap", "status", "preemptions")
_STATE_FIELDS = (
    *("clock", "server_free", "peak_running", "read", "steps", "busy_s", "running_area", "waiting_area", "used_area"),
    *("written_area", "prefill_tokens", "hit_tokens", "decode_tokens", "linear_s", "head_s", "decode_attention_s"),
    *("prefill_attention_s", "host_s"),
)
_TERMS = ("linear", "head", "decode_attention", "prefill_attention", "host")


class Machine(NamedTuple):
    """Everything of one replica that the compiled loop works on, in the order of its arguments."""

    jobs: Records
    slots: Records
    groups: Records
    runs: Records
    calendar: Records
    tallies: Floats
    tables: Floats
    rules: Records
    times: Records
    state: Records
    feed: Ints

    def run(self, until: float = math.inf) -> None:
        """Advance to a time."""
        kernel.advance(*self, until)
        self.raise_fault()

    def raise_fault(self) -> None:
        """Raise when the loop had to stop because of a defect of its own."""
        if self.state["stopped"][0] == kernel.STOPPED_BY_FAULT:
            raise RuntimeError("the step loop found nothing to do with requests waiting")

    def count(self, name: str) -> int:
        """A counter of the state."""
        return int(self.state[name][0])

    def outstanding(self, now_s: float) -> int:
        """Advance to a time and count whose last token has not been sent then."""
        self.run(now_s)
        return int(kernel.count_outstanding(self.jobs, self.state, now_s))

    @property
    def clock_s(self) -> float:
        """Where the replica's clock stands. [s]"""
        return float(self.state["clock"][0])


def simulate(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    timeline: bool = False,
    stop_on_overload: bool = True,
) -> SimulationResult:
    """Serve requests on one replica.

    Parameters
    ----------
    requests : Requests
        The workload.
    engine : EngineSettings
        Scheduler preset; its own `max_num_seqs` caps that of the limits.
    limits : Limits
        Capacity of the replica.
    step_time : StepTimeTable
        Duration of a step.
    timeline : bool
        Keep samples of the step loop, at most 4,096.
    stop_on_overload : bool
        End an open-loop run whose queue outgrows 20,000 requests and 30 % of all arrivals; those
        not finished then count as UNFINISHED.

    Returns
    -------
    SimulationResult
        Records per request, averages over time, verdict.
    """
    if not len(requests):
        raise InvalidInput("requests", 0, "at least one request")
    if not kernel.is_compiled():
        log.info("Loading the simulator; the first time after installation it compiles for some seconds.")
    machine = make_machine(requests, engine, limits, step_time, timeline=timeline, stop_on_overload=stop_on_overload)
    machine.run()
    return collect(requests, [machine], step_time, np.zeros(len(requests), dtype=np.int64))


def make_machine(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    timeline: bool = False,
    stop_on_overload: bool = True,
    jobs: Records | None = None,
    feed: Ints | None = None,
    closed: bool = True,
) -> Machine:
    """Set up one replica. Replicas of one service share `jobs` and have a `feed` each."""
    open_loop = requests.closed_loop_users == 0 and requests.arrival_s[-1] > requests.arrival_s[0]
    rules = state.make_rules(engine, limits, requests)
    if stop_on_overload and open_loop:
        rules["stop_waiting"] = STOP_QUEUE_REQUESTS
    state.add_front_end(rules, engine, step_time)
    tables, times = state.make_times(step_time)
    fed = len(requests) if jobs is None else 0
    counters, tallies = state.make_state(rules, fed=fed, closed=closed, timeline=timeline)
    return Machine(
        jobs=state.make_jobs(requests, limits.max_model_len) if jobs is None else jobs,
        slots=state.make_slots(rules),
        groups=state.make_groups(requests, rules),
        runs=state.make_runs(rules, len(requests)),
        calendar=state.make_calendar(requests, rules, step_time.window_tokens),
        tallies=tallies,
        tables=tables,
        rules=rules,
        times=times,
        state=counters,
        feed=feed if feed is not None else np.arange(len(requests), dtype=np.int64),
    )


class Replicas(NamedTuple):
    """Equal replicas: `Machine`, with a row for each replica in the arrays that are its own."""

    jobs: Records
    slots: Records
    groups: Records
    runs: Records
    calendar: Records
    tallies: Floats
    tables: Floats
    rules: Records
    times: Records
    states: Records
    feeds: Ints

    def machines(self) -> list[Machine]:
        """The replicas one by one, on the same memory."""
        return [
            Machine(
                jobs=self.jobs,
                slots=self.slots[k],
                groups=self.groups[k],
                runs=self.runs[k],
                calendar=self.calendar[k],
                tallies=self.tallies[k],
                tables=self.tables,
                rules=self.rules,
                times=self.times,
                state=self.states[k],
                feed=self.feeds[k],
            )
            for k in range(len(self.states))
        ]

    def dispatch(self, options: Ints, *, begin: int = 0, end: int | None = None, routes: Ints | None = None) -> Ints:
        """Give requests to the least loaded of their options when they arrive; returns the replica of each.

        `begin` and `end` bound the requests that are given now; `routes` is the array to fill.
        """
        filled = np.zeros(len(self.jobs), dtype=np.int64) if routes is None else routes
        kernel.dispatch(*self, options, filled, begin, len(self.jobs) if end is None else end)
        return filled


def replicate(machine: Machine, count: int, *, room: int) -> Replicas:
    """Replicas like one that has not begun; they share its jobs, and each may be given `room` requests."""

    def rows(array: Records) -> Records:
        return np.repeat(array[np.newaxis], count, axis=0)

    def blank(array: Records) -> Records:  # what holds zeros at the start takes no memory until it is used
        return np.zeros((count, *array.shape), dtype=array.dtype)

    return Replicas(
        jobs=machine.jobs,
        slots=rows(machine.slots),
        groups=rows(machine.groups),
        runs=blank(machine.runs),
        calendar=rows(machine.calendar),
        tallies=blank(machine.tallies),
        tables=machine.tables,
        rules=machine.rules,
        times=machine.times,
        states=rows(machine.state),
        feeds=np.zeros((count, room), dtype=np.int64),
    )


def collect(requests: Requests, machines: list[Machine], step_time: StepTimeTable, replica: Ints) -> SimulationResult:
    """Turn the records of one or more replicas into the result."""
    jobs = state.take_columns(machines[0].jobs, _RESULT_FIELDS)
    blocks, block_size, slots = (int(machines[0].rules[name][0]) for name in ("blocks", "block_size", "slots"))
    states = {name: np.array([m.state[name][0] for m in machines]) for name in _STATE_FIELDS}
    total = {name: column.sum().item() for name, column in states.items()}
    duration = float(max(states["clock"].max(), states["server_free"].max()) - jobs["arrival"][0])
    span = max(duration, 1e-300)
    pool = max(1, blocks) * len(machines)
    tallies = machines[0].tallies[: state.SAMPLES_FROM].copy()
    for machine in machines[1:]:  # one by one: an array of all of them is 100 MB where 500 replicas share a burst
        tallies += machine.tallies[: state.SAMPLES_FROM]
    blocked = dict(zip(BINDING, tallies[: state.NUM_REASONS].tolist(), strict=True))
    gaps = tallies[state.NUM_REASONS :].reshape(state.NUM_PARTS, state.NUM_BINS)
    verdict, capacity, message = stability(requests, jobs, machines)
    overhead = float(step_time.request_overhead_s)
    sent = int(requests.output_tokens[jobs["status"] == FINISHED].sum())
    rules = machines[0].rules[0]
    reading_s = rules["server_request_s"] + rules["server_prompt_s"] * requests.prompt_tokens.mean()
    server_s = float(total["read"] * reading_s + sent * rules["server_token_s"])
    return SimulationResult(
        arrival_s=jobs["arrival"],
        first_token_s=jobs["first_token"] + overhead,
        finish_s=jobs["finish"] + overhead,
        prompt_tokens=requests.prompt_tokens,
        output_tokens=requests.output_tokens,
        status=jobs["status"].astype(np.int8),
        num_preemptions=jobs["preemptions"],
        max_itl_s=jobs["max_gap"],
        replica=replica,
        duration_s=duration,
        num_steps=total["steps"],
        busy_s=total["busy_s"],
        mean_running=total["running_area"] / span,
        mean_waiting=total["waiting_area"] / span,
        mean_kv_used_fraction=total["used_area"] / span / pool,
        mean_kv_written_fraction=total["written_area"] / span / (pool * block_size),
        peak_running=int(states["peak_running"].max()),
        prefill_tokens_computed=total["prefill_tokens"],
        prefix_tokens_hit=total["hit_tokens"],
        decode_tokens=total["decode_tokens"],
        verdict=verdict,
        binding=_binding(blocked, total["busy_s"], server_s, span * len(machines)),
        timeline=_timeline(machines[0]) if len(machines) == 1 else None,
        term_s={name: total[f"{name}_s"] for name in _TERMS},
        admitted_s=jobs["admitted"],
        itl_gap_s=bin_middles(),
        itl_count=gaps.sum(axis=0),
        itl_parts=gaps,
        blocked_s=blocked,
        capacity_rps=capacity,
        message=message,
        num_slots=slots * len(machines),
        closed_loop_users=requests.closed_loop_users,
    )


@lru_cache(maxsize=1)
def bin_middles() -> Floats:
    """The middle of each bin of the histogram of gaps. [s]"""
    octave, part = np.divmod(np.arange(state.NUM_BINS), state.BINS_PER_OCTAVE)
    middles: Floats = 2.0 ** (octave + state.FIRST_OCTAVE) * (1 + (part + 0.5) / state.BINS_PER_OCTAVE)
    middles.setflags(write=False)  # all results share it
    return middles


def stability(requests: Requests, jobs: dict[str, Floats], machines: list[Machine]) -> tuple[str, float, str]:
    """Whether the service kept up with an open stream of requests.

    Counts the requests that still wait when the last of n arrives: above 5 % of n plus 3·sqrt(n) the
    service is overloaded, above 1 % plus 3·sqrt(n) backlogged. The square root is what chance alone
    may pile up; a queue that only grows holds a fixed share of n.
    """
    n = len(requests)
    stopped = any(m.count("stopped") for m in machines)
    last, first = float(jobs["arrival"][-1]), float(jobs["arrival"][0])
    if requests.closed_loop_users or last <= first:
        return "stable", math.nan, ""
    if stopped:
        last = min(m.clock_s for m in machines)
    arrived = int(np.searchsorted(jobs["arrival"], last, side="right"))
    late = ~(jobs["admitted"][:arrived] <= last) & (jobs["status"][:arrived] != REJECTED)
    waiting = int(late.sum())
    chance = 3 * math.sqrt(n)
    if not stopped and waiting <= 0.01 * arrived + chance:
        return "stable", math.nan, ""
    finished = jobs["finish"][jobs["status"] == FINISHED]
    begin = first + (last - first) / 4
    inside = int(((finished > begin) & (finished <= last)).sum())
    capacity = inside / (last - begin) if last > begin else math.nan
    offered = arrived / (min(last, float(jobs["arrival"][-1])) - first)
    over = stopped or waiting > 0.05 * arrived + chance
    word = "overloaded" if over else "backlogged"
    gone = float((jobs["status"][:arrived] == ABANDONED).mean())
    if gone > 0:  # they make the served rate lower than the capacity
        return (
            word,
            capacity,
            f"{word} at {offered:.3g} req/s: {gone:.0%} of clients leave, {capacity:.3g} req/s are served",
        )
    return word, capacity, f"{word} at {offered:.3g} req/s, capacity is about {capacity:.3g} req/s"


def _binding(blocked: dict[str, float], busy_s: float, server_s: float, span_s: float) -> str:
    """What held requests back longest; "compute" when steps fill the time although nobody waited long."""
    if server_s > 0.9 * span_s:
        return "api server"
    held = {name: seconds for name, seconds in blocked.items() if name != "none"}
    name, seconds = max(held.items(), key=lambda item: item[1])
    if busy_s > 0 and seconds > 0.05 * busy_s:
        return name
    return "compute" if busy_s > 0.9 * span_s else "none"


def _timeline(machine: Machine) -> Timeline | None:
    count = machine.count("samples")
    if count == 0:
        return None
    columns = machine.tallies[state.SAMPLES_FROM :].reshape(-1, state.SAMPLE_WIDTH)[:count].T
    whole = [column.astype(np.int64) for column in columns[1:]]
    return Timeline(
        time_s=columns[0].copy(),
        running=whole[0],
        waiting=whole[1],
        step_tokens=whole[2],
        kv_blocks_used=whole[3],
        kv_tokens_written=whole[4],
        preemptions=whole[5],
    )
