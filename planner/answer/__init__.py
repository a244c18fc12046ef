"""The answer: `plan(scenario)` runs every stage; headline, reasons, findings and confidence are made from its numbers.

In: a Scenario. Out: a `Plan`; `recommend` searches for the cheapest one; `report` writes it down.
"""

from planner.answer.confidence import BAND_OF, EVIDENCE_WORDS, Band
from planner.answer.fits import Fit, fits, fits_text
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
from planner.answer.report import plan_text
from planner.answer.report_page import plan_html
from planner.answer.search import (
    EVIDENCE,
    Candidate,
    Change,
    Search,
    candidate_of,
    candidate_scenarios,
    change_steps,
    changed_settings,
    dask_executor,
    evidence_of,
    format_in_words,
    recommend,
    search_steps,
    search_text,
    split_in_words,
    tally,
    what_would_change,
)
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
    "EVIDENCE",
    "EVIDENCE_WORDS",
    "OWN_ENGINE",
    "Band",
    "Candidate",
    "ChainLink",
    "Change",
    "DayCost",
    "Fit",
    "KernelNote",
    "OverTime",
    "Plan",
    "Reached",
    "Search",
    "Simulated",
    "StartUp",
    "candidate_of",
    "candidate_scenarios",
    "chance_with_replicas",
    "change_steps",
    "changed_settings",
    "changed_verdict",
    "dask_executor",
    "day_sentence",
    "evidence_of",
    "fit_on_rank",
    "fits",
    "fits_text",
    "format_in_words",
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
    "search_steps",
    "search_text",
    "serving_replicas",
    "simulate_time",
    "size",
    "split_in_words",
    "tally",
    "time_text",
    "trace_steps",
    "typical_step",
    "what_would_change",
]
