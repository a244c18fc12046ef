"""Which replicas of a large fleet are simulated in place of all, and the part of the traffic that is theirs."""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.scenario import Scenario

#: tests/benchmarks/bench_fleet.py compares what so many replicas say with whole fleets
MAX_SIMULATED_REPLICAS = 32
LEAST_CV = 0.05


class Sample(NamedTuple):
    """`shown` of the `busy` replicas that get requests, `share` of all requests, and the traffic of those."""

    shown: int
    busy: int
    share: float
    traffic: Scenario


def sample_of(scenario: Scenario, num_replicas: int) -> Sample:
    """The replicas of an open loop that are simulated in place of all.

    Parameters
    ----------
    scenario : Scenario
        Traffic and router of the whole service.
    num_replicas : int
        How many share the traffic.

    Returns
    -------
    Sample
        Its traffic has the prefixes of the replicas shown and the burstiness of their arrivals; not yet their rate.
    """
    busy, groups = num_replicas, 0
    if scenario.router == "prefix_affinity" and scenario.shared_prefix_tokens:  # a prefix group stays on one replica
        groups = scenario.num_prefix_groups
        busy = min(num_replicas, groups)
    shown = min(busy, MAX_SIMULATED_REPLICAS)
    if shown == busy:
        return Sample(shown, busy, 1.0, scenario)
    share = shown / busy
    if groups:
        shown, some = _with_whole_groups(groups, busy)
        share, scenario = some / groups, scenario.replace(num_prefix_groups=some)
    spread = cv_of_share(scenario, share)
    if spread != cv_of_gaps(scenario):
        scenario = scenario.replace(arrivals="bursty", burst_cv=max(LEAST_CV, spread))
    return Sample(shown, busy, share, scenario)


def _with_whole_groups(groups: int, busy: int) -> tuple[int, int]:
    """How many replicas to show, and how many prefix groups they have.

    Rounded up: where some replicas have a group more than others, so has at least one of those shown. Fewer are shown
    where that makes their share of such replicas truer.
    """

    def too_many(shown: int) -> float:
        return -(-groups * shown // busy) / shown - groups / busy

    shown = min(range(MAX_SIMULATED_REPLICAS, MAX_SIMULATED_REPLICAS // 2, -1), key=too_many)
    return shown, -(-groups * shown // busy)


def cv_of_gaps(scenario: Scenario) -> float:
    """Standard deviation ÷ mean of the time between two arrivals of the whole service."""
    return scenario.burst_cv if scenario.arrivals == "bursty" else 1.0


def cv_of_share(scenario: Scenario, share: float) -> float:
    """Standard deviation ÷ mean of the gaps between arrivals, were `share` of them those of a smaller service.

    Each replica then sees the gaps that it has in the large service. In turn, a replica's gap is the sum of n gaps of
    the service, with a variation of c ÷ √n. By chance it is a sum of as many as it takes: of a part p of the arrivals,
    c² is 1 + p (c² − 1) (thinning of a renewal process). Routers that look at the load spread a burst over
    all replicas, as chance does.
    """
    spread = cv_of_gaps(scenario)
    grouped = scenario.router == "prefix_affinity" and scenario.shared_prefix_tokens
    if scenario.router == "round_robin" or (scenario.router == "prefix_affinity" and not grouped):
        return spread * math.sqrt(share)
    return math.sqrt(1 + share * (spread**2 - 1))
