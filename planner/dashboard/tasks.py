"""What the pages have computed, and how much of it a page may ask for. No streamlit here.

The library and the command line simulate as many requests as the user asks for. A page answers within seconds:
it simulates fewer where so many would take longer, and says so.
"""

from __future__ import annotations

import dataclasses
import math

from planner.accuracy import paper_rows
from planner.answer import Fit, Plan, fits, plan, simulate_time, trace_steps
from planner.charts import StepPicture, step_timeline, without_prompts
from planner.deploy import predicted
from planner.jobs import Task
from planner.reading import (
    Advice,
    Calibration,
    Overlay,
    OwnFile,
    Together,
    advise,
    calibrate,
    overlay,
    read,
    read_together,
)
from planner.scenario import Scenario
from planner.service import CURVE_REQUESTS, MOST_REQUESTS, Running
from planner.simulation import seed_steps, seed_table

PLAN_CPU_S, LONG_CPU_S, READING_CPU_S, TIME_CPU_S = 5.0, 300.0, 60.0, 60.0
FEWEST_REQUESTS = 20
# What a plan costs, measured for many scenarios on one core of 2023 and rounded up: its load curve takes some 20 runs,
# its fleet some four of the longest; each request, decode step and step with a chunk of a prompt takes this long.
CURVE_RUNS, FLEET_RUNS = 20, 4
REQUEST_CPU_S, DECODE_STEP_CPU_S, CHUNK_STEP_CPU_S = 4e-6, 4e-8, 1.5e-7
FEW_AT_ONCE, DECODE_STEP_OF_FEW_CPU_S = 8, 1.2e-7  # a step for few sequences makes few tokens
AIM_CPU_S = 3.2
Columns = tuple[tuple[str, str], ...]  # role, name
Files = tuple[tuple[str, bytes], ...]  # name, content


def request_cpu_s(scenario: Scenario) -> float:
    """Processor time of one simulated request, estimated from its steps. [s]"""
    traffic = scenario.traffic
    output = min(traffic.output_tokens.mean, scenario.max_model_len)
    prompt = min(traffic.prompt_tokens.mean, scenario.max_model_len)
    chunks = 1 + prompt / (scenario.max_num_batched_tokens or prompt)
    few = (scenario.engine_settings.max_num_seqs or math.inf) <= FEW_AT_ONCE
    decode_s = DECODE_STEP_OF_FEW_CPU_S if few else DECODE_STEP_CPU_S
    return REQUEST_CPU_S + output * decode_s + chunks * CHUNK_STEP_CPU_S


