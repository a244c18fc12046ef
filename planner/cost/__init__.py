"""What the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper.

In: the GPUs of a plan, what they serve, prices. Out: a `CostPlan`.
"""

from planner.cost.bill import CostPlan, FleetUse
from planner.cost.break_even import BreakEven, CostMap, OwnSteps, break_even, cost_map
from planner.cost.growth import Growth, Month, Order, growth
from planner.cost.hosted_apis import ApiPrices, normalised
from planner.cost.owned import OwnedHour, owned_hour
from planner.cost.pricing import PricedFleet, Served, gpu_price, offer_of, price_gap, price_plan, price_policies, served
from planner.cost.token_prices import LoadPrice, output_weight

__all__ = [
    "ApiPrices",
    "BreakEven",
    "CostMap",
    "CostPlan",
    "FleetUse",
    "Growth",
    "LoadPrice",
    "Month",
    "Order",
    "OwnSteps",
    "OwnedHour",
    "PricedFleet",
    "Served",
    "break_even",
    "cost_map",
    "gpu_price",
    "growth",
    "normalised",
    "offer_of",
    "output_weight",
    "owned_hour",
    "price_gap",
    "price_plan",
    "price_policies",
    "served",
]
