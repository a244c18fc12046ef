"""When a model's own layers draft, and that the limits of a deployment follow all of it."""

import dataclasses

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand, drafts_with_own_layers, limits_of

DEMAND = Demand(
    model=get_model("deepseek-ai/DeepSeek-V3"),
    gpu=get_gpu("H200 SXM"),
    engine=EngineSettings(num_speculative_tokens=1),
    parallelism=Parallelism(tensor_parallel_size=8),
    max_model_len=8192,
)


def test_own_layers_draft_where_the_model_has_them_and_no_other_drafts() -> None:
    assert drafts_with_own_layers(DEMAND)
    llama = get_model("meta-llama/Llama-3.1-8B-Instruct")
    assert not drafts_with_own_layers(dataclasses.replace(DEMAND, model=llama))
    assert not drafts_with_own_layers(dataclasses.replace(DEMAND, draft_model=llama))
    assert not drafts_with_own_layers(dataclasses.replace(DEMAND, engine=EngineSettings()))


# vLLM EngineArgs.get_batch_defaults: 8,192 tokens a step from 70 GiB on, 2,048 below.
def test_limits_follow_the_gpu() -> None:
    small = dataclasses.replace(DEMAND, gpu=get_gpu("L4"))
    assert [limits_of(each).max_num_batched_tokens for each in (DEMAND, small)] == [8192, 2048]
