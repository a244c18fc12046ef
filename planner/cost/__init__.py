"""What the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper.

In: the GPUs of a plan, what they serve, prices. Out: a `CostPlan`.
"""

from planner.cost.bill import CostPlan, cost_plan
from planner.cost.hosted_apis import ApiPrices, api_prices, normalised
from planner.cost.pricing import gpu_price, offer_of, price_plan, price_policies, served

__all__ = [
    "ApiPrices",
    "CostPlan",
    "api_prices",
    "cost_plan",
    "gpu_price",
    "normalised",
    "offer_of",
    "price_plan",
    "price_policies",
    "served",
]
