"""One replica: requests in, records out, and the verdict whether it keeps up."""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

import numpy as np

from planner.engine import EngineSettings
from planner.errors import InvalidInput
from planner.simulation import kernel, state
from planner.simulation.records import FINISHED, Floats, Ints, Limits, Requests, SimulationResult, Timeline
from planner.simulation.state import Groups, Jobs, Rules, Slots, Times, Totals
from planner.step_time import StepTimeTable

log = logging.getLogger(__name__)

STOP_QUEUE_REQUESTS = 20_000  # a queue beyond this, and beyond 30 % of all arrivals, ends an overloaded run
BINDING = ("none", "max_num_seqs", "kv cache", "token budget")
_OUT_OF_ORDER = "the step loop found nothing to do with requests waiting"


class Machine(NamedTuple):
    """Everything of one replica that the compiled loop works on."""

    jobs: Jobs
    slots: Slots
    groups: Groups
    rules: Rules
    times: Times
    totals: Totals
    feed: Ints

    def run(self, until: float = math.inf) -> None:
        """Advance to a time."""
        kernel.advance(*self, until)
        if self.totals.ints[state.STOPPED] == kernel.STOPPED_BY_FAULT:
            raise RuntimeError(_OUT_OF_ORDER)


def simulate(
    requests: Requests,
    engine: EngineSettings,
    limits: Limits,
    step_time: StepTimeTable,
    *,
    timeline: bool = False,
    seed: int = 0,
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
    seed : int
        Not used by one replica, whose scheduler draws nothing; kept beside `simulate_fleet`.
    stop_on_overload : bool
        End an open-loop run whose queue outgrows 20,000 requests and 30 % of all arrivals; those
        not finished then count as UNFINISHED.

    Returns
    -------
    SimulationResult
        Records per request, averages over time, verdict.
    """
    del seed
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
    jobs: Jobs | None = None,
    feed: Ints | None = None,
    closed: bool = True,
) -> Machine:
    """Set up one replica. Replicas of one service share `jobs` and have a `feed` each."""
    open_loop = requests.closed_loop_users == 0 and requests.arrival_s[-1] > requests.arrival_s[0]
    stop = STOP_QUEUE_REQUESTS if stop_on_overload and open_loop else np.iinfo(np.int64).max // 16
    rules = state.make_rules(engine, limits, requests, stop_waiting=stop)
    rules = rules._replace(
        caching=rules.caching and not rules.static and bool((requests.prefix_group >= 0).any()),
        think_s=rules.think_s + float(step_time.request_overhead_s),
    )
    times = state.make_times(step_time)
    calendar = state.calendar_size(requests, rules, times.window)
    shared = jobs is not None
    return Machine(
        jobs=jobs if jobs is not None else state.make_jobs(requests, limits.max_model_len),
        slots=state.make_slots(rules, calendar, times.window),
        groups=state.make_groups(requests),
        rules=rules,
        times=times,
        totals=state.make_totals(rules, fed=0 if shared else len(requests), closed=closed, timeline=timeline),
        feed=feed if feed is not None else np.arange(len(requests), dtype=np.int64),
    )


def collect(requests: Requests, machines: list[Machine], step_time: StepTimeTable, replica: Ints) -> SimulationResult:
    """Turn the arrays of one or more replicas into the result."""
    jobs, rules = machines[0].jobs, machines[0].rules
    ints = np.sum([m.totals.ints for m in machines], axis=0)
    floats = np.sum([m.totals.floats for m in machines], axis=0)
    duration = max(float(m.totals.floats[state.CLOCK]) for m in machines) - float(jobs.arrival[0])
    span = max(duration, 1e-300) * len(machines)
    blocks = max(1, rules.blocks)
    overhead = float(step_time.request_overhead_s)
    gaps = np.sum([m.totals.gap_count for m in machines], axis=0)
    verdict, capacity, message = judge(requests, jobs, machines)
    blocked = {BINDING[k]: float(floats[state.BLOCKED_BY_NOTHING_S + k]) for k in range(len(BINDING))}
    return SimulationResult(
        arrival_s=jobs.arrival,
        first_token_s=jobs.first_token + overhead if overhead else jobs.first_token,
        finish_s=jobs.finish + overhead if overhead else jobs.finish,
        prompt_tokens=requests.prompt_tokens,
        output_tokens=requests.output_tokens,
        status=jobs.status,
        num_preemptions=jobs.preemptions,
        max_itl_s=jobs.max_gap,
        replica=replica,
        duration_s=duration,
        num_steps=int(ints[state.STEPS]),
        busy_s=float(floats[state.BUSY_S]),
        mean_running=float(floats[state.RUNNING_AREA]) / span * len(machines),
        mean_waiting=float(floats[state.WAITING_AREA]) / span * len(machines),
        mean_kv_used_fraction=float(floats[state.USED_AREA]) / span / blocks,
        mean_kv_written_fraction=float(floats[state.WRITTEN_AREA]) / span / (blocks * rules.block_size),
        peak_running=int(max(m.totals.ints[state.PEAK_RUNNING] for m in machines)),
        prefill_tokens_computed=int(ints[state.PREFILL_TOKENS]),
        prefix_tokens_hit=int(ints[state.HIT_TOKENS]),
        decode_tokens=int(ints[state.DECODE_TOKENS]),
        verdict=verdict,
        binding=_binding(blocked, float(floats[state.BUSY_S]), span),
        timeline=_timeline(machines[0].totals) if len(machines) == 1 else None,
        term_s={
            "linear": float(floats[state.LINEAR_S]),
            "head": float(floats[state.HEAD_S]),
            "decode_attention": float(floats[state.DECODE_ATTENTION_S]),
            "prefill_attention": float(floats[state.PREFILL_ATTENTION_S]),
            "host": float(floats[state.HOST_S]),
        },
        admitted_s=jobs.admitted,
        itl_gap_s=bin_middles(),
        itl_count=gaps,
        blocked_s=blocked,
        capacity_rps=capacity,
        message=message,
        num_slots=rules.slots * len(machines),
    )


def bin_middles() -> Floats:
    """The middle of each bin of the histogram of gaps. [s]"""
    index = np.arange(state.NUM_BINS, dtype=np.int64) - 1
    per_octave = 1 << state.BINS_PER_OCTAVE_BITS
    octave, part = np.divmod(index, per_octave)
    return 2.0 ** (octave + state.FIRST_OCTAVE) * (1 + (part + 0.5) / per_octave)


def judge(requests: Requests, jobs: Jobs, machines: list[Machine]) -> tuple[str, float, str]:
    """Whether the service kept up with an open stream of requests.

    Counts who still waits for a turn when the last request arrives, out of n: above 5 % of n plus
    3·sqrt(n) it is overloaded, above 1 % plus 3·sqrt(n) backlogged. The square root is what chance
    alone may pile up; a queue that only grows holds a fixed share of n.
    """
    n = len(requests)
    stopped = any(m.totals.ints[state.STOPPED] for m in machines)
    last, first = float(jobs.arrival[-1]), float(jobs.arrival[0])
    if requests.closed_loop_users or last <= first:
        return "stable", math.nan, ""
    if stopped:
        last = min(float(m.totals.floats[state.CLOCK]) for m in machines)
    arrived = int(np.searchsorted(jobs.arrival, last, side="right"))
    late = ~(jobs.admitted[:arrived] <= last) & (jobs.status[:arrived] != 1)
    waiting = int(late.sum())
    chance = 3 * math.sqrt(n)
    if not stopped and waiting <= 0.01 * arrived + chance:
        return "stable", math.nan, ""
    finished = jobs.finish[jobs.status == FINISHED]
    begin = first + (last - first) / 4
    inside = int(((finished > begin) & (finished <= last)).sum())
    capacity = inside / (last - begin) if last > begin else math.nan
    offered = arrived / (last - first)
    over = stopped or waiting > 0.05 * arrived + chance
    word = "overloaded" if over else "backlogged"
    return word, capacity, f"{word} at {offered:.3g} req/s, capacity is about {capacity:.3g} req/s"


def _binding(blocked: dict[str, float], busy_s: float, span_s: float) -> str:
    """What held requests back longest; compute when nobody had to wait long yet steps fill the time."""
    held = {name: seconds for name, seconds in blocked.items() if name != "none"}
    name, seconds = max(held.items(), key=lambda item: item[1])
    if busy_s > 0 and seconds > 0.05 * busy_s:
        return name
    return "compute" if busy_s > 0.9 * span_s else "none"


def _timeline(totals: Totals) -> Timeline | None:
    count = int(totals.ints[state.SAMPLES])
    if count == 0:
        return None
    columns = totals.samples[:count].T
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
