"""What the pages have computed, and how much of it a page may ask for. No streamlit here.

The library and the command line simulate as many requests as the user asks for. A page answers within seconds:
it simulates fewer where so many would take longer, and says so.
"""

from __future__ import annotations

import math

from planner.accuracy import paper_rows
from planner.answer import Search, plan, recommend, what_would_change
from planner.dashboard.jobs import Task
from planner.scenario import Scenario
from planner.simulation import seed_table

PLAN_CPU_S, CHANGES_CPU_S, SEARCH_CPU_S = 5.0, 5.0, 300.0
MOST_REQUESTS, FEWEST_REQUESTS = 10_000, 20
# What a plan costs, measured for many scenarios on one core of 2023 and rounded up: it simulates its requests some
# 25 times; a request, a step that decodes, and a step that takes a chunk of a prompt cost this much each.
SIMULATIONS = 25
REQUEST_CPU_S, DECODE_STEP_CPU_S, CHUNK_STEP_CPU_S = 4e-6, 4e-8, 1.5e-7
FEW_AT_ONCE, DECODE_STEP_OF_FEW_CPU_S = 8, 1.2e-7  # a step for few sequences makes few tokens
AIM_CPU_S = 3.2


def num_answered(scenario: Scenario) -> int:
    """How many of the scenario's requests a page simulates, so that the plan takes a few seconds at most."""
    traffic = scenario.traffic
    output = min(traffic.output_tokens.mean, scenario.max_model_len)
    prompt = min(traffic.prompt_tokens.mean, scenario.max_model_len)
    chunks = 1 + prompt / (scenario.max_num_batched_tokens or prompt)
    few = (scenario.engine_settings.max_num_seqs or math.inf) <= FEW_AT_ONCE
    decode_s = DECODE_STEP_OF_FEW_CPU_S if few else DECODE_STEP_CPU_S
    each_s = SIMULATIONS * (REQUEST_CPU_S + output * decode_s + chunks * CHUNK_STEP_CPU_S)
    most = min(MOST_REQUESTS, int(AIM_CPU_S / each_s))
    digits = 10 ** max(0, len(str(most)) - 2)
    return min(scenario.num_requests, max(FEWEST_REQUESTS, most // digits * digits))


def answered(scenario: Scenario) -> Scenario:
    """The scenario with the requests that a page simulates."""
    count = num_answered(scenario)
    return scenario if count == scenario.num_requests else scenario.replace(num_requests=count)


def plan_task(scenario: Scenario) -> Task:
    """The plan; with fewer and fewer requests where it takes longer than was estimated."""
    most = num_answered(scenario)
    counts = dict.fromkeys(min(most, max(FEWEST_REQUESTS, count)) for count in (most, most // 8, most // 64))
    return Task(plan, tuple((scenario.replace(num_requests=count),) for count in counts), PLAN_CPU_S)


def changes_task(scenario: Scenario) -> Task:
    """What single changes do to the answer."""
    return Task(what_would_change, ((answered(scenario),),), CHANGES_CPU_S, rank=1)


def search_task(scenario: Scenario, gpus: tuple[str, ...] | None, weight_dtypes: tuple[str, ...] | None) -> Task:
    """The search over deployments."""
    return Task(search, ((answered(scenario), gpus, weight_dtypes),), SEARCH_CPU_S, rank=2, slow=True)


def search(scenario: Scenario, gpus: tuple[str, ...] | None, weight_dtypes: tuple[str, ...] | None) -> Search:
    """`recommend`, as a task calls it."""
    return recommend(scenario, gpus=gpus, weight_dtypes=weight_dtypes)


SEED_TASK = Task(seed_table, ((),), SEARCH_CPU_S, rank=1)
PAPERS_TASK = Task(paper_rows, ((),), SEARCH_CPU_S, rank=1, slow=True)
