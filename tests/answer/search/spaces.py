"""Small spaces and random scenarios that the search's tests share."""

from dataclasses import replace

import numpy as np

from planner.answer.search.bounds import by_memory
from planner.answer.search.kept import planned
from planner.answer.search.outcome import MEETS
from planner.answer.search.recommend import most_requests_of_a_plan
from planner.answer.search.space import choices, deployments, scenario_of
from planner.scenario.scenario import Scenario

FEW = 300  # requests: small plans, since every candidate of a space is planned
#: plans of one space that are made: a winner that was pruned shows in any sample that holds it
SAMPLE = 8
MODELS = ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B-Instruct-2507")
GPUS = ("H100 SXM", "L40S", "MI300X", "RTX 4090", "L4", "H200 SXM", "GH200 96GB")


def few_requests(scenario):
    """A budget of a few thousand requests for one figure, as the page has one of its own."""
    return 3000


def random_scenario(seed):
    """A scenario whose answer is neither one GPU for all nor nothing at all."""
    draw = np.random.default_rng(seed)
    rate = float(np.exp(draw.uniform(0, 5)))
    return Scenario(
        model=str(draw.choice(MODELS)),
        demand="rate",
        rate_rps=rate,
        concurrent_users=max(1, round(4 * rate)),
        arrivals=str(draw.choice(("poisson", "poisson", "bursty"))),
        lengths="lognormal",
        prompt_mean_tokens=float(draw.choice((200, 1000, 3000))),
        output_mean_tokens=float(draw.choice((50, 200, 500))),
        ttft_target_s=float(draw.choice((0.5, 1.0, 3.0))),
        tpot_target_s=float(draw.choice((0.02, 0.05, 0.1))),
        spare_replicas=int(draw.choice((0, 0, 1))),
        num_requests=FEW,
        seed=int(draw.integers(1000)),
    )


def random_gpus(seed, count=2):
    return tuple(str(name) for name in np.random.default_rng(seed + 10_000).choice(GPUS, count, replace=False))


def that_start(scenario, gpus, weight_dtypes, *, budget=most_requests_of_a_plan):
    """The deployments of a space whose engine starts."""
    chosen, _ = choices(scenario, gpus)
    items = [
        item for item in deployments(scenario, chosen, weight_dtypes) if scenario_of(scenario, item.changes) is not None
    ]
    bounds = by_memory(scenario, [item.changes for item in items], budget)
    return [item for item, bound in zip(items, bounds, strict=True) if not bound.out]


def plans_of(scenario, items, *, budget=most_requests_of_a_plan):
    """Deployments with their own plans, as rows of a search."""
    rows = [planned(scenario_of(scenario, item.changes), budget).row for item in items]
    return [replace(row, evidence=item.evidence) for row, item in zip(rows, items, strict=True)]


def every_plan(scenario, gpus, weight_dtypes, *, budget=most_requests_of_a_plan, sample=None):
    """Each deployment of a space, or a random sample, with its own plan: what the search must not miss."""
    starts = that_start(scenario, gpus, weight_dtypes, budget=budget)
    if sample is not None and sample < len(starts):
        picked = np.random.default_rng(scenario.seed).choice(len(starts), sample, replace=False)
        starts = [starts[place] for place in sorted(picked)]
    return plans_of(scenario, starts, budget=budget)


def cheapest(rows):
    """Least key of those that meet the targets, over all, by vendor and by evidence."""
    best = {}
    for row in rows:
        if row.status == MEETS:
            for group in ("all", row.scenario.gpu_spec.vendor, row.evidence):
                best[group] = min(best.get(group, row.key), row.key)
    return best


def candidates(scenario, *, gpus, weight_dtypes=None):
    """The deployments that a search would consider, as scenarios; those that contradict other inputs are left out."""
    chosen, _ = choices(scenario, gpus)
    built = (scenario_of(scenario, item.changes) for item in deployments(scenario, chosen, weight_dtypes))
    return tuple(dict.fromkeys(item for item in built if item is not None))
