"""Sizing depends on what a model is like, never on what it is called."""

import dataclasses
from pathlib import Path

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.step_time.model import step_time_table
from planner.step_time.rank_share import RankShare

PLANNER = Path(__file__).parents[2] / "planner"
MODELS = (
    "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-ai/DeepSeek-V3",
    "stepfun-ai/Step-3.5-Flash",
    "Qwen/Qwen3.8-Flash-Next",
    "openai/gpt-oss-120b",
    "meituan-longcat/LongCat-Flash-Lite",
)


@pytest.mark.parametrize("stage", ["memory", "step_time"])
def test_no_stage_of_sizing_reads_a_models_name(stage: str) -> None:
    files = sorted((PLANNER / stage).glob("*.py"))
    assert files
    assert [path.name for path in files if "model_type" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("family", ["vllm", "sglang", "llamacpp"])
@pytest.mark.parametrize("name", MODELS)
def test_a_renamed_model_takes_the_same_memory_and_time(name: str, family: str) -> None:
    # In 16 bits: what a published checkpoint leaves unquantised is looked up by family.
    model, gpu = get_model(name), get_gpu("H200 SXM")
    renamed = dataclasses.replace(model, name="another", model_type="another")
    engine = EngineSettings(name=family, family=family, num_speculative_tokens=2)
    split = Parallelism(tensor_parallel_size=8)
    plans = [
        plan_memory(shape, gpu, engine, split, max_model_len=8192, weight_dtype="bf16", explain=False)
        for shape in (model, renamed)
    ]
    assert plans[0] == plans[1]
    tables = [
        step_time_table(RankShare(model=shape, gpu=gpu, engine=engine, parallelism=split, weight_dtype="bf16"))
        for shape in (model, renamed)
    ]
    assert tables[0].decode_s.tolist() == tables[1].decode_s.tolist()


# Step-3.5's draft layers keep a window and load copies of embedding and head; DeepSeek V3 shares both with its draft.
def test_draft_layers_of_families() -> None:
    step, deepseek = get_model("stepfun-ai/Step-3.5-Flash"), get_model("deepseek-ai/DeepSeek-V3")
    assert step.draft_keeps_window
    assert step.mtp_shared_parameters == 0
    assert not deepseek.draft_keeps_window
    assert deepseek.mtp_shared_parameters == 2 * 129_280 * 7168
