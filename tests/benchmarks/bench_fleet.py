"""Whether the replicas that are simulated in place of a large fleet say what the whole fleet does, and their time.

Run: python -m tests.benchmarks.bench_fleet [most replicas simulated whole]

For each router and size, with every replica at 94 % of its capacity: the share of requests that meets the targets by
the sample (with its 95 % interval) and by the whole fleet, and p95 TPOT and TTFT of the one divided by the other's.
Then how long an answer takes, up to 10⁶ req/s and 100,000 replicas.

Measured: of 40 fleets of 8 to 400 replicas, the two shares agree within their intervals in 36, and differ by 7 points
at most; sample ÷ whole is 0.95 to 1.06 for p95 TPOT and 0.95 to 1.10 for p95 TTFT. Apart stand 400 replicas under
prefix affinity, an eighth of which are overloaded and fall behind for as long as a run lasts: 1.13, and 1.27 to 1.41.
One replica with bursts is not settled at this load, as its plan says. The sample takes 0.7 s of processor time at most,
the whole fleet up to 11 s, a plan for 10⁶ req/s 2.9 s (round robin, 49,264 replicas) and 3.9 s (least outstanding,
47,311).
"""

from __future__ import annotations

import math
import sys
import time

from planner import Scenario, plan
from planner.answer.planning import replica_of, size
from planner.service.capacity import capacity_rps
from planner.service.fleet import run_fleet
from planner.service.metrics import ServingMetrics, measure
from planner.service.replica import Replica
from planner.simulation.router import simulate_fleet
from planner.workload.drawing import with_rate
from planner.workload.offered import draw

LOAD = 0.94
SIZES = (1, 8, 32, 100, 400)
MOST_WHOLE = 400
REQUESTS_OF_THE_WHOLE, MOST_OF_A_REPLICA = 2_000_000, 50_000  # a scenario has two million at most
TRUTH_SEED = 11
PREFIXES = {"shared_prefix_tokens": 500, "num_prefix_groups": 1250}
ROUTERS: dict[str, dict[str, object]] = {
    "round_robin": {},
    "random": {},
    "least_outstanding": {},
    "power_of_two": {},
    "prefix_affinity": PREFIXES,
}
ARRIVALS: dict[str, dict[str, object]] = {"Poisson": {}, "cv 4": {"arrivals": "bursty", "burst_cv": 4.0}}


def whole(scenario: Scenario, replica: Replica, num_replicas: int) -> ServingMetrics:
    """Every replica behind the real router, with the traffic of the whole service and another seed."""
    each = min(MOST_OF_A_REPLICA, REQUESTS_OF_THE_WHOLE // num_replicas)
    stream = draw(scenario.replace(num_requests=each * num_replicas, seed=TRUTH_SEED))
    result = simulate_fleet(
        with_rate(stream, scenario.peak_rate_rps),
        *(replica.engine, replica.limits, replica.step_time),
        num_replicas=num_replicas,
        router=scenario.router,
        seed=TRUTH_SEED,
    )
    return measure(result, scenario.service_level)


def compare(scenario: Scenario, replica: Replica, num_replicas: int) -> str:
    """One line: the sample beside the whole fleet."""
    begin = time.process_time()
    shown = run_fleet(scenario, replica, draw(scenario), num_replicas).metrics
    middle = time.process_time()
    true = whole(scenario, replica, num_replicas)
    seconds = middle - begin, time.process_time() - middle
    width = math.hypot(shown.slo_attainment_half_width, true.slo_attainment_half_width)
    word = "agrees" if abs(shown.slo_attainment - true.slo_attainment) <= width else "DIFFERS"
    settled = "" if shown.is_settled else " (not settled)"
    return (
        f"{shown.slo_attainment:6.1%} ± {shown.slo_attainment_half_width:4.1%}{settled}, "
        f"whole {true.slo_attainment:6.1%} ± {true.slo_attainment_half_width:4.1%} {word}; "
        f"sample ÷ whole: p95 TPOT {shown.tpot_s.p95 / true.tpot_s.p95:.3f}, "
        f"p95 TTFT {shown.ttft_s.p95 / true.ttft_s.p95:.3f}; CPU {seconds[0]:.2f} and {seconds[1]:.2f} s"
    )


def main() -> None:
    """Print the comparison for each router, kind of arrivals and size, then the time of large answers."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else MOST_WHOLE
    for router, prefixes in ROUTERS.items():
        base = Scenario(demand="rate", router=router, **prefixes)
        replica = replica_of(size(base, explain=False))
        capacity = capacity_rps(replica, draw(base.replace(num_requests=20_000)))
        for kind, arrivals in ARRIVALS.items():
            for count in (count for count in SIZES if count <= most):
                scenario = base.replace(rate_rps=LOAD * capacity * count, **arrivals)
                print(f"{router}, {kind}, {count} replicas: {compare(scenario, replica, count)}", flush=True)
    for rate in (10.0, 1000.0, 100_000.0, 1_000_000.0):
        for router in ("round_robin", "least_outstanding"):
            begin = time.process_time()
            done = plan(Scenario(demand="rate", rate_rps=rate, router=router))
            seconds = time.process_time() - begin
            print(f"{rate:,.0f} req/s, {router}: {done.num_replicas:,} replicas, {seconds:.1f} s of CPU", flush=True)
    begin = time.process_time()
    done = plan(Scenario(demand="rate", rate_rps=1_000_000.0, num_replicas=100_000))
    print(f"100,000 replicas given: hold {done.slo_met}, {time.process_time() - begin:.1f} s of CPU")


if __name__ == "__main__":
    main()