def most_simulated(scenario: Scenario) -> int:
    """Most requests that a page simulates for one figure, so that the plan takes a few seconds at most."""
    runs = AIM_CPU_S / request_cpu_s(scenario)
    most = max((runs - CURVE_RUNS * CURVE_REQUESTS) / FLEET_RUNS, runs / (CURVE_RUNS + FLEET_RUNS))
    digits = 10 ** max(0, len(str(int(most))) - 2)
    return int(min(MOST_REQUESTS, max(FEWEST_REQUESTS, most // digits * digits)))


def answered(scenario: Scenario) -> Scenario:
    """The scenario with the requests that a page simulates."""
    count = min(scenario.num_requests, most_simulated(scenario))
    return scenario if count == scenario.num_requests else scenario.replace(num_requests=count)


def planned(scenario: Scenario, most_requests: int) -> Plan:
    """`plan` within a budget of requests, as a task calls it."""
    count = min(scenario.num_requests, most_requests)
    fewer = scenario if count == scenario.num_requests else scenario.replace(num_requests=count)
    return plan(fewer, most_requests=most_requests)


def plan_task(scenario: Scenario) -> Task:
    """The plan; with fewer and fewer requests where it takes longer than was estimated."""
    most = most_simulated(scenario)
    budgets = dict.fromkeys(max(FEWEST_REQUESTS, most // cut) for cut in (1, 8, 64))
    return Task(planned, tuple((scenario, budget) for budget in budgets), PLAN_CPU_S)


def fits_task(gpu: str, count: int, context_tokens: int, engine: str) -> Task:
    """Every model that starts on some GPUs; an engine "" is vLLM and llama-server."""
    return Task(found_to_fit, ((gpu, count, context_tokens, engine),), LONG_CPU_S, rank=1, slow=True)


def found_to_fit(gpu: str, count: int, context_tokens: int, engine: str) -> tuple[Fit, ...]:
    """`fits`, as a task calls it."""
    return fits(gpu, count=count, context_tokens=context_tokens, engines=(engine,) if engine else None)


def load_test_task(tested: Scenario) -> Task:
    """What a load test of one replica should show."""
    return Task(predicted, ((answered(tested),),), PLAN_CPU_S, rank=1)


def steps_task(
    scenario: Scenario, num_serving: int, policy: str, start: str, num_steps: int, *, by_time: bool, tight: bool
) -> Task:
    """The step timeline of one policy on the plan's requests."""
    arguments = (answered(scenario), num_serving, policy, start, num_steps, by_time, tight)
    return Task(picture_of_steps, (arguments,), PLAN_CPU_S, rank=1)


def picture_of_steps(
    scenario: Scenario, num_serving: int, policy: str, start: str, num_steps: int, by_time: bool, tight: bool
) -> StepPicture | None:
    """Record and draw steps, as a task calls it."""
    trace = trace_steps(scenario, num_serving, policy, start=start, num_steps=num_steps, tight=tight)
    return step_timeline(trace, by_time=by_time) if len(trace) else None


def seed_steps_task(scheduling: str, num_steps: int) -> Task:
    """The step timeline of one row of the seed article's table."""
    return Task(picture_of_seed, ((scheduling, num_steps),), PLAN_CPU_S, rank=1)


def picture_of_seed(scheduling: str, num_steps: int) -> StepPicture:
    """Record and draw the article's steps, as a task calls it; every row on the same axis."""
    return step_timeline(without_prompts(seed_steps(scheduling, num_steps)), by_time=False, axis_steps=num_steps)


def reading_task(files: Files, base: Scenario, columns: Columns = ()) -> Task:
    """What a user's files say, and the figures predicted beside each; `columns` name those of recorded traffic."""
    return Task(read_and_compare, ((files, answered(base), columns),), READING_CPU_S, rank=1, slow=True)


def read_and_compare(
    files: Files, base: Scenario, columns: Columns = ()
) -> tuple[Together, tuple[Overlay | None, ...]]:
    """`read_together` and an `overlay` of each file, as a task calls them; None for a file that cannot be read."""
    found = read_together(files, base, dict(columns))
    beside = (_beside(item, data, found) for item, (_, data) in zip(found.files, files, strict=True))
    return found, tuple(beside)


def _beside(item: OwnFile, data: bytes, found: Together) -> Overlay | None:
    """Predicted for the deployment that all files describe; of a run, with as many requests as a page simulates."""
    reading = item.reading
    if reading is None:
        return None
    if len(found.files) > 1 and found.scenario is not None and reading.traffic is None:
        reading = read(data, found.scenario)
    scenario = reading.scenario
    return overlay(reading if scenario is None else dataclasses.replace(reading, scenario=answered(scenario)))


def calibration_task(files: Files, base: Scenario) -> Task:
    """The plan calibrated to the runs in a user's files."""
    return Task(read_and_calibrate, ((files, base),), READING_CPU_S, rank=1, slow=True)


def read_and_calibrate(files: Files, base: Scenario) -> Calibration:
    """`calibrate` to the runs of all files, as a task calls it."""
    readings = [read(data, base) for _, data in files]
    every = tuple(run for reading in readings for run in reading.runs)
    return calibrate(dataclasses.replace(readings[0], runs=every), base)


def advice_task(scenario: Scenario) -> Task:
    """Load tests of a plan by what they leave in doubt."""
    return Task(plan_and_advise, ((scenario,),), READING_CPU_S, rank=1, slow=True)


def plan_and_advise(scenario: Scenario) -> Advice:
    """`advise` for a scenario, as a task calls it."""
    return advise(plan(scenario, with_policies=False))


def time_task(service: Running) -> Task:
    """A day and a failure of a planned service."""
    return Task(simulate_time, ((service,),), TIME_CPU_S, rank=1)


SEED_TASK = Task(seed_table, ((),), LONG_CPU_S, rank=1)
PAPERS_TASK = Task(paper_rows, ((),), LONG_CPU_S, rank=1, slow=True)
