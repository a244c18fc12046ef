"""What proposing tokens costs before they are verified."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time.drafting import drafting_line_s, drafting_s
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.step_table import StepWork
from tests.step_time.cases import LLAMA, ONE, VLLM, decode, replica, share

#: 1.1 ms a step and 0.35 ms a draft beside the kernels (catalog/serving_overheads.csv), for four drafts
HOST_MS = 1.1 + 4 * 0.35


def test_drafting_with_a_separate_model_costs_its_own_passes():
    gpu, drafts = get_gpu("H100 SXM"), 4
    large, small = get_model("meta-llama/Llama-3.1-70B-Instruct"), get_model("meta-llama/Llama-3.2-1B-Instruct")
    wide = Parallelism(tensor_parallel_size=4)
    speculative = EngineSettings(num_speculative_tokens=drafts, speculative_acceptance=0.7)
    work = StepWork(num_decodes=1, tokens_per_decode=1 + drafts, kv_tokens=1000, num_logit_rows=1)
    split = explain_step(replica(large, gpu, speculative, wide, draft_model=small), work)
    alone = explain_step(replica(small, gpu, VLLM, wide), StepWork(num_decodes=1, kv_tokens=0, num_logit_rows=1))
    passes = drafts * (sum(alone.values()) - alone["host"])
    assert split["drafting"] == pytest.approx(passes + HOST_MS, rel=0.05)
    table = step_time_table(replica(large, gpu, speculative, wide, draft_model=small))
    assert sum(split.values()) == pytest.approx(1e3 * table.step_s(work))


def test_without_speculation_nothing_is_drafted():
    split = explain_step(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE), decode(8, 100))
    assert split["drafting"] == 0


SPECULATIVE = {"num_speculative_tokens": 4, "speculative_acceptance": 0.7}
SMALL = "meta-llama/Llama-3.2-1B-Instruct"


def test_each_drafted_token_is_a_pass_of_the_drafter():
    batch = np.array([1.0, 64.0])
    four = drafting_s(share(draft=SMALL, **SPECULATIVE), batch)
    two = drafting_s(share(draft=SMALL, num_speculative_tokens=2), batch)
    assert four == pytest.approx(2 * two)
    assert four[0] <= four[1]


def test_the_line_goes_through_one_and_many_sequences():
    replica = share(draft=SMALL, **SPECULATIVE)
    base, slope = drafting_line_s(replica)
    few, many = drafting_s(replica, np.array([1.0, 256.0]))
    assert base + slope == pytest.approx(few + HOST_MS * 1e-3)
    assert base + 256 * slope == pytest.approx(many + HOST_MS * 1e-3)
    assert drafting_line_s(share()) == (0.0, 0.0)


def test_sglang_checks_drafted_tokens_one_by_one():
    # 50 us for each drafted and sampled token (catalog/serving_overheads.csv), which vLLM checks on the GPU
    drafts = {"num_speculative_tokens": 3, "speculative_acceptance": 0.7}
    checked, plain = (drafting_line_s(share(family=name, **drafts)) for name in ("sglang", "vllm"))
    kernels = [drafting_s(share(family=name, **drafts), np.array([1.0, 256.0])) for name in ("sglang", "vllm")]
    slopes = [(many - few) / 255 for few, many in kernels]
    assert checked[1] - slopes[0] == pytest.approx(4 * 50e-6)
    assert plain[1] == pytest.approx(slopes[1])


def test_layers_of_its_own_cost_less_than_a_separate_model():
    one = np.array([1.0])
    assert drafting_s(share(**SPECULATIVE), one) < drafting_s(share(draft=SMALL, **SPECULATIVE), one)
