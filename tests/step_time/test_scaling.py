"""Each factor multiplies the part of a step that it is named for, and nothing else."""

import dataclasses

import numpy as np
import pytest

from planner.inputs.scales import AS_PREDICTED, StepScales
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.scaling import scaled_growth, scaled_table
from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork

TABLE = StepTimeTable(
    decode_s=np.array([0.0, 10.0, 11.0, 12.0]),
    mixed_s=np.array([0.0, 10.0, 14.0, 18.0]),
    head_s=np.array([0.0, 1.0, 1.0, 1.0]),
    attention_per_kv_token_s=0.5,
    prefill_pair_s=0.25,
    host_s=3.0,
    host_overlaps=False,
    request_overhead_s=7.0,
    server_per_request_s=2.0,
    server_per_prompt_token_s=0.5,
    server_per_token_s=0.125,
)


def test_the_first_token_takes_one_factor_and_what_is_added_another():
    assert scaled_growth(np.array([10.0, 12.0, 20.0]), 2.0, 3.0).tolist() == [20.0, 26.0, 50.0]


def test_as_predicted_changes_nothing():
    assert scaled_table(TABLE, AS_PREDICTED) is TABLE


@pytest.mark.parametrize(
    ("part", "decode", "prefill"),
    [
        # two sequences with 8 cached tokens: 11 + 0.5 · 8 + 3 of the host; a prompt of two: 14 + 1 + 0.25 · 3 + 3
        ("weights", 18.0 + 10.0, 18.75 + 10.0 + 1.0),
        ("sequences", 18.0 + 1.0 + 4.0, 18.75),
        ("prefill", 18.0, 18.75 + 4.0 + 0.75),
        ("host", 18.0 + 3.0, 18.75 + 3.0),
        ("request", 18.0, 18.75),
    ],
)
def test_twice_the_time_of_a_part(part, decode, prefill):
    scaled = scaled_table(TABLE, StepScales(**{part: 2.0}))
    assert scaled.step_s(StepWork(num_decodes=2, kv_tokens=8)) == pytest.approx(decode)
    prompt = StepWork(chunks=(PrefillChunk(num_tokens=2),), num_logit_rows=1)
    assert scaled.step_s(prompt) == pytest.approx(prefill)
    assert scaled.request_overhead_s == (14.0 if part == "request" else 7.0)
    assert scaled.server_per_request_s == (4.0 if part == "request" else 2.0)
    assert scaled.server_per_prompt_token_s == (1.0 if part == "request" else 0.5)
    assert scaled.server_per_token_s == (0.25 if part == "host" else 0.125)


@pytest.mark.parametrize("part", [item.name for item in dataclasses.fields(StepScales)])
@pytest.mark.parametrize(
    "work",
    [
        StepWork(num_decodes=40, kv_tokens=40_000, num_logit_rows=40),
        StepWork(num_decodes=8, kv_tokens=8000, chunks=(PrefillChunk(num_tokens=500),), num_logit_rows=9),
    ],
    ids=["decode", "mixed"],
)
def test_the_causes_of_a_calibrated_step_add_up_to_it(llama_share, part, work):
    replica = dataclasses.replace(llama_share, scales=StepScales(**{part: 1.7}))
    parts = explain_step(replica, work)
    assert sum(parts.values()) == pytest.approx(1e3 * step_time_table(replica).step_s(work), rel=1e-9)
    assert min(parts.values()) >= -1e-9


@pytest.fixture
def llama_share():
    from planner.catalog.gpus import get_gpu
    from planner.catalog.models import get_model
    from planner.inputs.engine import EngineSettings
    from planner.inputs.hardware import Parallelism
    from planner.step_time.rank_share import RankShare

    return RankShare(
        model=get_model("meta-llama/Llama-3.1-8B-Instruct"),
        gpu=get_gpu("H100 SXM"),
        engine=EngineSettings(),
        parallelism=Parallelism(),
    )
