"""What an hour of an owned GPU costs, and the power that GPUs draw."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import require_number
from planner.scenario import Scenario

MONTHS_PER_YEAR = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedHour:
    """One hour of one owned GPU by what it pays for. [USD]"""

    depreciation_usd: float
    power_usd: float
    people_usd: float

    @property
    def usd_per_hour(self) -> float:
        """All of it. [USD/h]"""
        return self.depreciation_usd + self.power_usd + self.people_usd


def owned_hour(scenario: Scenario, tdp_w: float | None, load: float, num_gpus: int) -> OwnedHour:
    """The hour of an owned GPU. Depreciation and people are paid around the clock, whatever hours it serves.

    Parameters
    ----------
    scenario : Scenario
        Purchase price (none: no depreciation), depreciation, power and people.
    tdp_w : float or None
        Power of the GPU at full load; None: unknown, no power is counted. [W]
    load : float
        Share of the time in which the GPU works, 0 to 1.
    num_gpus : int
        GPUs that the people look after.
    """
    paid = scenario.hours_per_month
    lost = (scenario.gpu_purchase_usd or 0.0) * (1 - scenario.resale_share)
    return OwnedHour(
        depreciation_usd=lost / (scenario.depreciation_years * MONTHS_PER_YEAR) / paid,
        power_usd=power_w(scenario, tdp_w, load) / 1000 * scenario.power_usd_per_kwh,
        people_usd=scenario.people_usd_per_month / max(1, num_gpus) / paid,
    )


def power_w(scenario: Scenario, tdp_w: float | None, load: float) -> float:
    """Power that a data centre draws for one GPU: TDP × load × server ÷ GPU power × PUE. [W]

    An estimate: an idle GPU draws some of its TDP, and a busy one does not always reach it.
    """
    require_number("load", load, at_least=0, at_most=1)
    return (tdp_w or 0.0) * load * scenario.server_power_factor * scenario.pue
