"""Cost: what the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.cost.hosted_apis import ApiPrices
from planner.errors import require_number
from planner.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """What a plan costs. Token prices divide the whole bill by the tokens finished in the paid hours.

    `usd_per_million_tokens` counts prompt and output tokens alike; `usd_per_million_output_tokens` puts the
    whole bill on the output. `*_at_peak` assume the peak rate around the clock, the best case.
    `requests_per_month` finish, out of `offered_requests_per_month`; prices are infinite when none finishes.
    `api_*` are None without an API price, the monthly ones also when nothing finishes.
    `break_even_requests_per_month` is the volume below which the API is cheaper.
    """

    usd_per_gpu_hour: float
    price_source: str
    num_gpus: int
    usd_per_hour: float
    usd_per_month: float
    requests_per_month: float
    offered_requests_per_month: float
    tokens_per_request: float
    usd_per_million_tokens: float
    usd_per_million_output_tokens: float
    usd_per_million_tokens_at_peak: float
    usd_per_thousand_requests: float
    api_usd_per_mtok_input: float | None
    api_usd_per_mtok_output: float | None
    api_usd_per_month: float | None
    api_usd_per_million_tokens: float | None
    api_source: str
    break_even_requests_per_month: float | None

    @property
    def api_is_cheaper(self) -> bool:
        """Whether a hosted API costs less at this volume."""
        return self.api_usd_per_month is not None and self.api_usd_per_month < self.usd_per_month


def cost_plan(
    *,
    num_gpus: int,
    usd_per_gpu_hour: float,
    price_source: str,
    hours_per_month: float,
    mean_rate_rps: float,
    peak_rate_rps: float,
    mean_prompt_tokens: float,
    mean_output_tokens: float,
    api: ApiPrices | None = None,
    offered_rate_rps: float | None = None,
) -> CostPlan:
    """The bill of a plan, compared with a hosted API.

    Parameters
    ----------
    num_gpus : int
        GPUs that are paid for.
    usd_per_gpu_hour : float
        Price of one GPU. [USD/h]
    price_source : str
        Where that price comes from.
    hours_per_month : float
        Hours a month in which the GPUs are paid for and serve. [h]
    mean_rate_rps, peak_rate_rps : float
        Requests finished per second, averaged over those hours and at the peak. [req/s]
    mean_prompt_tokens, mean_output_tokens : float
        Per finished request. [tokens]
    api : ApiPrices, optional
        Hosted API prices for the same model.
    offered_rate_rps : float, optional
        Mean rate that clients ask for, where not all of it finishes. [req/s]

    Returns
    -------
    CostPlan

    Raises
    ------
    InvalidInput
        When a price, rate or count is negative or not finite.
    """
    require_number("usd_per_gpu_hour", usd_per_gpu_hour, at_least=0)
    require_number("mean_rate_rps", mean_rate_rps, at_least=0)
    require_number("hours_per_month", hours_per_month, above=0)
    per_hour = num_gpus * usd_per_gpu_hour
    per_month = per_hour * hours_per_month
    paid_s = hours_per_month * SECONDS_PER_HOUR
    requests, peak_requests = mean_rate_rps * paid_s, peak_rate_rps * paid_s
    tokens_per_request = mean_prompt_tokens + mean_output_tokens
    per_request_api = None
    if api is not None:
        per_request_api = (
            mean_prompt_tokens * api.usd_per_mtok_input + mean_output_tokens * api.usd_per_mtok_output
        ) / 1e6
    compared = per_request_api is not None and requests > 0
    return CostPlan(
        usd_per_gpu_hour=usd_per_gpu_hour,
        price_source=price_source,
        num_gpus=num_gpus,
        usd_per_hour=per_hour,
        usd_per_month=per_month,
        requests_per_month=requests,
        offered_requests_per_month=requests if offered_rate_rps is None else offered_rate_rps * paid_s,
        tokens_per_request=tokens_per_request,
        usd_per_million_tokens=_each(per_month, requests * tokens_per_request) * 1e6,
        usd_per_million_output_tokens=_each(per_month, requests * mean_output_tokens) * 1e6,
        usd_per_million_tokens_at_peak=_each(per_month, peak_requests * tokens_per_request) * 1e6,
        usd_per_thousand_requests=_each(per_month, requests) * 1000,
        api_usd_per_mtok_input=api.usd_per_mtok_input if api else None,
        api_usd_per_mtok_output=api.usd_per_mtok_output if api else None,
        api_usd_per_month=per_request_api * requests if per_request_api is not None and compared else None,
        api_usd_per_million_tokens=(
            per_request_api / tokens_per_request * 1e6 if per_request_api is not None else None
        ),
        api_source=api.source if api else "no hosted price known for this model",
        break_even_requests_per_month=per_month / per_request_api if per_request_api and compared else None,
    )


def _each(money: float, count: float) -> float:
    return money / count if count > 0 else math.inf
