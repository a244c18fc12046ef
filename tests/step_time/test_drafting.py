"""What proposing tokens costs before they are verified."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.step_table import StepWork
from tests.step_time.cases import LLAMA, ONE, VLLM, decode


def test_drafting_with_a_separate_model_costs_its_own_passes():
    gpu, drafts = get_gpu("H100 SXM"), 4
    large, small = get_model("meta-llama/Llama-3.1-70B-Instruct"), get_model("meta-llama/Llama-3.2-1B-Instruct")
    wide = Parallelism(tensor_parallel_size=4)
    speculative = EngineSettings(num_speculative_tokens=drafts, speculative_acceptance=0.7)
    work = StepWork(num_decodes=1, tokens_per_decode=1 + drafts, kv_tokens=1000, num_logit_rows=1)
    split = explain_step(large, gpu, speculative, wide, work, draft_model=small)
    alone = explain_step(small, gpu, VLLM, wide, StepWork(num_decodes=1, kv_tokens=0, num_logit_rows=1))
    assert split["drafting"] == pytest.approx(drafts * (sum(alone.values()) - alone["host"]), rel=0.05)
    table = step_time_table(large, gpu, speculative, wide, draft_model=small)
    assert sum(split.values()) == pytest.approx(1e3 * table.step_s(work))


def test_without_speculation_nothing_is_drafted():
    split = explain_step(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, decode(8, 100))
    assert split["drafting"] == 0
