"""The price of a GPU-hour, the requests that the service finishes, and the bill for them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from planner.catalog import PRICE_KINDS, PriceOffer, median_offer, price_offers
from planner.cost.bill import CostPlan, cost_plan
from planner.cost.hosted_apis import ApiPrices, api_prices
from planner.scenario import CUSTOM, Scenario
from planner.service import Fleet, PolicyOutcome
from planner.units import SECONDS_PER_HOUR

DEFAULT_PRICE_USD_PER_HOUR = 2.0
OTHER_KINDS = ("ondemand", "spot", "reserved", "serverless")  # in the order in which they stand in for another

NEGLIGIBLE = 0.01  # share of lost requests up to which the finished ones count as typical


def gpu_price(scenario: Scenario) -> tuple[float, str]:
    """Price of one GPU-hour and where it comes from. [USD/h]

    The user's own price; else the published offer in the middle of its kind. Owned GPUs cost nothing more. Where nobody
    offers the GPU on terms of that kind, another kind stands in, and the source says so.
    """
    if scenario.usd_per_gpu_hour is not None:
        return scenario.usd_per_gpu_hour, "entered by hand"
    if scenario.price_kind == "owned":
        return 0.0, "owned: no price per hour entered"
    offer = offer_of(scenario)
    if offer is not None:
        return offer.usd_per_hour, _said(scenario.gpu, offer)
    wanted = PRICE_KINDS[scenario.price_kind]
    others = () if scenario.gpu == CUSTOM else (median_offer(scenario.gpu, kind) for kind in OTHER_KINDS)
    for other in others:
        if other is not None:
            return other.usd_per_hour, f"no price {wanted} known; {_said(scenario.gpu, other)}"
    return DEFAULT_PRICE_USD_PER_HOUR, "no price known: 2 USD assumed, enter your own"


def offer_of(scenario: Scenario) -> PriceOffer | None:
    """The published offer that prices the scenario's GPU; None where its kind has none, or the price is the user's."""
    if scenario.usd_per_gpu_hour is not None or scenario.gpu == CUSTOM or scenario.price_kind not in PRICE_KINDS:
        return None
    return median_offer(scenario.gpu, scenario.price_kind)


def _said(gpu: str, offer: PriceOffer) -> str:
    count = len(price_offers(gpu, offer.kind))
    middle = f"the middle of {count} offers; " if count > 1 else ""
    return f"{offer.named} ({middle}{offer.source})"


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


def served(scenario: Scenario, fleet: Fleet, prompt: float, output: float) -> Served:
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


def price_plan(scenario: Scenario, model_name: str, num_gpus: int, work: Served) -> CostPlan:
    """The bill for the requests that finish."""
    price, source = gpu_price(scenario)
    known = api_prices(model_name)
    own_in, own_out = scenario.api_usd_per_mtok_input, scenario.api_usd_per_mtok_output
    api = known
    if own_in is not None or own_out is not None:
        api = ApiPrices(
            usd_per_mtok_input=own_in if own_in is not None else (known.usd_per_mtok_input if known else 0.0),
            usd_per_mtok_output=own_out if own_out is not None else (known.usd_per_mtok_output if known else 0.0),
            offers=known.offers if known else (),
            source="entered by hand",
        )
    return cost_plan(
        num_gpus=num_gpus,
        usd_per_gpu_hour=price,
        price_source=source,
        hours_per_month=scenario.hours_per_month,
        mean_rate_rps=work.mean_rps,
        peak_rate_rps=work.peak_rps,
        mean_prompt_tokens=work.mean_prompt_tokens,
        mean_output_tokens=work.mean_output_tokens,
        api=api,
        offered_rate_rps=scenario.mean_rate_rps if scenario.is_open_loop else None,
    )
