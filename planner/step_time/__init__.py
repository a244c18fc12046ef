"""How long one engine step takes: milliseconds of a batch, from the kernels that it runs.

In: model, GPU, engine settings, parallelism. Out: a `StepTimeTable` that any batch can be looked up in.

kernels     formulas of one kernel, a few physical parameters each
profile     which parameters hold on a GPU with an engine
rank_share  what one rank computes; layers, attention, drafting add it up; overheads: what an engine adds
build       the table; model: `step_time_table`, `explain_step`
"""

from planner.step_time import kernels
from planner.step_time.kernels import Device
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.overheads import overhead
from planner.step_time.profile import ALL_REDUCE_BYTES, device_of, stored_profile
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork

__all__ = [
    "ALL_REDUCE_BYTES",
    "Device",
    "PrefillChunk",
    "RankShare",
    "StepTimeTable",
    "StepWork",
    "device_of",
    "explain_step",
    "kernels",
    "overhead",
    "step_time_table",
    "stored_profile",
]
