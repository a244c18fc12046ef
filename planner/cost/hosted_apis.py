"""Prices of hosted APIs for the same open model, from the `genai-prices` package (offline data)."""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any

from planner.catalog import get_model, model_names
from planner.errors import require_number
from planner.model import ModelShape
from planner.tables import read_table
from planner.units import counted, format_number

MOST_TIMES_THE_SIZE = 2.0  # up to which another model's price says something about this one's


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOffer:
    """One provider's price for one model, in USD per million tokens; None: no price of its own for cached input."""

    provider: str
    model: str
    usd_per_mtok_input: float
    usd_per_mtok_output: float
    usd_per_mtok_cached_input: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrices:
    """Offers for one model, and their median, which comparisons use.

    `usd_per_mtok_*` are medians over `offers`; `source` names the package, its version and the count. Cached input
    costs as much as other input where no offer names a price for it (None). `is_estimate`: the offers are for another
    model of about this size.
    """

    usd_per_mtok_input: float
    usd_per_mtok_output: float
    offers: tuple[ApiOffer, ...]
    source: str
    usd_per_mtok_cached_input: float | None = None
    is_estimate: bool = False

    def usd_per_request(self, prompt_tokens: float, output_tokens: float, cached_share: float = 0.0) -> float:
        """What a request costs when this share of its prompt tokens is billed as cached. [USD]"""
        require_number("cached_share", cached_share, at_least=0, at_most=1)
        cached = self.usd_per_mtok_input if self.usd_per_mtok_cached_input is None else self.usd_per_mtok_cached_input
        prompt = cached_share * cached + (1 - cached_share) * self.usd_per_mtok_input
        return (prompt_tokens * prompt + output_tokens * self.usd_per_mtok_output) / 1e6


def normalised(model_id: str) -> str:
    """The part of a model id that identifies the weights: no owner, no serving suffix."""
    name = model_id.lower().rsplit("/", 1)[-1].replace("_", "-")
    name = re.sub(r"(\d)p(\d)", r"\1.\2", name)  # Fireworks writes 3p2 for 3.2
    return _dropped().sub("", name).strip("-. ")


@lru_cache(maxsize=1)
def _dropped() -> re.Pattern[str]:
    return re.compile("|".join(row["pattern"] for row in read_table("catalog/api_names.csv")))


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
    given, made = _amount(price.input_mtok), _amount(price.output_mtok)
    if not given or not made:
        return None
    return ApiOffer(
        provider=provider,
        model=model,
        usd_per_mtok_input=given,
        usd_per_mtok_output=made,
        usd_per_mtok_cached_input=_amount(price.cache_read_mtok),
    )


def _amount(price: Any) -> float | None:
    base = getattr(price, "base", price)  # tiered prices: the tier that short prompts pay
    return None if base is None or float(base) < 0 else float(base)


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
    cached = [offer.usd_per_mtok_cached_input for offer in offers if offer.usd_per_mtok_cached_input is not None]
    return ApiPrices(
        usd_per_mtok_input=statistics.median(offer.usd_per_mtok_input for offer in offers),
        usd_per_mtok_output=statistics.median(offer.usd_per_mtok_output for offer in offers),
        usd_per_mtok_cached_input=statistics.median(cached) if cached else None,
        offers=tuple(sorted(offers, key=lambda offer: offer.usd_per_mtok_output)),
        source=f"{'median of ' * (len(offers) > 1)}{counted(len(offers), 'offer')} in genai-prices {version}",
    )


@lru_cache(maxsize=1)
def _priced_sizes() -> tuple[tuple[str, float, float], ...]:
    """Models of the catalog with a hosted price: name, parameters, active parameters."""
    priced = [name for name in model_names() if normalised(name) in _all_offers()]
    shapes = [(name, get_model(name)) for name in priced]
    return tuple((name, float(shape.num_parameters), float(shape.num_active_parameters)) for name, shape in shapes)


def estimated_api_prices(model: ModelShape) -> ApiPrices | None:
    """Hosted prices of the open model that is nearest in size, marked as an estimate.

    Parameters
    ----------
    model : ModelShape
        Whose own price is not known.

    Returns
    -------
    ApiPrices or None
        None where no priced model has between half and twice its parameters, all of them and the active ones. Nearest
        means the least sum of the ratios' logarithms.
    """
    total, active = float(model.num_parameters), float(model.num_active_parameters)
    near = [(abs(math.log(n / total)), abs(math.log(a / active)), name, n) for name, n, a in _priced_sizes()]
    near = [row for row in near if max(row[:2]) <= math.log(MOST_TIMES_THE_SIZE)]
    if not near:
        return None
    *_, name, size = min(near, key=lambda row: (row[0] + row[1], row[2]))
    known = api_prices(name)
    assert known is not None
    return dataclasses.replace(
        known,
        source=f"estimate: no price is known for this model; {name.rsplit('/', 1)[-1]} is the nearest in size "
        f"({format_number(size / 1e9)} billion parameters), {known.source}",
        is_estimate=True,
    )
