"""How long the search takes, and whether its rows equal their plans and its winners those of planning everything.

Run: python -m tests.benchmarks.bench_search [speed] [rows N [SEED]] [winners N [SEED]]

`speed` times four searches in processes and in one thread; `rows` compares the rows of searches over random scenarios
with their own plans until N rows are compared. `winners` searches N small random spaces and plans every deployment that
could undercut the winner of its vendor or its evidence: those of which one replica, spares included, costs less than
that winner. Where nothing of a group meets the targets, all of the group could: of these a random sample of
`SAMPLE_OF_MISSES` is planned, and the line says of how many. Searches and plans simulate a few thousand requests for a
figure, as the page's do, and a plan that undercuts then as many as the command line's. One process for each core, a
seed each; SEED is the first scenario's, so that a long run can
be made in slices. Prints and asserts nothing about time, which belongs to a machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from planner import plan, to_query
from planner.answer.outcome import Plan
from planner.answer.search.outcome import Candidate, candidate_of
from planner.answer.search.recommend import recommend
from planner.answer.search.space import Deployment
from planner.answer.search.state import Key
from planner.scenario.scenario import Scenario
from tests.answer.search.spaces import cheapest, few_requests, plans_of, random_gpus, random_scenario, that_start

SAMPLE_OF_MISSES = 12
BATCH = 8  # searches between two looks at how many rows there are
NONE: Key = (float("inf"), 0)
SEARCHES = {
    "Llama-3.1-8B, 500 users": Scenario(),
    "Llama-3.3-70B, 3,000 users": Scenario(model="meta-llama/Llama-3.3-70B-Instruct", users=3000),
    "Llama-3.3-70B, 300 users at once": Scenario(
        model="meta-llama/Llama-3.3-70B-Instruct", tensor_parallel_size=2, arrivals="closed", concurrent_users=300
    ),
    "DeepSeek-V3, 80 req/s": Scenario(
        model="deepseek-ai/DeepSeek-V3", gpu="H200 SXM", tensor_parallel_size=8, demand="rate", rate_rps=80.0
    ),
}


def speed() -> None:
    """Wall and processor time of whole searches."""
    plan(Scenario(num_requests=20))
    for name, scenario in SEARCHES.items():
        for workers in (None, os.cpu_count() or 1):
            cpu = time.process_time()
            if workers is None:
                found = recommend(scenario)
                spent = f", {time.process_time() - cpu:.1f} s of processor time"
            else:
                context = multiprocessing.get_context("fork")
                with ProcessPoolExecutor(workers, mp_context=context) as pool:
                    found, spent = recommend(scenario, executor=pool), ""
            where = "one thread" if workers is None else f"{workers} processes"
            print(
                f"{name}, {where}: {found.candidates_considered:,} candidates in {found.wall_s:.1f} s{spent}",
                flush=True,
            )
            print(f"    {found.summary}", flush=True)


def rows(count: int, first: int = 100) -> None:
    """Rows of searches over random scenarios beside their own plans."""
    compared = wrong = 0
    with processes() as pool:
        for at in range(first, first + count, BATCH):  # a search has a few rows
            for text, found, differ in pool.map(compare_rows, range(at, at + BATCH)):
                print(text, flush=True)
                compared, wrong, last = compared + found, wrong + differ, at + BATCH - 1
            if compared >= count:
                break
    print(f"{wrong} of {compared} rows differ from their plans (seeds {first} to {last})", flush=True)


def compare_rows(seed: int) -> tuple[str, int, int]:
    """What one search says of its rows, how many there are, and how many differ from their plans."""
    scenario, gpus = random_scenario(seed), random_gpus(seed + 1)
    most = few_requests(scenario)
    found = recommend(scenario, gpus=gpus, budget=few_requests).candidates
    differ = [row for row in found if plan_figures(plan(row.scenario, most_requests=most)) != row_figures(row)]
    lines = [f"seed {seed}, {', '.join(gpus)}: {len(differ)} of {len(found)} rows differ"]
    return "\n    ".join([*lines, *(to_query(row.scenario) for row in differ)]), len(found), len(differ)


def row_figures(row: Candidate) -> tuple[object, ...]:
    """What a row says, to be compared with its plan."""
    figures = (row.status, row.num_gpus, row.usd_per_month, row.ttft_s, row.tpot_s, row.attainment, row.probability)
    return tuple(None if figure != figure else figure for figure in figures)  # NaN: no such figure


def plan_figures(done: Plan) -> tuple[object, ...]:
    """The same of a candidate's own plan."""
    return row_figures(candidate_of(done))


