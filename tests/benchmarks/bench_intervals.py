"""Whether the 95 % intervals of a settled run and of the capacity hold: how often they contain what a run of a million
requests says.

Run: python -m tests.benchmarks.bench_intervals [seeds]

The intervals should hold 93 to 97 times in 100. Where a load falls short, CORRELATION_TIMES (planner.service.metrics)
is too small: the last column says how many correlation times the runs were long.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from planner.answer.planning import replica_of, size
from planner.inputs.traffic import ServiceLevel
from planner.scenario.scenario import Scenario
from planner.service.capacity import capacity
from planner.service.deployment import CURVE_REQUESTS
from planner.service.fleet import GROWTH, MOST_REQUESTS
from planner.service.metrics import ServingMetrics, measure
from planner.service.replica import Replica, in_parallel
from planner.workload.drawing import with_rate
from planner.workload.offered import draw
from planner.workload.requests import Requests

LOADS = (0.5, 0.8, 0.9, 0.95)
SEEDS = 60
TRUTH_REQUESTS, TRUTH_SEED = 1_000_000, 999
SCENARIO = Scenario(
    users=500, num_requests=2000, lengths="lognormal", prompt_mean_tokens=512.0, output_mean_tokens=128.0
)


class Figure(NamedTuple):
    """A figure and the half-width of its interval."""

    value: float
    half_width: float

    def agrees(self, other: Figure) -> bool:
        """Whether two figures of independent runs differ by no more than their intervals allow."""
        return abs(self.value - other.value) <= math.hypot(self.half_width, other.half_width)


def figures(metrics: ServingMetrics) -> dict[str, Figure]:
    """The figures whose intervals a plan shows."""
    return {
        "TTFT mean": Figure(metrics.ttft_s.mean, metrics.ttft_s.mean_half_width),
        "TTFT p95": Figure(metrics.ttft_s.p95, metrics.ttft_s.p95_half_width),
        "TPOT p95": Figure(metrics.tpot_s.p95, metrics.tpot_s.p95_half_width),
        "attainment": Figure(metrics.slo_attainment, metrics.slo_attainment_half_width),
    }


def run(replica: Replica, rate_rps: float, count: int, seed: int, level: ServiceLevel) -> ServingMetrics:
    """Figures of so many requests at a rate."""
    requests = draw(SCENARIO.replace(num_requests=count, seed=seed))
    return measure(replica.run(with_rate(requests, rate_rps)), level)


def settled(replica: Replica, rate_rps: float, seed: int, level: ServiceLevel) -> ServingMetrics:
    """A run that grows until it is settled, as a plan grows it."""
    count = SCENARIO.num_requests
    while True:
        metrics = run(replica, rate_rps, count, seed, level)
        if metrics.is_settled or GROWTH * count > MOST_REQUESTS:
            return metrics
        count *= GROWTH


def capacities(replica: Replica, seeds: int) -> float:
    """Print the coverage of the capacity, as a plan finds it, and return that of a million requests. [req/s]"""

    def of(seed: int, count: int = CURVE_REQUESTS) -> Figure:
        def more(needed: int) -> Requests:
            return draw(SCENARIO.replace(num_requests=needed, seed=seed))

        return Figure(*capacity(replica, more(count), more))

    true, found = of(TRUTH_SEED, TRUTH_REQUESTS), in_parallel(of, range(seeds))
    share = np.mean([item.agrees(true) for item in found])
    width = np.median([item.half_width / item.value for item in found])
    bias = np.mean([item.value for item in found]) / true.value - 1
    print(f"capacity {true.value:.2f} req/s: holds {share:5.1%}, interval ±{width:.1%}, bias {bias:+.2%}")
    return true.value


def main() -> None:
    """Print the coverage of the capacity, and of each figure at each load."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    replica = replica_of(size(SCENARIO, explain=False))
    top = capacities(replica, seeds)
    for load in LOADS:
        rate = load * top
        alone = run(replica, rate, TRUTH_REQUESTS, TRUTH_SEED, ServiceLevel())
        level = ServiceLevel(ttft_s=alone.ttft_s.p90, tpot_s=alone.tpot_s.p95)  # so that the attainment is no bare 1
        truth = figures(run(replica, rate, TRUTH_REQUESTS, TRUTH_SEED, level))
        runs = in_parallel(lambda seed, rate=rate, level=level: settled(replica, rate, seed, level), range(seeds))
        found = [figures(metrics) for metrics in runs]
        print(f"load {load:.0%} of {top:.1f} req/s")
        for name, true in truth.items():
            share = np.mean([item[name].agrees(true) for item in found])
            width = np.median([item[name].half_width / item[name].value for item in found])
            bias = np.mean([item[name].value for item in found]) / true.value - 1
            print(f"  {name:<10} holds {share:5.1%}, interval ±{width:.1%}, bias {bias:+.2%}")
        counted = np.array([metrics.num_counted for metrics in runs])
        correlation = np.array([max(metrics.ttft_s.correlation, metrics.tpot_s.correlation) for metrics in runs])
        unsettled = sum(not metrics.is_settled for metrics in runs)
        print(
            f"  {np.median(counted):,.0f} requests counted, correlated over {np.median(correlation):,.0f}: "
            f"{np.median(counted / correlation):,.0f} times; {unsettled} of {seeds} runs not settled"
        )


if __name__ == "__main__":
    main()
