"""What a search hands back: real plans as rows, and how it came to them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from planner.answer.advice_on_results import hosted_instead
from planner.answer.confidence import own_runs
from planner.answer.outcome import Plan
from planner.answer.verdict import sure_in_words
from planner.cost import CostPlan
from planner.scenario import Scenario

MEETS, MISSES = "meets targets", "misses targets"
#: what kernel times rest on, the surest first, as `planner.step_time.EVIDENCE`
EVIDENCE = ("kernels measured", "architecture measured", "kernels not measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One deployment with the figures of its own plan.

    `status` is "meets targets", "misses targets" or "does not start"; figures that do not exist are None. `state` is
    that of the plan's verdict: "sure", "likely", "unsure" or "miss". `scenario` opens it as a plan. `ttft_s` and
    `tpot_s` are at the share of requests asked for; `probability` is the chance that the targets hold, given our error
    (NaN where that is unknown); `evidence` says what its kernel times rest on, `binding` which reason sets its number
    of GPUs, `checkpoint` where its weights come from ("" = the model's own), `recommended_by` the vendor's page that
    recommends such a replica for the model, `api_note` that a hosted API is cheaper, or probably is at so few requests.
    """

    scenario: Scenario
    status: str
    state: str = "miss"
    reason: str = ""
    num_replicas: int | None = None
    num_gpus: int | None = None
    usd_per_gpu_hour: float | None = None
    price_source: str = ""
    usd_per_month: float | None = None
    usd_per_million_tokens: float | None = None
    slo_rate_rps: float | None = None
    capacity_rps: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    attainment: float | None = None
    probability: float = math.nan
    evidence: str = ""
    binding: str = ""
    checkpoint: str = ""
    recommended_by: str = ""
    api_note: str = ""

    @property
    def key(self) -> tuple[float, int]:
        """What candidates are ranked by: USD a month, then GPUs, which alone tell owned GPUs apart."""
        if self.usd_per_month is None or self.num_gpus is None:
            return math.inf, 0
        return round(self.usd_per_month, 6), self.num_gpus

    @property
    def chance_in_words(self) -> str:
        """How sure the row is; empty where that is unknown."""
        return "" if math.isnan(self.probability) else sure_in_words(self.probability)

    @property
    def rests_on(self) -> str:
        """What its speed rests on, in words: the user's own runs of this deployment, or `evidence`."""
        return own_runs(self.scenario) or self.evidence


def candidate_of(done: Plan, *, evidence: str = "", checkpoint: str = "") -> Candidate:
    """The row of a plan."""
    level = done.scenario.service_level
    if done.metrics is None or done.cost is None or done.curve is None:
        return Candidate(
            scenario=done.scenario,
            status="does not start",
            reason=done.memory.refusal,
            evidence=evidence,
            checkpoint=checkpoint,
        )
    return Candidate(
        scenario=done.scenario,
        status=MEETS if done.slo_met else MISSES,
        state=done.verdict.state if done.verdict is not None else "miss",
        reason=done.reasons[0] if done.reasons else "",
        num_replicas=done.num_replicas,
        num_gpus=done.num_gpus,
        slo_rate_rps=done.curve.slo_rate_rps,
        capacity_rps=done.curve.capacity_rps,
        ttft_s=done.metrics.ttft_s.at(level.quantile),
        tpot_s=done.metrics.tpot_s.at(level.quantile),
        attainment=done.metrics.slo_attainment,
        probability=done.slo_probability,
        evidence=evidence,
        binding=max(done.chain, key=lambda link: link.gpus).reason if done.chain else "",
        checkpoint=checkpoint,
        **costs_of(done.cost),
    )


def cheapest_as_sure(rows: Iterable[Candidate], share: float) -> Candidate | None:
    """The first row that meets the targets with at least this chance; None where none does."""
    return next((row for row in rows if row.status == MEETS and row.probability >= share), None)


def costs_of(cost: CostPlan) -> dict[str, Any]:
    """The fields of a row that follow from its bill."""
    hosted = hosted_instead(cost)
    return {
        "usd_per_gpu_hour": cost.usd_per_gpu_hour,
        "price_source": cost.price_source,
        "usd_per_month": cost.usd_per_month,
        "usd_per_million_tokens": cost.usd_per_million_tokens,
        "api_note": hosted.text if hosted is not None else "",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The rows of a search, the cheapest that meets the targets first, and what became of the other candidates.

    `finished` is False in what a search shows on its way. `left_out` says which GPUs were not considered, and why;
    `advice` what vendors recommend for the model, and why the cheapest costs less.
    """

    candidates: tuple[Candidate, ...]
    candidates_considered: int
    candidates_simulated: int
    rejected_by_memory: int
    rejected_when_idle: int
    pruned_by_bound: int
    over_the_limit: int
    wall_s: float
    summary: str
    left_out: str = ""
    finished: bool = True
    advice: str = ""

    @property
    def best(self) -> Candidate | None:
        """The cheapest candidate that meets the targets; None if none does."""
        first = self.candidates[0] if self.candidates else None
        return first if first is not None and first.status == MEETS else None
