"""What vLLM reserves for its CUDA graphs, by release, model runner and device."""

import dataclasses

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.cuda_graphs import captured_sizes
from planner.memory.defaults import resolve
from planner.memory.memory_plan import MemoryPlan
from planner.memory.runtime import profiled_images
from planner.memory.sizing import plan_memory
from planner.units import GIB

QWEN3, LLAMA, QWEN2 = "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct"
MIXTURE, HYBRID = "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3.8-27B"
SMALL_MLA = "deepseek-ai/DeepSeek-V2-Lite-Chat"


def start(model: str, version: str, gpu: str = "H200 SXM", weights: str = "auto", tp: int = 1,
          **engine: object) -> MemoryPlan:  # fmt: skip
    settings = EngineSettings(version=version, **engine)  # type: ignore[arg-type]
    return plan_memory(
        get_model(model), get_gpu(gpu), settings, Parallelism(tensor_parallel_size=tp), max_model_len=8192,
        weight_dtype=weights, explain=False,
    )  # fmt: skip


# vllm/config/vllm.py `use_v2_model_runner` and DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES in the wheels named here; the
# second runner's profile_cudagraph_memory returns 0 up to 0.28.0 and profiles from 0.29.0 on (#49224).
@pytest.mark.parametrize(
    ("model", "version", "weights", "reserves"),
    [
        (QWEN3, "0.20.0", "auto", True),
        (QWEN3, "0.22.1", "auto", False),
        (QWEN3, "0.22.1", "fp8", True),  # quantised models stay on the first runner
        (LLAMA, "0.22.1", "auto", True),
        (LLAMA, "0.23.0", "auto", False),
        (QWEN2, "0.23.0", "auto", True),
        (QWEN2, "0.25.1", "auto", False),  # every model without experts and states
        (QWEN2, "0.25.1", "fp8", False),
        (SMALL_MLA, "0.25.1", "auto", False),
        (MIXTURE, "0.25.1", "auto", True),
        (HYBRID, "0.28.0", "auto", True),
        ("moonshotai/Kimi-K3", "0.28.0", "auto", False),
        (QWEN3, "0.29.0", "auto", True),
        (HYBRID, "0.33.0", "auto", True),
    ],
)
def test_the_second_runner_reserved_nothing_before_v029(model: str, version: str, weights: str, reserves: bool) -> None:
    assert start(model, version, weights=weights).cuda_graphs_in_budget == reserves


# gpu_worker.py of 0.20.0 to 0.25.1: "Skip on ROCm/HIP/XPU"; gone in 0.26.0.
@pytest.mark.parametrize(("version", "reserves"), [("0.25.1", False), ("0.26.0", True)])
def test_no_estimate_on_amd_before_v026(version: str, reserves: bool) -> None:
    made = start(MIXTURE, version, gpu="MI300X")
    assert made.cuda_graphs_in_budget == reserves
    assert made.cuda_graph_bytes > 0  # they are captured all the same


# An RTX 5090 with a 64-layer hybrid logs 0.52 GiB at 2,048 and 4,096 tokens per step and 0.89 at 8,192 (vllm #52872);
# two RTX 3090 log 0.36 GiB with 8,192 tokens and 16 captured tokens (gpustack/runner #251, vLLM 0.27.1).
@pytest.mark.parametrize(
    ("version", "tokens", "tp", "seqs", "logged_gib"),
    [
        ("0.28.0", 2048, 1, None, 0.52),
        ("0.28.0", 4096, 1, None, 0.52),
        ("0.28.0", 8192, 1, None, 0.89),
        ("0.27.1", 8192, 2, 6, 0.36),
    ],
)
def test_prefill_workspace_counts_as_graphs(
    version: str, tokens: int, tp: int, seqs: int | None, logged_gib: float
) -> None:
    made = start(HYBRID, version, gpu="RTX 5090", weights="nvfp4", tp=tp, max_num_batched_tokens=tokens,
                 max_num_seqs=seqs)  # fmt: skip
    assert made.cuda_graph_bytes / GIB == pytest.approx(logged_gib, abs=0.1)


def test_prefill_workspace_before_v026_is_no_graph() -> None:
    few, many = (start(HYBRID, "0.24.0", gpu="RTX 5090", weights="nvfp4", max_num_batched_tokens=n)
                 for n in (2048, 8192))  # fmt: skip
    assert few.cuda_graph_bytes == many.cuda_graph_bytes


# 0.19.1 lists bagel, gemma3, molmo2 and paligemma as models whose images enter in one step; 0.20.0 has Gemma 4 too
# (vllm #42687: refused with 2,048 tokens), and 0.22 raises its default to the item (#43051).
@pytest.mark.parametrize(
    ("version", "outcome"),
    [("0.19.1", "started"), ("0.20.0", "refused_step_smaller_than_image"), ("0.22.0", "started")],
)
def test_a_step_smaller_than_an_image(version: str, outcome: str) -> None:
    gpu = dataclasses.replace(get_gpu("RTX PRO 6000 Blackwell Server"), memory_gib=60.0)  # below 70: 2,048 tokens
    made = plan_memory(
        get_model("google/gemma-4-26B-A4B-it"), gpu, EngineSettings(version=version), Parallelism(),
        max_model_len=8192, explain=False,
    )  # fmt: skip
    assert made.outcome == outcome


# vLLM 0.33: sizes 1, 2, 4 and every 8th up to --max-cudagraph-capture-size; 16 captured tokens are 5 sizes.
def test_graphs_up_to_the_largest_that_the_user_captures() -> None:
    gpu, split = get_gpu("H100 SXM"), Parallelism()
    told = EngineSettings(version="0.33.0", max_cudagraph_capture_size=16)
    assert captured_sizes(told, gpu, split, 1024) == (1, 2, 4, 8, 16)
    few, all_of_them = (start(MIXTURE, "0.33.0", max_cudagraph_capture_size=most) for most in (16, None))
    assert few.cuda_graph_bytes < 0.2 * all_of_them.cuda_graph_bytes
    sglang = EngineSettings(name="sglang", family="sglang", max_cudagraph_capture_size=8)
    assert captured_sizes(sglang, gpu, split)[-1] == 8


# encoder_budget.py: items = min(budget // item, max_num_seqs × items per prompt), at least 1.
def test_images_per_prompt_bound_the_profile_run() -> None:
    model = get_model("Qwen/Qwen2.5-VL-7B-Instruct")
    tower = model.vision_tower
    assert tower is not None
    step = 16 * tower.item_tokens
    resolved = [
        resolve(EngineSettings(version="0.33.0", max_num_seqs=2, max_num_batched_tokens=step, images_per_prompt=most),
                get_gpu("H200 SXM"), Parallelism(), 128_000)
        for most in (None, 1)
    ]  # fmt: skip
    images = dataclasses.replace(tower, videos_as_images=False)
    shape = dataclasses.replace(model, vision_tower=images)
    assert [profiled_images(shape, limits, 128_000) for limits in resolved] == [
        min(16, 2 * (128_000 // tower.item_tokens)), 2
    ]  # fmt: skip
