"""The engine's scheduler, step by step: requests in, a record of each request out.

In: `Requests`, engine settings, limits, a `StepTimeTable`. Out: a `SimulationResult`.
It only records; `service` measures.

machine        one replica with its API server: `simulate`; kernel: the compiled loop; state: the arrays it works on
router         several replicas behind a router; autoscaling, disaggregation: services that change, or are split
api_server     the ceiling that the API server sets
step_trace     what the slots do step by step
seed_article   the example that the project starts from
"""

from planner.simulation.api_server import server_s
from planner.simulation.autoscaling import Autoscaling, Failure, ServiceRun, Timetable, simulate_service
from planner.simulation.disaggregation import (
    DisaggregatedRun,
    Pool,
    decode_part,
    prefill_part,
    simulate_disaggregated,
)
from planner.simulation.kernel import is_compiled
from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED, REJECTED, UNFINISHED, SimulationResult
from planner.simulation.router import simulate_fleet
from planner.simulation.seed_article import SCHEDULING as SEED_SCHEDULING
from planner.simulation.seed_article import format_seed_table, kv_bytes_per_token, seed_steps, seed_table
from planner.simulation.step_trace import DECODE, HELD, PAUSED, PREFILL, RECOMPUTE, Span, StepTrace, record_steps

__all__ = [
    "ABANDONED",
    "DECODE",
    "FINISHED",
    "HELD",
    "PAUSED",
    "PREFILL",
    "RECOMPUTE",
    "REJECTED",
    "SEED_SCHEDULING",
    "UNFINISHED",
    "Autoscaling",
    "DisaggregatedRun",
    "Failure",
    "Pool",
    "ServiceRun",
    "SimulationResult",
    "Span",
    "StepTrace",
    "Timetable",
    "decode_part",
    "format_seed_table",
    "is_compiled",
    "kv_bytes_per_token",
    "prefill_part",
    "record_steps",
    "seed_steps",
    "seed_table",
    "server_s",
    "simulate",
    "simulate_disaggregated",
    "simulate_fleet",
    "simulate_service",
]
