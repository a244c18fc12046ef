"""Cost: what the GPUs cost per hour, month and million tokens, and when a hosted API is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planner.cost.break_even import BreakEven, OwnSteps, break_even
from planner.cost.hosted_apis import ApiPrices
from planner.cost.owned import OwnedHour
from planner.cost.token_prices import LoadPrice, load_price
from planner.errors import require_number
from planner.units import SECONDS_PER_HOUR

AT_MEAN, AT_TARGETS, AT_FULL = "over the month", "busy to the targets' limit", "at full throughput"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUse:
    """What a fleet can do and how it is used, as far as its price depends on it.

    `at_targets_rps` is the most that the serving replicas finish within the targets, 0 when they miss them at any rate;
    `output_weight` the GPU time of an output token ÷ that of a prompt token; `busy` the share of time in which the GPUs
    work at the month's mean rate; `power_w` what the data centre draws for one GPU then, `gpu_w` what the GPU does.
    """

    at_targets_rps: float
    capacity_rps: float
    output_weight: float
    busy: float
    gpu_w: float
    power_w: float
    steps: OwnSteps | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """What a plan costs. Token prices divide the whole bill by the tokens finished in the paid hours.

    `usd_per_million_tokens` counts prompt and output tokens alike; `usd_per_million_output_tokens` puts the
    whole bill on the output. `*_at_peak` assume the peak rate around the clock, the best case. `prices` deal the bill
    to prompt and output tokens, over the month, at the targets' limit and at full throughput.
    `requests_per_month` finish, out of `offered_requests_per_month`; prices are infinite when none finishes.
    `api_*` are None without an API price, the monthly ones also when nothing finishes.
    `own_steps` is the bill of a fleet that grows with the volume (None: no number of replicas meets the targets) and
    `break_even` where it meets the API's; `break_even_requests_per_month` is the volume below which the API is cheaper,
    None where it is cheaper at every volume. `owned` splits the hour of owned GPUs. `gpu_joules_per_token` (GPUs alone)
    and `kwh_per_month` (with servers and PUE) are estimates from the TDP and the load.
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
    usd_per_user_month: float | None
    prices: tuple[LoadPrice, ...]
    owned: OwnedHour | None
    gpu_joules_per_token: float | None
    kwh_per_month: float | None
    api_usd_per_mtok_input: float | None
    api_usd_per_mtok_cached_input: float | None
    api_usd_per_mtok_output: float | None
    api_cached_share: float
    api_usd_per_month: float | None
    api_usd_per_million_tokens: float | None
    api_usd_per_request: float | None
    api_source: str
    api_is_estimate: bool
    own_steps: OwnSteps | None
    break_even: BreakEven | None
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
    api_cached_share: float = 0.0,
    offered_rate_rps: float | None = None,
    users: int | None = None,
    owned: OwnedHour | None = None,
    use: FleetUse | None = None,
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
    api_cached_share : float
        Share of prompt tokens that the API bills as cached.
    offered_rate_rps : float, optional
        Mean rate that clients ask for, where not all of it finishes. [req/s]
    users : int, optional
        Users who share the bill, where the traffic is given by users.
    owned : OwnedHour, optional
        What the hour of a GPU pays for, where the GPUs are owned.
    use : FleetUse, optional
        What the fleet can do; without it there is no break-even and no price at other loads.

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
    requests = mean_rate_rps * paid_s
    tokens_per_request = mean_prompt_tokens + mean_output_tokens
    per_request_api = api.usd_per_request(mean_prompt_tokens, mean_output_tokens, api_cached_share) if api else None
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
        usd_per_million_tokens_at_peak=_each(per_month, peak_rate_rps * paid_s * tokens_per_request) * 1e6,
        usd_per_thousand_requests=_each(per_month, requests) * 1000,
        usd_per_user_month=per_month / users if users else None,
        prices=_at_loads(per_hour, mean_rate_rps, mean_prompt_tokens, mean_output_tokens, use),
        owned=owned,
        **_energy(use, num_gpus, mean_rate_rps * tokens_per_request, hours_per_month),
        **_hosted(api, api_cached_share, per_request_api, requests, tokens_per_request),
        **_compared(use, per_request_api),
    )


def _energy(use: FleetUse | None, num_gpus: int, tokens_per_s: float, hours_per_month: float) -> dict[str, Any]:
    """What the fleet draws, where its use is known."""
    joules = _each(num_gpus * use.gpu_w, tokens_per_s) if use is not None and use.gpu_w else None
    kwh = num_gpus * use.power_w / 1000 * hours_per_month if use is not None and use.power_w else None
    return {"gpu_joules_per_token": joules, "kwh_per_month": kwh}


def _hosted(
    api: ApiPrices | None, cached_share: float, per_request: float | None, requests: float, tokens_per_request: float
) -> dict[str, Any]:
    """The API's prices, and its bill for the same requests."""
    return {
        "api_usd_per_mtok_input": api.usd_per_mtok_input if api else None,
        "api_usd_per_mtok_cached_input": api.usd_per_mtok_cached_input if api else None,
        "api_usd_per_mtok_output": api.usd_per_mtok_output if api else None,
        "api_cached_share": cached_share,
        "api_usd_per_month": per_request * requests if per_request is not None and requests > 0 else None,
        "api_usd_per_million_tokens": per_request / tokens_per_request * 1e6 if per_request is not None else None,
        "api_usd_per_request": per_request,
        "api_source": api.source if api else "no hosted price known for this model",
        "api_is_estimate": api.is_estimate if api else False,
    }


def _compared(use: FleetUse | None, per_request_api: float | None) -> dict[str, Any]:
    """The bill of a fleet that grows with the volume, and where it meets the API's."""
    steps = use.steps if use is not None else None
    even = break_even(steps, per_request_api) if steps is not None and per_request_api is not None else None
    first = even.first_requests_per_month if even is not None else None
    return {"own_steps": steps, "break_even": even, "break_even_requests_per_month": first}


def _at_loads(
    usd_per_hour: float, mean_rate_rps: float, prompt_tokens: float, output_tokens: float, use: FleetUse | None
) -> tuple[LoadPrice, ...]:
    """Prices at the month's load, at the targets' limit and at full throughput, where the fleet's use is known."""
    if use is None:
        return ()
    loads = ((AT_MEAN, mean_rate_rps), (AT_TARGETS, use.at_targets_rps), (AT_FULL, use.capacity_rps))
    return tuple(
        load_price(
            name,
            rate,
            usd_per_hour=usd_per_hour,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            output_weight=use.output_weight,
        )
        for name, rate in loads
    )


def _each(money: float, count: float) -> float:
    return money / count if count > 0 else math.inf
