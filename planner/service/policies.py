"""The batching policies side by side: the same requests, the same GPU, only the scheduler differs."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from planner.catalog import get_engine
from planner.inputs import ServiceLevel
from planner.service.capacity import capacity_rps
from planner.service.metrics import ServingMetrics, measure
from planner.service.replica import Replica, in_parallel
from planner.simulation import REJECTED, SimulationResult
from planner.workload import Requests

LAB_POLICIES = ("one-at-a-time", "static", "reserve-max", "paged")
POLICY_TITLES = {
    "one-at-a-time": "One at a time",
    "static": "Static batches",
    "reserve-max": "Continuous, reserve-max KV",
    "paged": "Continuous, paged KV",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyOutcome:
    """What one policy made of the requests.

    `capacity_rps` is its throughput with a full queue; `usd_per_million_tokens_at_capacity` the price
    of a token there, NaN until it is priced; `metrics` and `result` belong to the offered rate.
    """

    name: str
    title: str
    capacity_rps: float
    capacity_tokens_per_s: float
    metrics: ServingMetrics
    result: SimulationResult
    usd_per_million_tokens_at_capacity: float = math.nan


def under_policy(replica: Replica, name: str) -> Replica:
    """The same replica with the scheduler of one policy."""
    engine = get_engine(name)
    if replica.engine.max_loras:  # or every request for an adapter would be turned away
        engine = dataclasses.replace(engine, max_loras=replica.engine.max_loras)
    return Replica(engine=engine, limits=replica.limits, step_time=replica.step_time)


def compare_policies(
    replica: Replica,
    requests: Requests,
    level: ServiceLevel,
    names: tuple[str, ...] = LAB_POLICIES,
) -> tuple[PolicyOutcome, ...]:
    """Serve identical requests under each policy.

    Parameters
    ----------
    replica : Replica
        Capacity, step time and LoRA slots; the scheduler is the preset's.
    requests : Requests
        The workload at its offered rate.
    level : ServiceLevel
        Targets.
    names : tuple of str
        Engine presets to compare.

    Returns
    -------
    tuple of PolicyOutcome
        In the order of `names`.
    """

    def lane(name: str) -> PolicyOutcome:
        alone = under_policy(replica, name)
        top = capacity_rps(alone, requests)
        result = alone.run(requests, timeline=True)
        taken = result.status != REJECTED  # a rejected request counts as offered and yields no tokens
        tokens_per_s = top * float(np.where(taken, result.prompt_tokens + result.output_tokens, 0).mean())
        return PolicyOutcome(
            name=name,
            title=POLICY_TITLES.get(name, name),
            capacity_rps=top,
            capacity_tokens_per_s=tokens_per_s,
            metrics=measure(result, level),
            result=result,
        )

    return tuple(in_parallel(lane, names))
