"""The plan's requests step by step on one replica, under a policy of the batching lab or the plan's own engine."""

from __future__ import annotations

import dataclasses
import math

from planner.answer.planning import replica_of, size
from planner.scenario import Scenario
from planner.service import Replica, at_once, first_requests, share_of_replica, under_policy
from planner.simulation import StepTrace, record_steps
from planner.workload import Requests, draw

OWN_ENGINE = "own"
STARTS = ("first", "middle", "preemption")
BURST_REQUESTS, BURST_FITS = 200, 12  # all at once, on a KV pool that holds so many of them at their full length


def trace_steps(
    scenario: Scenario,
    num_serving: int,
    policy: str,
    *,
    start: str = "middle",
    num_steps: int = 240,
    tight: bool = False,
) -> StepTrace:
    """Record what one replica of a plan does with its share of the requests.

    Parameters
    ----------
    scenario : Scenario
        The plan's scenario.
    num_serving : int
        Replicas that share the load, as `serving_replicas` of the plan says.
    policy : str
        An engine preset of the batching lab, or `OWN_ENGINE` for the plan's own scheduler.
    start : str
        "first": from the first request; "middle": halfway through the arrivals; "preemption": shortly before the first
        preemption, or in the middle where there is none.
    num_steps : int
        Steps recorded.
    tight : bool
        Send the first `BURST_REQUESTS` at once to a KV pool that holds only `BURST_FITS` of them, or one whole context,
        so that the scheduler has to preempt.

    Returns
    -------
    StepTrace
        With the same requests, limits and step times as the plan's own comparison of policies.

    Raises
    ------
    Infeasible
        When the engine does not start.
    """
    requests = draw(scenario)
    whole = replica_of(size(scenario, requests, explain=False))
    requests = share_of_replica(scenario, requests, num_serving)
    replica = whole if policy == OWN_ENGINE else under_policy(whole, policy)
    if tight:
        requests = at_once(first_requests(requests, BURST_REQUESTS))
        replica = _with_tight_pool(replica, requests)
    return record_steps(
        requests,
        replica.engine,
        replica.limits,
        replica.step_time,
        from_s=_start_s(replica, requests, start, num_steps),
        num_steps=num_steps,
    )


def _with_tight_pool(replica: Replica, requests: Requests) -> Replica:
    limits = replica.limits
    mean = float((requests.prompt_tokens + requests.output_tokens).mean())
    several = BURST_FITS * (math.ceil(mean / limits.block_size) + limits.fixed_blocks_per_sequence)
    one = math.ceil(limits.max_model_len / limits.block_size) + limits.fixed_blocks_per_sequence
    blocks = min(limits.num_kv_blocks, max(one, several))
    return dataclasses.replace(replica, limits=dataclasses.replace(limits, num_kv_blocks=blocks))


def _start_s(replica: Replica, requests: Requests, start: str, num_steps: int) -> float:
    """When the window begins. [s]"""
    first, last = float(requests.arrival_s[0]), float(requests.arrival_s[-1])
    if start == "first":
        return 0.0
    result = replica.run(requests, timeline=True)
    line = result.timeline
    if line is None or not len(line.time_s):
        return 0.0
    if start == "preemption" and line.preemptions[-1] > 0:
        at = int((line.preemptions > 0).argmax())
        steps_apart = max(1, result.num_steps // len(line.time_s))
        return float(line.time_s[max(0, at - 1 - num_steps // 3 // steps_apart)])
    if last > first:
        return (first + last) / 2
    return float(line.time_s[len(line.time_s) // 2])
