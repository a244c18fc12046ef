"""Inputs of the day and of the months to come; the plan itself is made for the peak and does not depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.scenario.money import Money
from planner.scenario.settings import optional_setting, setting

DAY_SHAPES = ("office", "two_peaks", "night_batch", "flat", "drawn")
HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(Money):
    """How the load runs over 24 hours and grows over months, and how fast a replica starts."""

    day_shape: str = setting(
        "two_peaks",
        "day",
        "Load over the day",
        group="time",
        choices=DAY_SHAPES,
        help="The busiest hour has the peak rate. The other shapes are stretched so that the mean is the peak ÷ the "
        "peak factor; a flat day stays at the peak.",
    )
    day_hours: str = setting(
        "",
        "hrs",
        "Hours of the day",
        group="time",
        help="24 whole percentages of the peak with dots between them, from midnight on, for a drawn day.",
    )
    startup_s: float | None = optional_setting(
        "su",
        "Start of a replica",
        kind="number",
        unit="s",
        group="time",
        minimum=0,
        maximum=36_000,
        help="From starting a replica until it serves. Empty: an estimate, the engine's own start plus weights ÷ disk "
        "speed.",
    )
    disk_gb_s: float = setting(
        1.0,
        "disk",
        "Disk speed",
        unit="GB/s",
        group="time",
        minimum=0.01,
        maximum=1000,
        help="At which a replica reads its weights. From a network SSD vLLM's own loader read 15 GB in 48 s (0.31 "
        "GB/s), a streaming loader in 14 s (1.05 GB/s): NVIDIA Run:ai Model Streamer, 2025.",
    )
    autoscale_target: float | None = optional_setting(
        "ast",
        "Requests in flight per replica",
        kind="number",
        group="time",
        minimum=0.1,
        maximum=100_000,
        help="The autoscaler runs as many replicas as requests in flight ÷ this. Empty: what one replica holds at 80 % "
        "of the rate at which it meets the targets.",
    )
    cooldown_s: float = setting(
        300.0,
        "cd",
        "Wait before fewer replicas",
        unit="s",
        group="time",
        minimum=0,
        maximum=36_000,
        help="The autoscaler keeps as many replicas as it wanted at any moment of the last so many seconds; 300 s is "
        "the default of Kubernetes.",
    )
    growth_per_month: float = setting(
        0.05,
        "gr",
        "Growth of traffic per month",
        group="time",
        minimum=-0.5,
        maximum=1,
        help="0.05 is 5 % more each month; at most 1, twice as much each month.",
    )
    lead_time_weeks: float = setting(
        8.0,
        "lead",
        "Lead time of GPUs",
        unit="weeks",
        group="time",
        minimum=0,
        maximum=200,
        help="From ordering GPUs until they serve.",
    )
    price_trend_per_year: float = setting(
        0.0,
        "pt",
        "Change of the GPU price per year",
        group="time",
        minimum=-0.9,
        maximum=10,
        help="-0.2 means that GPUs ordered a year from now cost 20 % less.",
    )
