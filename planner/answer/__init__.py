"""The answer: `plan(scenario)` runs every stage; headline, reasons, findings and confidence are made from its numbers.

In: a Scenario. Out: a `Plan`; `recommend` searches for the cheapest one; `report` writes it down.
"""

from planner.answer.confidence import BAND_OF, EVIDENCE_WORDS, Band
from planner.answer.kernels import KernelNote, kernel_note, nearest_native
from planner.answer.lab import BURST_FITS, BURST_REQUESTS, OWN_ENGINE, trace_steps
from planner.answer.outcome import (
    ChainLink,
    Plan,
    Reached,
    chance_with_replicas,
    fit_on_rank,
    offered_rps,
    reached,
    run_at_once,
    run_on_rank,
    serving_replicas,
    typical_step,
)
from planner.answer.planning import plan, replica_of, size
from planner.answer.pricing import reprice
from planner.answer.recheck import changed_verdict
from planner.answer.report import plan_html, plan_text
from planner.answer.search import Change, Search, recommend, what_would_change
from planner.answer.times import (
    DayCost,
    OverTime,
    Simulated,
    StartUp,
    day_sentence,
    growth_sentence,
    outage_sentence,
    over_time,
    running,
    simulate_time,
    time_text,
)
from planner.answer.wording import meeting

__all__ = [
    "BAND_OF",
    "BURST_FITS",
    "BURST_REQUESTS",
    "EVIDENCE_WORDS",
    "OWN_ENGINE",
    "Band",
    "ChainLink",
    "Change",
    "DayCost",
    "KernelNote",
    "OverTime",
    "Plan",
    "Reached",
    "Search",
    "Simulated",
    "StartUp",
    "chance_with_replicas",
    "changed_verdict",
    "day_sentence",
    "fit_on_rank",
    "growth_sentence",
    "kernel_note",
    "meeting",
    "nearest_native",
    "offered_rps",
    "outage_sentence",
    "over_time",
    "plan",
    "plan_html",
    "plan_text",
    "reached",
    "recommend",
    "replica_of",
    "reprice",
    "run_at_once",
    "run_on_rank",
    "running",
    "serving_replicas",
    "simulate_time",
    "size",
    "time_text",
    "trace_steps",
    "typical_step",
    "what_would_change",
]
