"""Users of a closed loop and requests of a burst, shared out to replicas as evenly as whole numbers allow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from planner.inputs import ServiceLevel
from planner.service.metrics import ServingMetrics, measure, rates_and_shares
from planner.service.replica import Replica
from planner.simulation import SimulationResult
from planner.workload import Requests

_RECORDS = (
    *("arrival_s", "first_token_s", "finish_s", "prompt_tokens", "output_tokens", "status", "num_preemptions"),
    *("max_itl_s", "replica", "admitted_s"),
)
_TOTALS = ("num_steps", "busy_s", "prefill_tokens_computed", "prefix_tokens_hit", "decode_tokens", "num_slots")
RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "goodput_rps")
_SHARES = ("slots_utilization", "kv_used_utilization", "kv_written_utilization", "busy_utilization")


def share_evenly(count: int, num_replicas: int) -> tuple[int, ...]:
    """How many of `count` users or requests each replica gets, the larger shares first; they add up to `count`."""
    each, more = divmod(count, num_replicas)
    return tuple(each + (k < more) for k in range(num_replicas))


def share_of_one(requests: Requests, num_replicas: int) -> Requests:
    """What the fullest of `num_replicas` gets of a closed loop's users or of a burst."""
    if requests.closed_loop_users:
        return dataclasses.replace(
            requests, closed_loop_users=share_evenly(requests.closed_loop_users, num_replicas)[0]
        )
    return take_requests(requests, slice(0, share_evenly(len(requests), num_replicas)[0]))


def take_requests(requests: Requests, which: slice) -> Requests:
    """The requests of a slice."""
    arrays = {
        item.name: getattr(requests, item.name)[which]
        for item in dataclasses.fields(requests)
        if isinstance(getattr(requests, item.name), np.ndarray)
    }
    return dataclasses.replace(requests, **arrays)


def representatives(users: tuple[int, ...], most: int) -> tuple[tuple[int, float], ...]:
    """Replicas to simulate in place of all: users of each, and how many replicas it stands for.

    Shares differ by one user at most, so there are two kinds; beyond `most` replicas each kind is
    represented in proportion, at least once. Replicas without a user are left out.
    """
    found: list[tuple[int, float]] = []
    kinds = [(size, users.count(size)) for size in sorted(set(users), reverse=True) if size]
    total = sum(count for _, count in kinds)
    for size, count in kinds:
        shown = count if total <= most else min(max(1, round(most * count / total)), most - len(kinds) + 1)
        found += [(size, count / shown)] * shown
    return tuple(found)


def serve_users(
    replica: Replica, requests: Requests, num_replicas: int, level: ServiceLevel, *, most_simulated: int
) -> tuple[SimulationResult, ServingMetrics]:
    """Simulate a closed loop on several replicas: each keeps its own users.

    Parameters
    ----------
    replica : Replica
        What each replica is.
    requests : Requests
        Closed loop of the whole service; each simulated replica takes its turn of the requests.
    num_replicas : int
        How many share the users.
    level : ServiceLevel
        Targets.
    most_simulated : int
        Beyond so many replicas, some stand for the others.

    Returns
    -------
    tuple of SimulationResult and ServingMetrics
        Of the whole service: rates are sums over all replicas, utilisations means over all of them, idle
        ones included; latencies are pooled over the requests that came while all replicas were in use.
    """
    shown = representatives(share_evenly(requests.closed_loop_users, num_replicas), most_simulated)
    results = [
        replica.run(dataclasses.replace(take_requests(requests, slice(k, None, len(shown))), closed_loop_users=users))
        for k, (users, _) in enumerate(shown)
    ]
    weights = [weight for _, weight in shown]
    alone = [rates_and_shares(result, level) for result in results]
    merged = _merged(results, weights, num_replicas)

    def total(name: str) -> float:
        return math.fsum(weight * item[name] for weight, item in zip(weights, alone, strict=True))

    own: dict[str, Any] = {name: total(name) for name in RATES} | {name: total(name) / num_replicas for name in _SHARES}
    return merged, dataclasses.replace(measure(merged, level), **own)


def _merged(results: list[SimulationResult], weights: list[float], num_replicas: int) -> SimulationResult:
    """Records of all replicas in the order of arrival, up to where the first of them has issued its last request."""
    end = min(float(result.arrival_s[-1]) for result in results)
    numbered = [
        dataclasses.replace(result, replica=np.full(len(result.arrival_s), k, dtype=np.int64))
        for k, result in enumerate(results)
    ]
    arrival = np.concatenate([result.arrival_s for result in numbered])
    order = np.argsort(arrival, kind="stable")
    order = order[arrival[order] <= end]
    records: dict[str, Any] = {
        name: np.concatenate([getattr(result, name) for result in numbered])[order] for name in _RECORDS
    }
    totals: dict[str, Any] = {name: sum(getattr(result, name) for result in results) for name in _TOTALS}

    def weighed(name: str) -> float:
        return math.fsum(weight * getattr(result, name) for weight, result in zip(weights, results, strict=True))

    def summed(name: str) -> dict[str, float]:
        return {key: math.fsum(getattr(result, name)[key] for result in results) for key in getattr(results[0], name)}

    return dataclasses.replace(
        results[0],  # the fullest: what binds it binds the service
        **records,
        **totals,
        duration_s=max(result.duration_s for result in results),
        mean_running=weighed("mean_running"),
        mean_waiting=weighed("mean_waiting"),
        mean_kv_used_fraction=weighed("mean_kv_used_fraction") / num_replicas,
        mean_kv_written_fraction=weighed("mean_kv_written_fraction") / num_replicas,
        peak_running=max(result.peak_running for result in results),
        closed_loop_users=sum(result.closed_loop_users for result in results),
        **{name: np.sum([getattr(result, name) for result in results], axis=0) for name in ("itl_count", "itl_parts")},
        term_s=summed("term_s"),
        blocked_s=summed("blocked_s"),
        timeline=None,
    )


def with_idle(metrics: ServingMetrics, num_busy: int, num_replicas: int) -> ServingMetrics:
    """Utilisations averaged over replicas that got nothing too."""
    share = num_busy / num_replicas
    return dataclasses.replace(metrics, **{name: getattr(metrics, name) * share for name in _SHARES})


def fewest_that_hold(holds: Callable[[int], bool], most: int) -> int | None:
    """Fewest replicas of 1 to `most` for which the targets hold, None when they do not even with `most`.

    By doubling, then bisection: with more replicas each has less to do.
    """
    low, high = 0, 1
    while not holds(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    return smallest_that_holds(holds, low, high)


def smallest_that_holds(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest number that holds, by bisection, where `low` does not and `high` does.

    Above 1,000 it is found within 0.1 %, far closer than a simulation of any length can tell.
    """
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first_requests(requests: Requests, count: int) -> Requests:
    """The first `count` requests of a workload."""
    return take_requests(requests, slice(0, count))
