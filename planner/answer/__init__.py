"""The answer: `plan(scenario)` runs every stage; headline, reasons, findings and confidence are made from its numbers.

In: a Scenario. Out: a `Plan`; `recommend` searches for the cheapest one; `report` writes it down.
"""

from planner.answer.as_json import linked, plain, plan_dict
from planner.answer.confidence import BAND_OF, Band, calibrated_load
from planner.answer.finding import Finding
from planner.answer.fits import Fit, fits, fits_text
from planner.answer.kernels import KernelNote
from planner.answer.lab import BURST_FITS, BURST_REQUESTS, OWN_ENGINE, trace_steps
from planner.answer.load_test import BENCH, bench_command, bench_flags, input_half_width, load_test_scenario
from planner.answer.outcome import (
    ChainLink,
    Plan,
    Reached,
    Sure,
    Taken,
    Verdict,
    fit_on_rank,
    offered_rps,
    reached,
    run_at_once,
    run_on_rank,
    serving_replicas,
    target_label,
    typical_step,
)
from planner.answer.planning import plan, replica_of, size
from planner.answer.pricing import reprice
from planner.answer.recheck import changed_verdict
from planner.answer.report import plan_text, sure_line
from planner.answer.report_page import plan_html
from planner.answer.search import (
    EVIDENCE,
    Candidate,
    Change,
    Search,
    candidate_of,
    change_steps,
    changed_settings,
    cheapest_as_sure,
    dask_executor,
    evidence_of,
    format_in_words,
    recommend,
    search_steps,
    search_text,
    split_in_words,
    tally,
)
from planner.answer.times import (
    MOST_ORDERS,
    DayCost,
    OverTime,
    Simulated,
    StartUp,
    day_sentence,
    growth_sentence,
    orders_left_out,
    outage_sentence,
    over_time,
    running,
    simulate_time,
    time_text,
)
from planner.answer.verdict import SURE
from planner.answer.wording import meeting

__all__ = [
    "BAND_OF",
    "BENCH",
    "BURST_FITS",
    "BURST_REQUESTS",
    "EVIDENCE",
    "MOST_ORDERS",
    "OWN_ENGINE",
    "SURE",
    "Band",
    "Candidate",
    "ChainLink",
    "Change",
    "DayCost",
    "Finding",
    "Fit",
    "KernelNote",
    "OverTime",
    "Plan",
    "Reached",
    "Search",
    "Simulated",
    "StartUp",
    "Sure",
    "Taken",
    "Verdict",
    "bench_command",
    "bench_flags",
    "calibrated_load",
    "candidate_of",
    "change_steps",
    "changed_settings",
    "changed_verdict",
    "cheapest_as_sure",
    "dask_executor",
    "day_sentence",
    "evidence_of",
    "fit_on_rank",
    "fits",
    "fits_text",
    "format_in_words",
    "growth_sentence",
    "input_half_width",
    "linked",
    "load_test_scenario",
    "meeting",
    "offered_rps",
    "orders_left_out",
    "outage_sentence",
    "over_time",
    "plain",
    "plan",
    "plan_dict",
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
    "sure_line",
    "tally",
    "target_label",
    "time_text",
    "trace_steps",
    "typical_step",
]
