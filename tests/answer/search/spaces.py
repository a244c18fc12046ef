"""Small spaces and random scenarios that the search's tests share."""

import numpy as np

from planner.answer.search.bounds import Bound
from planner.answer.search.outcome import MEETS
from planner.answer.search.recommend import most_requests_of_a_plan, whole_plan
from planner.answer.search.space import choices, deployments, scenario_of
from planner.scenario.scenario import Scenario

FEW = 300  # requests: small plans, since every candidate of a space is planned
MODELS = ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B-Instruct-2507")
GPUS = ("H100 SXM", "L40S", "MI300X", "RTX 4090", "L4", "H200 SXM", "GH200 96GB")


def random_scenario(seed):
    """A scenario whose answer is neither one GPU for all nor nothing at all."""
    draw = np.random.default_rng(seed)
    return Scenario(
        model=str(draw.choice(MODELS)),
        demand="rate",
        rate_rps=float(np.exp(draw.uniform(0, 5))),
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


def every_plan(scenario, gpus, weight_dtypes):
    """Each deployment of a space with its own plan: what the search must not miss."""
    chosen, _ = choices(scenario, gpus)
    rows = []
    for item in deployments(scenario, chosen, weight_dtypes):
        if scenario_of(scenario, item.changes) is not None:
            bound = Bound(changes=item.changes)
            rows.append(whole_plan(scenario, bound, most_requests_of_a_plan, item.evidence, ""))
    return rows


def cheapest(rows):
    """Least key of those that meet the targets, over all, by vendor and by evidence."""
    best = {}
    for row in rows:
        if row.status == MEETS:
            for group in ("all", row.scenario.gpu_spec.vendor, row.evidence):
                best[group] = min(best.get(group, row.key), row.key)
    return best
