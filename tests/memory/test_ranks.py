"""Budget and pool of each rank by engine, and which rank decides."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand
from planner.memory.ranks import all_ranks
from planner.memory.runtime import encoder_bytes
from planner.memory.sizing import plan_memory
from planner.units import GIB
from tests.memory.cases import LLAMA, plan


# vLLM 0.19.0, PP 4: the last rank holds head and sampler and decides: 141,079 blocks = 2,257,264 tokens.
def test_pipeline_capacity_is_the_worst_rank() -> None:
    made = plan(LLAMA, pp=4, gpu_memory_utilization=0.95)
    assert made.kv_tokens == pytest.approx(2_257_264, rel=0.005)


# VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS is 1 in vllm/envs.py of the 0.20.0 wheel and 0 in that of 0.19.1.
def test_graphs_leave_the_pool_since_v020() -> None:
    before = plan(LLAMA, version="0.19.1", gpu_memory_utilization=0.9)
    after = plan(LLAMA, version="0.20.0", gpu_memory_utilization=0.9)
    assert not before.cuda_graphs_in_budget
    assert after.cuda_graphs_in_budget
    assert before.kv_pool_bytes - after.kv_pool_bytes == pytest.approx(after.cuda_graph_bytes)


# TensorRT-LLM takes 0.9 of what is free after loading, less 1.5 % (useful-runtime-flags).
def test_tensorrt_llm_shares_what_is_free() -> None:
    made = plan(LLAMA, family="trtllm", version="1.2", block_size=32)
    free = made.total_bytes - made.weights_bytes - made.activation_bytes - made.non_torch_bytes
    assert made.kv_pool_bytes == pytest.approx(0.9 * 0.985 * free)
    opened = next(formula for formula in made.formulas if formula.name == "kv_pool")
    assert "share ×" in opened.expression


@pytest.mark.parametrize("family", ["vllm", "sglang", "trtllm", "tgi", "llamacpp"])
def test_a_gpu_that_others_fill_has_no_negative_budget(family: str) -> None:
    made = plan_memory(
        get_model(LLAMA),
        get_gpu("L4"),
        EngineSettings(family=family, version="0.19.0"),
        Parallelism(),
        max_model_len=8192,
        occupied_bytes=22.4 * GIB,  # the driver shows 22.1 of 22.5 GiB
    )
    assert made.budget_bytes >= 0
    assert not made.starts


def test_before_v09_memory_of_others_counted_as_its_own() -> None:
    alone, shared = (plan(LLAMA, version="0.8.5", occupied_gib=size) for size in (0, 8))
    assert alone.kv_pool_bytes - shared.kv_pool_bytes == pytest.approx(8 * GIB)


# DeepSeek-V4-Flash on eight B200: 20.43 sequences of a million tokens with TP 8, 156.9 with DP 8 (vllm recipe thread).
def test_data_parallel_attention_multiplies_the_pool() -> None:
    settings = {"length": 1_000_000, "version": "0.25.0", "max_num_seqs": 256, "max_num_batched_tokens": 8192,
                "gpu_memory_utilization": 0.95, "block_size": 256, "kv": "fp8", "ep": True}  # fmt: skip
    one = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("B200"), tp=8, **settings)  # type: ignore[arg-type]
    eight = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("B200"), dp=8, **settings)  # type: ignore[arg-type]
    assert one.max_concurrency == pytest.approx(20.43, rel=0.05)
    assert 8 * eight.max_concurrency == pytest.approx(156.9, rel=0.06)


# The tower stands on the first stage of a pipeline; the others profile no image.
def test_encoder_of_a_pipeline() -> None:
    model = get_model("Qwen/Qwen3-VL-235B-A22B-Instruct")
    demand = Demand(model=model, gpu=get_gpu("H200 SXM"), engine=EngineSettings(version="0.24.0"), max_model_len=8192,
                    parallelism=Parallelism(tensor_parallel_size=2, pipeline_parallel_size=4))  # fmt: skip
    first, *middle, _ = all_ranks(demand)  # the last one samples
    assert middle
    assert model.vision_tower is not None
    assert first.activation_bytes >= encoder_bytes(model.vision_tower, 2)
    assert all(rank.activation_bytes < encoder_bytes(model.vision_tower, 2) for rank in middle)
