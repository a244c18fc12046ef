"""How long one engine step takes: milliseconds of a batch, from the kernels that it runs.

In: a `RankShare` (model, GPU, engine settings, parallelism). Out: a `StepTimeTable` with the time of any batch.

kernels     formulas of single kernels with a few physical parameters each
profile     the parameters on a GPU with an engine
rank_share  what one rank computes
layers      matrices, experts, collectives, states; attention; drafting
overheads   what an engine adds around the kernels
scaling     what measurements of a deployment make of its times
build       adds all of it up into the table
model       `step_time_table`, `explain_step`
"""

from planner.step_time import kernels
from planner.step_time.kernels import Device
from planner.step_time.model import (
    explain_step,
    kernel_evidence,
    scaled_overheads,
    step_time_table,
    without_published_runs,
)
from planner.step_time.overheads import overhead
from planner.step_time.profile import (
    ALL_REDUCE_BYTES,
    EVIDENCE,
    KERNELS_MEASURED,
    NOTHING_MEASURED,
    SAME_ARCHITECTURE,
    device_of,
    fitted_numbers,
    measured_gpu,
    stored_profile,
)
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork

__all__ = [
    "ALL_REDUCE_BYTES",
    "EVIDENCE",
    "KERNELS_MEASURED",
    "NOTHING_MEASURED",
    "SAME_ARCHITECTURE",
    "Device",
    "PrefillChunk",
    "RankShare",
    "StepTimeTable",
    "StepWork",
    "device_of",
    "explain_step",
    "fitted_numbers",
    "kernel_evidence",
    "kernels",
    "measured_gpu",
    "overhead",
    "scaled_overheads",
    "step_time_table",
    "stored_profile",
    "without_published_runs",
]
