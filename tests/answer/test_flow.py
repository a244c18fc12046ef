"""A plan walks through the stages in one direction."""

import itertools
import sys
from pathlib import Path

import pytest

import planner
from planner import Scenario, plan

ROOT = Path(planner.__file__).parent
ORDER = ("scenario", "workload", "memory", "step_time", "simulation", "service", "cost", "answer")


def stage_of(code):
    path = Path(code.co_filename)
    return path.relative_to(ROOT).parts[0] if path.is_relative_to(ROOT) else ""


def entries(scenario):
    """Stages whose functions `plan()` and the sentences of the answer ask for work, in the order of the calls.

    Reading a field or a property of a value object that an earlier stage made is no way back; calling one of that
    stage's functions is.
    """
    seen = []

    def trace(frame, event, _):
        if event != "call" or frame.f_back is None or stage_of(frame.f_back.f_code) != "answer":
            return
        stage, name = stage_of(frame.f_code), frame.f_code.co_qualname
        if stage in ORDER and stage != "answer" and "." not in name and not name.startswith("<"):
            seen.append((ORDER.index(stage), stage, name))

    plan(scenario)  # compiles, which takes minutes under a profiler
    sys.setprofile(trace)
    try:
        plan(scenario)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"model": "Qwen/Qwen3-32B", "tensor_parallel_size": 2, "users": 800},
        {"arrivals": "closed", "concurrent_users": 64},
        {"arrivals": "once", "num_requests": 200},
        {"num_replicas": 3, "users": 2000},
        {"gpu": "RTX 4090"},
        {"users": 20_000, "ttft_target_s": None, "tpot_target_s": None},
        {"deployment": "disaggregated", "num_requests": 200},
    ],
)
def test_a_plan_never_goes_back_to_an_earlier_stage(inputs):
    walked = entries(Scenario(**inputs))
    assert {"workload", "memory"} <= {stage for _, stage, _ in walked}
    back = [(before[2], after[2]) for before, after in itertools.pairwise(walked) if after[0] < before[0]]
    assert not back
