"""When own GPUs cost less than a hosted API, where the fleet grows with the volume."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats
from planner.errors import require_int, require_number


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSteps:
    """What own GPUs cost at any volume: whole replicas, as many as the volume needs, and the spares.

    `requests_per_replica_month` is what one replica serves in a month whose peak it just holds at the targets;
    `least_replicas` the smallest fleet: one of each kind where prefill and decode are apart.
    """

    usd_per_replica_month: float
    requests_per_replica_month: float
    mean_over_peak: float = 1.0  # of the rate, within that month
    gpus_per_replica: int = 1
    spare_replicas: int = 0
    fixed_usd_per_month: float = 0.0  # people, whatever the number of replicas
    least_replicas: int = 1

    def __post_init__(self) -> None:
        require_number("usd_per_replica_month", self.usd_per_replica_month, at_least=0)
        require_number("mean_over_peak", self.mean_over_peak, above=0, at_most=1)
        require_number("fixed_usd_per_month", self.fixed_usd_per_month, at_least=0)
        require_number("requests_per_replica_month", self.requests_per_replica_month, above=0)
        require_int("spare_replicas", self.spare_replicas, at_least=0)
        require_int("least_replicas", self.least_replicas)

    def replicas(self, requests_per_month: Floats) -> Floats:
        """Replicas bought at each volume, spares included."""
        serving = np.ceil(np.asarray(requests_per_month) / self.requests_per_replica_month * (1 - 1e-12))
        return np.maximum(self.least_replicas, serving) + self.spare_replicas

    def usd_per_month(self, requests_per_month: Floats) -> Floats:
        """The bill at each volume. [USD/month]"""
        return self.replicas(requests_per_month) * self.usd_per_replica_month + self.fixed_usd_per_month


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where own GPUs and a hosted API cost the same. None: the API is cheaper at every volume.

    From `first_requests_per_month` on, own GPUs are cheaper while their replicas are well used; each further replica
    may make the API cheaper again, until `always_requests_per_month`. Up to the first crossing `replicas` are bought.
    """

    first_requests_per_month: float | None
    always_requests_per_month: float | None
    replicas: int | None = None


def break_even(own: OwnSteps, api_usd_per_request: float) -> BreakEven:
    """Where the bill of a fleet that grows by whole replicas meets that of a hosted API.

    With n serving replicas at c USD a month each, the price of s more for spares and people, v requests a month per
    replica and a USD per request, own GPUs cost (n + s) · c for volumes V in ((n - 1) · v, n · v] and the API a · V.
    Own GPUs are cheaper somewhere on step n when n · (1 - r) > s · r with r = c / (a · v), and on all of it when
    n · (1 - r) ≥ 1 + s · r.

    Parameters
    ----------
    own : OwnSteps
        Price, volume and spares of the replicas.
    api_usd_per_request : float
        What the API charges for a request. [USD]
    """
    require_number("api_usd_per_request", api_usd_per_request, at_least=0)
    if api_usd_per_request == 0:
        return BreakEven(first_requests_per_month=None, always_requests_per_month=None)
    cost, fixed = own.usd_per_replica_month, own.fixed_usd_per_month
    if cost == 0:
        free_from = fixed / api_usd_per_request
        return BreakEven(
            first_requests_per_month=free_from,
            always_requests_per_month=free_from,
            replicas=int(own.replicas(np.array([free_from]))[0]),
        )
    extra = own.spare_replicas + fixed / cost
    ratio = cost / (api_usd_per_request * own.requests_per_replica_month)
    if ratio >= 1:
        return BreakEven(first_requests_per_month=None, always_requests_per_month=None)
    first = max(own.least_replicas, math.ceil(extra * ratio / (1 - ratio) - 1e-9))
    last = max(first, math.ceil((1 + extra * ratio) / (1 - ratio) - 1e-9) - 1)
    return BreakEven(
        first_requests_per_month=(first + extra) * cost / api_usd_per_request,
        always_requests_per_month=(last + extra) * cost / api_usd_per_request,
        replicas=first + own.spare_replicas,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostMap:
    """Own bill ÷ API bill, a row for each utilisation and a column for each volume."""

    requests_per_month: Floats
    utilisation: Floats
    own_over_api: Floats


def cost_map(own: OwnSteps, api_usd_per_request: float, volumes: Floats, utilisation: Floats) -> CostMap:
    """Own bill ÷ API bill over volume and utilisation.

    Parameters
    ----------
    own : OwnSteps
        Price and volume of a replica.
    api_usd_per_request : float
        Above 0. [USD]
    volumes : array
        Requests a month.
    utilisation : array
        Mean rate ÷ the rate at which the replicas just hold the targets: 1 means busy to the limit around the clock.
    """
    require_number("api_usd_per_request", api_usd_per_request, above=0)
    full = own.requests_per_replica_month / own.mean_over_peak
    rows = []
    for share in utilisation:
        serving = np.maximum(own.least_replicas, np.ceil(volumes / (full * share) * (1 - 1e-12)))
        bill = (serving + own.spare_replicas) * own.usd_per_replica_month + own.fixed_usd_per_month
        rows.append(bill / (volumes * api_usd_per_request))
    return CostMap(requests_per_month=volumes, utilisation=utilisation, own_over_api=np.array(rows))
