"""How long the search takes, and whether its rows equal their plans and its winners those of planning everything.

Run: python -m tests.benchmarks.bench_search [speed] [rows N [SEED]] [winners N [SEED]]

`speed` times four searches in processes and in one thread; `rows` compares the rows of searches over random scenarios
with their own plans until N rows are compared; `winners` plans every deployment of N small random spaces and compares
the cheapest. SEED is the first scenario's, so that a long run can be made in slices. Prints and asserts nothing about
time, which belongs to a machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from planner import plan, to_query
from planner.answer.outcome import Plan
from planner.answer.search.outcome import Candidate, candidate_of
from planner.answer.search.recommend import recommend
from planner.scenario.scenario import Scenario
from tests.answer.search.spaces import cheapest, every_plan, random_gpus, random_scenario

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
    compared, wrong, seed = 0, 0, first
    while compared < count:
        scenario, gpus = random_scenario(seed), random_gpus(seed + 1)
        found = recommend(scenario, gpus=gpus).candidates
        differ = [row for row in found if plan_figures(plan(row.scenario)) != row_figures(row)]
        compared, wrong = compared + len(found), wrong + len(differ)
        print(f"seed {seed}, {', '.join(gpus)}: {len(differ)} of {len(found)} rows differ", flush=True)
        for row in differ:
            print(f"    {to_query(row.scenario)}", flush=True)
        seed += 1
    print(f"{wrong} of {compared} rows differ from their plans (seeds {first} to {seed - 1})", flush=True)


def row_figures(row: Candidate) -> tuple[object, ...]:
    """What a row says, to be compared with its plan."""
    figures = (row.status, row.num_gpus, row.usd_per_month, row.ttft_s, row.tpot_s, row.attainment, row.probability)
    return tuple(None if figure != figure else figure for figure in figures)  # NaN: no such figure


def plan_figures(done: Plan) -> tuple[object, ...]:
    """The same of a candidate's own plan."""
    return row_figures(candidate_of(done))


def winners(count: int, first: int = 1000) -> None:
    """Winners of searches beside those of planning every deployment of the same space."""
    missed = 0
    for seed in range(first, first + count):
        scenario, gpus = random_scenario(seed), random_gpus(seed)
        best = cheapest(every_plan(scenario, gpus, ("auto",)))
        own = cheapest(recommend(scenario, gpus=gpus, weight_dtypes=("auto",)).candidates)
        lost = [group for group, key in best.items() if own.get(group, (float("inf"), 0)) > key]
        missed += bool(lost)
        said = "nothing meets the targets" if not best else f"missed {', '.join(lost)}" if lost else "found"
        print(f"seed {seed}, {', '.join(gpus)}: {said}", flush=True)
        for group in lost:
            print(f"    {group}: {own.get(group)} instead of {best[group]}", flush=True)
    print(f"{missed} of {count} searches missed a winner (seeds {first} to {first + count - 1})", flush=True)


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
