"""Published prices of a GPU-hour, one kind at a time (gpu_prices.csv)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.catalog.gpus import get_gpu
from planner.tables import read_table

#: kinds of published price, in words
PRICE_KINDS: Mapping[str, str] = {"ondemand": "on demand", "reserved": "reserved", "spot": "spot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOffer:
    """What one provider asks for one GPU. [USD per GPU-hour]

    `kind` is ondemand, reserved, spot or serverless, `date` the day on which it was read ("" where that is unknown).
    """

    gpu: str
    usd_per_hour: float
    kind: str
    provider: str
    date: str
    source: str

    @property
    def named(self) -> str:
        """Provider, kind and date in one phrase: "Lambda 8x, on demand, 2026-09-20"."""
        kind = PRICE_KINDS.get(self.kind, self.kind)
        return f"{self.provider}, {kind}, {self.date or 'undated'}"


@lru_cache(maxsize=1)
def _offers() -> dict[str, tuple[PriceOffer, ...]]:
    found: dict[str, list[PriceOffer]] = {}
    for row in read_table("catalog/gpu_prices.csv"):
        offer = PriceOffer(
            gpu=row["gpu"],
            usd_per_hour=float(row["usd_per_hour"]),
            kind=row["kind"],
            provider=row["provider"],
            date=row["date"],
            source=row["source"],
        )
        found.setdefault(offer.gpu, []).append(offer)
    return {name: tuple(sorted(offers, key=lambda offer: offer.usd_per_hour)) for name, offers in found.items()}


def price_offers(gpu: str, kind: str | None = None) -> tuple[PriceOffer, ...]:
    """Offers for a GPU, the cheapest first.

    Parameters
    ----------
    gpu : str
        As `get_gpu` takes it; raises as that does.
    kind : str, optional
        A key of `PRICE_KINDS`; None: offers of every kind.
    """
    offers = _offers().get(get_gpu(gpu).name, ())
    return tuple(offer for offer in offers if kind is None or offer.kind == kind)


def median_offer(gpu: str, kind: str) -> PriceOffer | None:
    """The offer in the middle of those of one kind, the cheaper of two; None where nobody offers the GPU so.

    An offer and no average, so that a plan can name who asks for that price, and when.
    """
    offers = price_offers(gpu, kind)
    return offers[(len(offers) - 1) // 2] if offers else None