def winners(count: int, first: int = 1000) -> None:
    """Winners of searches beside the plans of all deployments that could undercut them."""
    missed = planned_whole = 0
    with processes() as pool:
        for text, lost, plans in pool.map(compare_winners, range(first, first + count)):
            print(text, flush=True)
            missed, planned_whole = missed + lost, planned_whole + plans
    seeds = f"seeds {first} to {first + count - 1}"
    print(f"{missed} of {count} searches missed a winner ({seeds}; {planned_whole:,} plans)", flush=True)


def compare_winners(seed: int) -> tuple[str, bool, int]:
    """What became of the winners of one space, whether one was missed, and how many plans that took."""
    scenario, gpus = random_scenario(seed), random_gpus(seed)
    own = cheapest(recommend(scenario, gpus=gpus, weight_dtypes=("auto",), budget=few_requests).candidates)
    undercut, open_ended = rivals(scenario, gpus, own)
    draw = np.random.default_rng(seed)
    few = min(SAMPLE_OF_MISSES, len(open_ended))
    sample = [open_ended[place] for place in sorted(draw.choice(len(open_ended), few, replace=False))]
    tried = [*undercut, *sample]
    plans = plans_of(scenario, tried, budget=few_requests)
    # In a few thousand requests a plan may meet its targets by luck: one that undercuts is planned with all of them.
    cheaper = [item for item, row in zip(tried, plans, strict=True) if undercuts(cheapest([row]), own)]
    lost = undercuts(cheapest(plans_of(scenario, cheaper)), own)
    parts = [f"seed {seed}, {', '.join(gpus)}: {len(undercut)} plans that could undercut a winner"]
    parts += [f"{few} of {len(open_ended)} where there is none"] if open_ended else []
    parts += [f"missed {group}: {own.get(group)} instead of {key}" for group, key in lost.items()] or ["found"]
    return ", ".join(parts), bool(lost), len(plans)


def undercuts(best: dict[str, Key], own: dict[str, Key]) -> dict[str, Key]:
    """The groups in which the best costs less than the search's own winner."""
    return {group: key for group, key in best.items() if own.get(group, NONE) > key}


def rivals(scenario: Scenario, gpus: tuple[str, ...], own: dict[str, Key]) -> tuple[list[Deployment], list[Deployment]]:
    """Deployments of which one replica costs less than the winner of a group, and those of a group without a winner."""
    undercut, open_ended = [], []
    for item in that_start(scenario, gpus, ("auto",), budget=few_requests):
        number = (1 + scenario.spare_replicas) * item.gpus_per_replica
        least = round(number * item.choice.usd_per_hour * scenario.hours_per_month, 6), number
        of_groups = [own.get(group) for group in (item.choice.spec.vendor, item.evidence)]
        if any(key is not None and least < key for key in of_groups):
            undercut.append(item)
        elif None in of_groups:
            open_ended.append(item)
    return undercut, open_ended


def processes() -> ProcessPoolExecutor:
    """A process for each core; this one has compiled what all of them run."""
    plan(Scenario(num_requests=20))
    return ProcessPoolExecutor(os.cpu_count() or 1, mp_context=multiprocessing.get_context("fork"))


def main(words: list[str]) -> None:
    """Run what is asked for; all of it without a word."""
    asked: list[tuple[str, list[int]]] = []
    for word in words or ["speed", "rows", "200", "winners", "20"]:
        if word.isdecimal():
            asked[-1][1].append(int(word))
        else:
            asked.append((word, []))
    for word, numbers in asked:
        if word == "speed":
            speed()
        else:
            {"rows": rows, "winners": winners}[word](*numbers)


if __name__ == "__main__":
    main(sys.argv[1:])
