"""How long the search takes, and whether its rows equal their plans and its winners those of planning everything.

Run: python -m tests.benchmarks.bench_search [speed] [rows N] [winners N]

`speed` times four searches in processes and in one thread; `rows` compares the rows of searches over random scenarios
with their own plans until N rows are compared; `winners` plans every deployment of N small random spaces and compares
the cheapest. Prints and asserts nothing about time, which belongs to a machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from planner import plan
from planner.answer.search.outcome import MEETS
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


def rows(count: int) -> None:
    """Rows of searches over random scenarios beside their own plans."""
    compared, wrong, seed = 0, 0, 100
    while compared < count:
        scenario, seed = random_scenario(seed), seed + 1
        for row in recommend(scenario, gpus=random_gpus(seed)).candidates:
            done = plan(row.scenario)
            level = row.scenario.service_level
            same = (
                (done.num_gpus, done.slo_met, done.cost.usd_per_month)
                == (row.num_gpus, row.status == MEETS, row.usd_per_month)
                and done.metrics.ttft_s.at(level.quantile) == row.ttft_s
                and done.metrics.tpot_s.at(level.quantile) == row.tpot_s
            )
            compared, wrong = compared + 1, wrong + (not same)
    print(f"{wrong} of {compared} rows differ from their plans", flush=True)


def winners(count: int) -> None:
    """Winners of searches beside those of planning every deployment of the same space."""
    missed = 0
    for seed in range(1000, 1000 + count):
        scenario, gpus = random_scenario(seed), random_gpus(seed)
        best = cheapest(every_plan(scenario, gpus, ("auto",)))
        own = cheapest(recommend(scenario, gpus=gpus, weight_dtypes=("auto",)).candidates)
        lost = [group for group, key in best.items() if own.get(group, (float("inf"), 0)) > key]
        missed += bool(lost)
        print(f"seed {seed}, {', '.join(gpus)}: {'missed ' + ', '.join(lost) if lost else 'found'}", flush=True)
    print(f"{missed} of {count} searches missed a winner", flush=True)


def main(words: list[str]) -> None:
    """Run what is asked for; all of it without a word."""
    asked = words or ["speed", "rows", "200", "winners", "20"]
    for place, word in enumerate(asked):
        if word == "speed":
            speed()
        elif word in ("rows", "winners"):
            {"rows": rows, "winners": winners}[word](int(asked[place + 1]))


if __name__ == "__main__":
    main(sys.argv[1:])
