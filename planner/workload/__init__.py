"""The requests that reach a service: drawn from the scenario's traffic, or replayed from a recorded trace.

In: a Scenario, or a trace file. Out: `Requests`, arrays with one entry per request.
"""

from planner.workload.day import draw_spells, hours_of_trace
from planner.workload.drawing import NO_LIMIT_TOKENS, draw_lengths, draw_requests, read_trace, with_rate
from planner.workload.offered import as_open_loop, draw, mean_lengths, shared_tokens
from planner.workload.requests import Requests
from planner.workload.trace_formats import ROLES as TRACE_ROLES
from planner.workload.trace_formats import Columns, columns_in
from planner.workload.trace_summary import TraceSummary, fitted, summary_of

__all__ = [
    "NO_LIMIT_TOKENS",
    "TRACE_ROLES",
    "Columns",
    "Requests",
    "TraceSummary",
    "as_open_loop",
    "columns_in",
    "draw",
    "draw_lengths",
    "draw_requests",
    "draw_spells",
    "fitted",
    "hours_of_trace",
    "mean_lengths",
    "read_trace",
    "shared_tokens",
    "summary_of",
    "with_rate",
]
