"""Cost: what the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper."""

from __future__ import annotations

from dataclasses import dataclass

from planner.api_prices import ApiPrices
from planner.errors import require_number
from planner.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

SECONDS_PER_MONTH = HOURS_PER_MONTH * SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """Money of a plan. Token prices divide the whole bill by the tokens of the month.

    `usd_per_million_tokens` counts input and output alike; `usd_per_million_output_tokens` puts the
    whole bill on the output. `*_at_peak` assume that the peak rate holds all month, the best case.
    `api_*` are None when no API price is known. `break_even_requests_per_month` is the volume below
    which the API is the cheaper choice.
    """

    usd_per_gpu_hour: float
    price_source: str
    num_gpus: int
    usd_per_hour: float
    usd_per_month: float
    requests_per_month: float
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
        """Whether the hosted API would cost less at this volume."""
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
) -> CostPlan:
    """Work out the bill of a plan and compare it with a hosted API.

    Parameters
    ----------
    num_gpus : int
        GPUs that are paid for.
    usd_per_gpu_hour : float
        Price of one. [USD/h]
    price_source : str
        Where that price comes from.
    hours_per_month : float
        Hours that the GPUs are paid. [h]
    mean_rate_rps, peak_rate_rps : float
        Requests per second averaged over the month and at the peak. [req/s]
    mean_prompt_tokens, mean_output_tokens : float
        Per request. [tokens]
    api : ApiPrices, optional
        What the same tokens cost from a hosted API.

    Returns
    -------
    CostPlan

    Raises
    ------
    InvalidInput
        When a price, rate or count is negative or not finite.
    """
    require_number("usd_per_gpu_hour", usd_per_gpu_hour, at_least=0)
    require_number("mean_rate_rps", mean_rate_rps, above=0)
    require_number("hours_per_month", hours_per_month, above=0)
    per_hour = num_gpus * usd_per_gpu_hour
    per_month = per_hour * hours_per_month
    requests = mean_rate_rps * SECONDS_PER_MONTH
    peak_requests = peak_rate_rps * SECONDS_PER_MONTH
    tokens_per_request = mean_prompt_tokens + mean_output_tokens
    per_request_api = None
    if api is not None:
        per_request_api = (
            mean_prompt_tokens * api.usd_per_mtok_input + mean_output_tokens * api.usd_per_mtok_output
        ) / 1e6
    return CostPlan(
        usd_per_gpu_hour=usd_per_gpu_hour,
        price_source=price_source,
        num_gpus=num_gpus,
        usd_per_hour=per_hour,
        usd_per_month=per_month,
        requests_per_month=requests,
        usd_per_million_tokens=per_month / (requests * tokens_per_request) * 1e6,
        usd_per_million_output_tokens=per_month / (requests * mean_output_tokens) * 1e6,
        usd_per_million_tokens_at_peak=per_month / (peak_requests * tokens_per_request) * 1e6,
        usd_per_thousand_requests=per_month / requests * 1000,
        api_usd_per_mtok_input=api.usd_per_mtok_input if api else None,
        api_usd_per_mtok_output=api.usd_per_mtok_output if api else None,
        api_usd_per_month=per_request_api * requests if per_request_api is not None else None,
        api_usd_per_million_tokens=(
            per_request_api / tokens_per_request * 1e6 if per_request_api is not None else None
        ),
        api_source=api.source if api else "no hosted price known for this model",
        break_even_requests_per_month=per_month / per_request_api if per_request_api else None,
    )
