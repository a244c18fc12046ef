"""The price of a GPU-hour, the requests that the service finishes, and the bill for them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.catalog import PRICE_KINDS, PriceOffer, median_offer, price_offers
from planner.cost.bill import CostPlan, FleetUse, cost_plan
from planner.cost.break_even import OwnSteps
from planner.cost.hosted_apis import ApiPrices, api_prices, estimated_api_prices
from planner.cost.owned import owned_hour, power_w
from planner.model import ModelShape
from planner.scenario import CUSTOM, Scenario
from planner.service import LoadCurve, PolicyOutcome, ServingMetrics
from planner.units import SECONDS_PER_HOUR

DEFAULT_PRICE_USD_PER_HOUR = 2.0
OTHER_KINDS = ("ondemand", "spot", "reserved", "serverless")  # in the order in which they stand in for another
OWNED = "owned: depreciation, power and people, as entered"
OWNED_UNPRICED = "owned: power and people; enter a purchase price to count depreciation"
ASSUMED = "no price known: 2 USD assumed, enter your own"

NEGLIGIBLE = 0.01  # share of lost requests up to which the finished ones count as typical


def gpu_price(scenario: Scenario) -> tuple[float, str]:
    """Price of one GPU-hour and where it comes from. [USD/h]

    The user's own price; else the published offer in the middle of its kind. Owned GPUs cost depreciation and power at
    full load here, people left out. Where nobody offers the GPU on terms of that kind, another kind stands in, and the
    source says so.
    """
    if scenario.usd_per_gpu_hour is not None:
        return scenario.usd_per_gpu_hour, "entered by hand"
    if scenario.price_kind == "owned":
        hour = owned_hour(scenario, scenario.gpu_spec.tdp_w, 1.0, 1)
        return hour.usd_per_hour - hour.people_usd, OWNED if scenario.gpu_purchase_usd is not None else OWNED_UNPRICED
    offer = offer_of(scenario)
    if offer is not None:
        return offer.usd_per_hour, _said(scenario.gpu, offer)
    wanted = PRICE_KINDS[scenario.price_kind]
    others = () if scenario.gpu == CUSTOM else (median_offer(scenario.gpu, kind) for kind in OTHER_KINDS)
    for other in others:
        if other is not None:
            return other.usd_per_hour, f"no price {wanted} known; {_said(scenario.gpu, other)}"
    return DEFAULT_PRICE_USD_PER_HOUR, ASSUMED


def price_gap(scenario: Scenario) -> str:
    """What the price of a scenario's GPUs lacks, in a sentence; "" where it is the user's or of the kind asked for."""
    usd, source = gpu_price(scenario)
    if source == OWNED_UNPRICED:
        return (
            "The bill of these owned GPUs is power and people alone: without a purchase price per GPU nothing is "
            "written off."
        )
    if source == ASSUMED:
        return f"No price of {scenario.gpu} is known: the bill assumes {usd:g} USD per GPU-hour. Enter your own."
    if scenario.usd_per_gpu_hour is not None or source == OWNED or offer_of(scenario) is not None:
        return ""
    wanted, taken = PRICE_KINDS[scenario.price_kind], source.partition("; ")[2]
    return f"No price of {scenario.gpu} {wanted} is known; the bill takes another kind: {taken}."


def offer_of(scenario: Scenario) -> PriceOffer | None:
    """The published offer that prices the scenario's GPU; None where its kind has none, or the price is the user's."""
    if scenario.usd_per_gpu_hour is not None or scenario.gpu == CUSTOM or scenario.price_kind not in PRICE_KINDS:
        return None
    return median_offer(scenario.gpu, scenario.price_kind)


def _said(gpu: str, offer: PriceOffer) -> str:
    count = len(price_offers(gpu, offer.kind))
    middle = f"the middle of {count} offers; " if count > 1 else ""
    return f"{offer.named} ({middle}{offer.source})"


class ServedFleet(Protocol):
    """What `served` reads of a fleet."""

    @property
    def metrics(self) -> ServingMetrics:
        """At the peak."""

    @property
    def curve(self) -> LoadCurve:
        """Of one replica."""

    @property
    def num_serving(self) -> int:
        """Replicas that share the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedFleet:
    """What the price of a fleet depends on, all of it known once it has been simulated.

    `at_targets_rps` is the most that the serving replicas finish within the targets, `capacity_rps` what one of them
    finishes at most; `output_weight` the GPU time of an output token ÷ that of a prompt token; `busy` the rates of one
    replica's load curve [req/s], each with the share of the time in which its GPUs work.
    """

    num_serving: int
    at_targets_rps: float
    capacity_rps: float
    output_weight: float
    busy: tuple[tuple[float, float], ...]
    prefix_hit_fraction: float = 0.0
    num_spare: int = 0
    kinds: tuple[int, ...] = (1,)  # replicas of each kind, where prefill and decode are apart

    def busy_at(self, rate_rps: float) -> float:
        """Share of the time in which the GPUs work when the fleet serves this rate, read off the load curve."""
        if not self.busy:
            return 0.0
        rates, shares = zip((0.0, 0.0), *self.busy, strict=True)
        return float(np.interp(rate_rps / self.num_serving, rates, shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a service finishes: requests per second over the month and at the peak, and their mean lengths.

    Rejected and abandoned requests, and those beyond the throughput, do not finish. The month loses only the requests
    that would fail even on an idle replica, and never finishes more per second than the peak. Closed loops and bursts
    count at the rate they reach.
    """

    mean_rps: float
    peak_rps: float
    mean_prompt_tokens: float
    mean_output_tokens: float


def served(scenario: Scenario, fleet: ServedFleet, prompt: float, output: float) -> Served:
    """What a fleet finishes; where it loses requests, mean lengths are those of the finished ones. [tokens]"""
    metrics = fleet.metrics
    reached = metrics.requests_per_s
    mean = peak = reached
    complete = metrics.lost_fraction <= NEGLIGIBLE
    if scenario.is_open_loop:
        offered = scenario.peak_rate_rps
        peak = offered * (1 - metrics.lost_fraction)
        if metrics.verdict != "stable" or offered > fleet.num_serving * fleet.curve.capacity_rps:
            peak = min(peak, reached)
        idle = fleet.curve.points[0].metrics if fleet.curve.points else metrics
        mean = min(scenario.mean_rate_rps * (1 - idle.lost_fraction), peak)
        complete = peak >= offered * (1 - NEGLIGIBLE)
    if not complete and reached > 0:
        output = metrics.output_tokens_per_s / reached
        prompt = metrics.total_tokens_per_s / reached - output
    return Served(mean_rps=mean, peak_rps=peak, mean_prompt_tokens=prompt, mean_output_tokens=output)


def price_policies(outcomes: tuple[PolicyOutcome, ...], usd_per_replica_hour: float) -> tuple[PolicyOutcome, ...]:
    """The outcomes with the price of a million tokens at their full throughput."""

    def price(item: PolicyOutcome) -> float:
        tokens = item.capacity_tokens_per_s
        return usd_per_replica_hour / SECONDS_PER_HOUR / tokens * 1e6 if tokens else math.inf

    return tuple(dataclasses.replace(item, usd_per_million_tokens_at_capacity=price(item)) for item in outcomes)


def price_plan(
    scenario: Scenario,
    model: ModelShape,
    num_gpus: int,
    work: Served,
    fleet: PricedFleet | None = None,
) -> CostPlan:
    """The bill for the requests that finish.

    Parameters
    ----------
    scenario : Scenario
        Prices, hours and traffic.
    model : ModelShape
        Whose hosted price is compared.
    num_gpus : int
        GPUs that are paid for.
    work : Served
        What finishes.
    fleet : PricedFleet, optional
        What the fleet can do, for prices at other loads and the break-even.
    """
    busy = fleet.busy_at(work.mean_rps) if fleet is not None else 1.0
    price, source, owned = *gpu_price(scenario), None
    if source in (OWNED, OWNED_UNPRICED):
        owned = owned_hour(scenario, scenario.gpu_spec.tdp_w, busy, num_gpus)
        price = owned.usd_per_hour
    saved = fleet.prefix_hit_fraction if fleet is not None else 0.0
    return cost_plan(
        num_gpus=num_gpus,
        usd_per_gpu_hour=price,
        price_source=source,
        hours_per_month=scenario.hours_per_month,
        mean_rate_rps=work.mean_rps,
        peak_rate_rps=work.peak_rps,
        mean_prompt_tokens=work.mean_prompt_tokens,
        mean_output_tokens=work.mean_output_tokens,
        api=_hosted(scenario, model),
        api_cached_share=scenario.api_cached_share if scenario.api_cached_share is not None else saved,
        offered_rate_rps=scenario.mean_rate_rps if scenario.is_open_loop else None,
        users=_users(scenario),
        owned=owned,
        use=(
            _use(scenario, fleet, busy, price - (owned.people_usd if owned else 0.0), owned=owned is not None)
            if fleet is not None
            else None
        ),
    )


def _hosted(scenario: Scenario, model: ModelShape) -> ApiPrices | None:
    """The API's prices: those entered, then the published ones, then those of a model of about this size."""
    known = api_prices(model.name)
    own_in, own_out = scenario.api_usd_per_mtok_input, scenario.api_usd_per_mtok_output
    own_cached = scenario.api_usd_per_mtok_cached_input
    if own_in is None and own_out is None and own_cached is None:
        return known or estimated_api_prices(model)
    if own_in is None and own_out is None and known is None:
        known = estimated_api_prices(model)
    read = 0.0 if known is None else known.usd_per_mtok_input
    written = 0.0 if known is None else known.usd_per_mtok_output
    cached = None if known is None or own_in is not None else known.usd_per_mtok_cached_input
    return ApiPrices(
        usd_per_mtok_input=read if own_in is None else own_in,
        usd_per_mtok_output=written if own_out is None else own_out,
        usd_per_mtok_cached_input=cached if own_cached is None else own_cached,
        offers=known.offers if known else (),
        source="entered by hand",
    )


def _users(scenario: Scenario) -> int | None:
    if scenario.arrivals == "closed":
        return scenario.concurrent_users
    return scenario.users if scenario.is_open_loop and scenario.demand == "users" else None


def _use(scenario: Scenario, fleet: PricedFleet, busy: float, usd_per_gpu_hour: float, *, owned: bool) -> FleetUse:
    tdp, per_replica = scenario.gpu_spec.tdp_w, scenario.parallelism.gpus_per_replica
    each = fleet.at_targets_rps / fleet.num_serving  # at the peak, of one replica
    spread = scenario.peak_factor if scenario.is_open_loop else 1.0
    steps = None
    if each > 0:
        steps = OwnSteps(
            usd_per_replica_month=usd_per_gpu_hour * per_replica * scenario.hours_per_month,
            requests_per_replica_month=each / spread * scenario.hours_per_month * SECONDS_PER_HOUR,
            mean_over_peak=1 / spread,
            gpus_per_replica=per_replica,
            spare_replicas=fleet.num_spare,
            kinds=fleet.kinds,
            fixed_usd_per_month=scenario.people_usd_per_month if owned else 0.0,
        )
    return FleetUse(
        at_targets_rps=fleet.at_targets_rps,
        capacity_rps=fleet.capacity_rps * fleet.num_serving,
        output_weight=fleet.output_weight,
        busy=busy,
        gpu_w=(tdp or 0.0) * busy,
        power_w=power_w(scenario, tdp, busy),
        steps=steps,
    )
