"""Charts of value objects: plain Plotly dicts titled with their finding. No maths beyond layout, no streamlit."""

from planner.charts.accuracy import curve_over_concurrency as curve_over_concurrency
from planner.charts.accuracy import predicted_against_measured as predicted_against_measured
from planner.charts.alternatives import cost_against_latency as cost_against_latency
from planner.charts.compare import plan_bars as plan_bars
from planner.charts.cost import api_comparison as api_comparison
from planner.charts.cost import break_even_map as break_even_map
from planner.charts.cost import cost_against_utilisation as cost_against_utilisation
from planner.charts.cost import gpu_chain as gpu_chain
from planner.charts.load import distribution as distribution
from planner.charts.load import latency_against_load as latency_against_load
from planner.charts.load import latency_finding as latency_finding
from planner.charts.load import step_terms as step_terms
from planner.charts.memory import GROUP_TITLES as GROUP_TITLES
from planner.charts.memory import concurrency as concurrency
from planner.charts.memory import memory_bar as memory_bar
from planner.charts.memory import weights_by_group as weights_by_group
from planner.charts.own import overlay_errors as overlay_errors
from planner.charts.own import rate_over_time as rate_over_time
from planner.charts.policies import cost as policy_cost
from planner.charts.policies import in_sentence as in_sentence
from planner.charts.policies import kv_use as policy_kv_use
from planner.charts.policies import slots as policy_slots
from planner.charts.policies import throughput as policy_throughput
from planner.charts.policies import timeline as policy_timeline
from planner.charts.policies import waits as policy_waits
from planner.charts.recording import recorded_day as recorded_day
from planner.charts.recording import recorded_gaps as recorded_gaps
from planner.charts.recording import recorded_lengths as recorded_lengths
from planner.charts.recording import recorded_week as recorded_week
from planner.charts.steps import StepPicture as StepPicture
from planner.charts.steps import step_timeline as step_timeline
from planner.charts.steps import without_prompts as without_prompts
from planner.charts.style import Chart as Chart
from planner.charts.style import ready as ready
from planner.charts.tiles import Line as Line
from planner.charts.tiles import bar_svg as bar_svg
from planner.charts.tiles import blocks_svg as blocks_svg
from planner.charts.tiles import line_svg as line_svg
from planner.charts.times import day_misses as day_misses
from planner.charts.times import day_replicas as day_replicas
from planner.charts.times import months as months

__all__ = [
    "Chart",
    "Line",
    "StepPicture",
    "api_comparison",
    "bar_svg",
    "blocks_svg",
    "break_even_map",
    "concurrency",
    "cost_against_latency",
    "cost_against_utilisation",
    "curve_over_concurrency",
    "day_misses",
    "day_replicas",
    "distribution",
    "gpu_chain",
    "latency_against_load",
    "latency_finding",
    "line_svg",
    "memory_bar",
    "months",
    "overlay_errors",
    "plan_bars",
    "policy_cost",
    "policy_kv_use",
    "policy_slots",
    "policy_throughput",
    "policy_timeline",
    "policy_waits",
    "predicted_against_measured",
    "rate_over_time",
    "ready",
    "recorded_day",
    "recorded_gaps",
    "recorded_lengths",
    "recorded_week",
    "step_terms",
    "step_timeline",
    "weights_by_group",
    "without_prompts",
]
