"""Prices of hosted APIs for the same open model, from the `genai-prices` package (offline data)."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any

from planner.units import counted

_DROPPED = re.compile(
    r"(^@cf/|-instruct|-instant|-versatile|-turbo|-chat|-hf|-it|-fp8|-fp4|-nvfp4|-awq|-gptq|-dynamic|-maas|-tee"
    r"|-v1:0|-1:0|:free|-fast|-lite|-base|-bf16|-\d{4}$|meta-|quantized|\.w\d+a\d+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOffer:
    """One provider's price for one model, in USD per million tokens."""

    provider: str
    model: str
    usd_per_mtok_input: float
    usd_per_mtok_output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrices:
    """Offers for one model, and their median, which comparisons use.

    `usd_per_mtok_input` and `usd_per_mtok_output` are medians over `offers`; `source` names the
    package, its version and the count.
    """

    usd_per_mtok_input: float
    usd_per_mtok_output: float
    offers: tuple[ApiOffer, ...]
    source: str


def normalised(model_id: str) -> str:
    """The part of a model id that identifies the weights: no owner, no serving suffix."""
    name = model_id.lower().rsplit("/", 1)[-1].replace("_", "-")
    name = name.split("accounts-fireworks-models-")[-1].removeprefix("databricks-").removeprefix("openai.")
    name = re.sub(r"(\d)p(\d)", r"\1.\2", name).removeprefix("qwen.")
    return _DROPPED.sub("", name).strip("-. ")


@lru_cache(maxsize=1)
def _all_offers() -> dict[str, tuple[ApiOffer, ...]]:
    from genai_prices.data import providers  # noqa: PLC0415 - 0.2 s that only the cost stage needs

    found: dict[str, list[ApiOffer]] = {}
    for provider in providers:
        for model in provider.models:
            price = _current(model.prices)
            offer = _offer(provider.id, model.id, price)
            if offer is not None:
                found.setdefault(normalised(model.id), []).append(offer)
    return {name: tuple(offers) for name, offers in found.items()}


def _current(prices: Any) -> Any:
    # A list is a price history: the entry without a start date, or the one that starts last, is today's.
    return prices[-1].prices if isinstance(prices, list) else prices


def _offer(provider: str, model: str, price: Any) -> ApiOffer | None:
    amounts = []
    for side in (price.input_mtok, price.output_mtok):
        side = getattr(side, "base", side)  # tiered prices: the tier that short prompts pay
        if side is None or float(side) <= 0:
            return None
        amounts.append(float(side))
    return ApiOffer(provider=provider, model=model, usd_per_mtok_input=amounts[0], usd_per_mtok_output=amounts[1])


def api_prices(model_id: str) -> ApiPrices | None:
    """Hosted API prices for a model.

    Parameters
    ----------
    model_id : str
        Hub id or plain name; owner and suffixes such as -Instruct or -FP8 do not matter.

    Returns
    -------
    ApiPrices or None
        None when no listed provider offers the model.
    """
    offers = _all_offers().get(normalised(model_id))
    if not offers:
        return None
    version = metadata.version("genai-prices")
    return ApiPrices(
        usd_per_mtok_input=statistics.median(offer.usd_per_mtok_input for offer in offers),
        usd_per_mtok_output=statistics.median(offer.usd_per_mtok_output for offer in offers),
        offers=tuple(sorted(offers, key=lambda offer: offer.usd_per_mtok_output)),
        source=f"{'median of ' * (len(offers) > 1)}{counted(len(offers), 'offer')} in genai-prices {version}",
    )
