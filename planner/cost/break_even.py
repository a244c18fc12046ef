"""When own GPUs cost less than a hosted API, where the fleet grows with the volume."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from planner.arrays import Floats
from planner.errors import require_int, require_number


def serving_replicas(rounds: Floats, kinds: tuple[int, ...]) -> Floats:
    """Replicas that serve so many times what `kinds` serve together: whole ones, and at least one of each kind."""
    exact = np.asarray(rounds) * (1 - 1e-12)
    return sum((np.maximum(1.0, np.ceil(exact * count)) for count in kinds), np.zeros_like(exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSteps:
    """What own GPUs cost at any volume: whole replicas, as many of each kind as the volume needs, and the spares.

    `requests_per_replica_month` is what one replica serves in a month whose peak it just holds at the targets. Where
    prefill and decode are apart, `kinds` are the replicas of each that serve `round_requests` together: a kind grows by
    one with each further share of them, and has at least one.
    """

    usd_per_replica_month: float
    requests_per_replica_month: float
    mean_over_peak: float = 1.0  # of the rate, within that month
    gpus_per_replica: int = 1
    spare_replicas: int = 0
    fixed_usd_per_month: float = 0.0  # people, whatever the number of replicas
    kinds: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        require_number("usd_per_replica_month", self.usd_per_replica_month, at_least=0)
        require_number("mean_over_peak", self.mean_over_peak, above=0, at_most=1)
        require_number("fixed_usd_per_month", self.fixed_usd_per_month, at_least=0)
        require_number("requests_per_replica_month", self.requests_per_replica_month, above=0)
        require_int("spare_replicas", self.spare_replicas, at_least=0)
        for count in self.kinds:
            require_int("kinds", count)

    @property
    def round_requests(self) -> float:
        """Requests a month of one round: as many as `kinds` serve together. The steps of each round are alike."""
        return self.requests_per_replica_month * sum(self.kinds)

    def replicas(self, requests_per_month: Floats) -> Floats:
        """Replicas bought at each volume, spares included."""
        return serving_replicas(np.asarray(requests_per_month) / self.round_requests, self.kinds) + self.spare_replicas

    def usd_per_month(self, requests_per_month: Floats) -> Floats:
        """The bill at each volume. [USD/month]"""
        return self.replicas(requests_per_month) * self.usd_per_replica_month + self.fixed_usd_per_month

    def ends(self) -> tuple[float, ...]:
        """Volumes of the first round up to which the replicas stay as many, in ascending order. [requests/month]"""
        shares = sorted({Fraction(k, count) for count in self.kinds for k in range(1, count + 1)})
        return tuple(float(share) * self.round_requests for share in shares)


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

    The API costs a · V for V requests a month. Own GPUs cost c · (N + s) on a step from x to y, where N replicas serve
    and s more pay for spares and people; m rounds later that is c · (N + m · U + s) from x + m · T to y + m · T, with
    the U replicas that serve T requests. So with g = a · T - c · U, what own GPUs save in a round, they are cheaper
    somewhere on the step when m · g > c · (N + s) - a · y, and on all of it when m · g ≥ c · (N + s) - a · x.

    Parameters
    ----------
    own : OwnSteps
        Price, volume, kinds and spares of the replicas.
    api_usd_per_request : float
        What the API charges for a request. [USD]
    """
    require_number("api_usd_per_request", api_usd_per_request, at_least=0)
    if api_usd_per_request == 0:
        return BreakEven(first_requests_per_month=None, always_requests_per_month=None)
    api, per_round = api_usd_per_request, sum(own.kinds)
    gain = api * own.round_requests - own.usd_per_replica_month * per_round
    if gain <= 0:
        return BreakEven(first_requests_per_month=None, always_requests_per_month=None)
    ends = np.array(own.ends())
    starts = np.concatenate([[0.0], ends[:-1]])
    bill = own.usd_per_month(ends)
    cheaper = np.maximum(0, np.ceil((bill - api * ends) / gain - 1e-9))  # rounds until own GPUs begin to pay
    dearer = np.ceil((bill - api * starts) / gain - 1e-9) - 1  # the last round in which they do not yet at its start
    each = own.usd_per_replica_month * per_round
    first, always = ((bill + rounds * each) / api for rounds in (cheaper, dearer))
    begins = np.maximum(first, starts + cheaper * own.round_requests)
    place = int(np.argmin(begins))
    return BreakEven(
        first_requests_per_month=float(begins[place]),
        always_requests_per_month=float(max(begins[place], np.max(always[dearer >= 0], initial=0.0))),
        replicas=int(own.replicas(ends)[place] + cheaper[place] * per_round),
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
        bill = own.usd_per_month(volumes * own.requests_per_replica_month / (full * share))
        rows.append(bill / (volumes * api_usd_per_request))
    return CostMap(requests_per_month=volumes, utilisation=utilisation, own_over_api=np.array(rows))
