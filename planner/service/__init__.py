"""What users and owners see of the simulated service: latencies, load, and how many replicas the targets need.

In: a `Replica`, requests, targets. Out: `ServingMetrics`, a `LoadCurve`, the fleet that holds the targets.
"""

from planner.service.capacity import Capacity, at_once, capacity, capacity_rps
from planner.service.clients import first_requests
from planner.service.day import AUTOSCALED, FIXED, SCHEDULED, Day, DayPolicy, Running, serve_day
from planner.service.deployment import (
    CURVE_REQUESTS,
    Fleet,
    deploy,
    more_of,
    replicas_for_targets,
    share_of_replica,
    steady_requests,
)
from planner.service.fleet import (
    MOST_REQUESTS,
    PLAIN_MISS,
    fewest_sharing,
    fleet_size,
    run_fleet,
    serve_apart,
    serve_share,
    try_fleet,
)
from planner.service.load import STEADY_SHARE, LoadCurve, LoadPoint, load_curve, meets, replicas_needed
from planner.service.metrics import Distribution, ServingMetrics, attainment, latencies, measure
from planner.service.outage import Outage, serve_outage
from planner.service.policies import LAB_POLICIES, POLICY_TITLES, PolicyOutcome, compare_policies, under_policy
from planner.service.pools import PooledFleet, Pools, deploy_pools, least_pools, pool_rates, serve_lone
from planner.service.replica import Replica
from planner.service.taking import (
    LOST,
    THROUGHPUT,
    Most,
    Took,
    deploy_most,
    deploy_most_pools,
    longest_prompt_tokens,
    most_load,
    roomy,
)

__all__ = [
    "AUTOSCALED",
    "CURVE_REQUESTS",
    "FIXED",
    "LAB_POLICIES",
    "LOST",
    "MOST_REQUESTS",
    "PLAIN_MISS",
    "POLICY_TITLES",
    "SCHEDULED",
    "STEADY_SHARE",
    "THROUGHPUT",
    "Capacity",
    "Day",
    "DayPolicy",
    "Distribution",
    "Fleet",
    "LoadCurve",
    "LoadPoint",
    "Most",
    "Outage",
    "PolicyOutcome",
    "PooledFleet",
    "Pools",
    "Replica",
    "Running",
    "ServingMetrics",
    "Took",
    "at_once",
    "attainment",
    "capacity",
    "capacity_rps",
    "compare_policies",
    "deploy",
    "deploy_most",
    "deploy_most_pools",
    "deploy_pools",
    "fewest_sharing",
    "first_requests",
    "fleet_size",
    "latencies",
    "least_pools",
    "load_curve",
    "longest_prompt_tokens",
    "measure",
    "meets",
    "more_of",
    "most_load",
    "pool_rates",
    "replicas_for_targets",
    "replicas_needed",
    "roomy",
    "run_fleet",
    "serve_apart",
    "serve_day",
    "serve_lone",
    "serve_outage",
    "serve_share",
    "share_of_replica",
    "steady_requests",
    "try_fleet",
    "under_policy",
]
