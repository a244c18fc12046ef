"""Requests and a replica whose every step takes one second."""

import numpy as np

from planner.inputs.engine import EngineSettings
from planner.inputs.limits import Limits
from planner.service.replica import Replica
from planner.step_time.step_table import StepTimeTable
from planner.workload.requests import Requests

SLOTS = 8


def requests_of(outputs, prompt=1):
    count = len(outputs)
    return Requests(
        arrival_s=np.arange(count, dtype=np.float64),
        prompt_tokens=np.full(count, prompt),
        output_tokens=np.asarray(outputs),
        output_limit_tokens=np.asarray(outputs),
        prefix_group=np.full(count, -1),
        prefix_tokens=np.zeros(count, dtype=np.int64),
    )


def toy(slots=SLOTS):
    limits = Limits(
        max_num_seqs=slots, max_num_batched_tokens=4096, max_model_len=4096, num_kv_blocks=100_000, block_size=16
    )
    engine = EngineSettings(max_num_seqs=slots, max_num_batched_tokens=4096)
    return Replica(engine=engine, limits=limits, step_time=StepTimeTable.unit())
