"""What the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper.

In: the GPUs of a plan, what they serve, prices. Out: a `CostPlan`.
"""

from planner.cost.bill import AT_FULL, AT_MEAN, AT_TARGETS, CostPlan, FleetUse, cost_plan
from planner.cost.break_even import BreakEven, CostMap, OwnSteps, break_even, cost_map
from planner.cost.growth import Growth, Month, Order, growth
from planner.cost.hosted_apis import ApiPrices, api_prices, estimated_api_prices, normalised
from planner.cost.owned import OwnedHour, owned_hour
from planner.cost.pricing import PricedFleet, gpu_price, offer_of, price_plan, price_policies, served
from planner.cost.token_prices import LoadPrice, output_weight

__all__ = [
    "AT_FULL",
    "AT_MEAN",
    "AT_TARGETS",
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
    "api_prices",
    "break_even",
    "cost_map",
    "cost_plan",
    "estimated_api_prices",
    "gpu_price",
    "growth",
    "normalised",
    "offer_of",
    "output_weight",
    "owned_hour",
    "price_plan",
    "price_policies",
    "served",
]
