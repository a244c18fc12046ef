"""Inputs that change only what a deployment costs: no simulation depends on them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.scenario.runtime import EngineRuntime
from planner.scenario.settings import optional_setting, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Money(EngineRuntime):
    """What GPUs, power and a hosted API cost."""

    api_usd_per_mtok_cached_input: float | None = optional_setting(
        "ac",
        "API price, cached input",
        kind="number",
        unit="USD per million tokens",
        group="prices",
        minimum=0,
        maximum=10_000,
        help="Hosted API's price for prompt tokens that it has in its cache. Empty: the median of published offers, or "
        "the price of other input where none names one.",
    )
    api_cached_share: float | None = optional_setting(
        "acs",
        "Input that the API has cached",
        kind="number",
        group="prices",
        minimum=0,
        maximum=1,
        help="Share of prompt tokens that the API bills as cached. Empty: the share that prefix caching saves here.",
    )
    gpu_purchase_usd: float | None = optional_setting(
        "buy",
        "Purchase price per GPU",
        kind="number",
        unit="USD",
        group="prices",
        minimum=0,
        maximum=10_000_000,
        help="Of owned GPUs, with their share of server, network and rack. Empty: nothing is written off. Without a "
        "price per GPU-hour, an hour of an owned GPU is depreciation, power and people.",
    )
    depreciation_years: float = setting(
        4.0,
        "dep",
        "Depreciation",
        unit="years",
        group="prices",
        minimum=0.25,
        maximum=20,
        help="Years over which the purchase is written off, around the clock.",
    )
    resale_share: float = setting(
        0.0,
        "rs",
        "Resale value",
        group="prices",
        minimum=0,
        maximum=1,
        help="Share of the purchase price that is left after those years.",
    )
    power_usd_per_kwh: float = setting(
        0.1,
        "kwh",
        "Price of power",
        unit="USD per kWh",
        group="prices",
        minimum=0,
        maximum=10,
        help="What you pay for a kilowatt-hour.",
    )
    pue: float = setting(
        1.3,
        "pue",
        "PUE",
        group="prices",
        minimum=1,
        maximum=5,
        help="Power usage effectiveness: power of the data centre ÷ power of its servers.",
    )
    server_power_factor: float = setting(
        1.8,
        "spf",
        "Server power ÷ GPU power",
        group="prices",
        minimum=1,
        maximum=10,
        help="CPUs, memory, network and fans come on top of the GPUs. A DGX H100 may draw 10.2 kW, its GPUs 5.6 kW of "
        "it.",
    )
    people_usd_per_month: float = setting(
        0.0,
        "ppl",
        "People who run it",
        unit="USD per month",
        group="prices",
        minimum=0,
        maximum=100_000_000,
        help="Salaries for running owned GPUs, whatever their number.",
    )
