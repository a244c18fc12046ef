"""Copies that loading makes, against the shapes of the tensors that vLLM allocates."""

import dataclasses

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.edition import edition_of
from planner.memory.loading import repacked_bytes
from planner.memory.runtime import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE
from planner.memory.verdict import FRAMEWORK_FREE_BYTES, OOM
from planner.units import GIB
from tests.memory.cases import gpu_that_shows, plan

MOE = "Qwen/Qwen3-235B-A22B"
# _custom_ops.py awq_marlin_moe_repack: (experts, K // 16, N × bits // 2) 32-bit words, of 128 experts, K 4,096 and
# N 2 × 1,536, with the scales and zeros of groups of 128 in 4.156 bits a weight.
COPY_GIB = 128 * 4096 * 2 * 1536 * 4.156 / 8 / GIB


@pytest.mark.parametrize(
    ("model", "gib", "tp"),
    [(MOE, COPY_GIB, 1), ("Qwen/Qwen3-32B", 5120 * 2 * 25_600 * 4.156 / 8 / GIB, 1), (MOE, COPY_GIB / 4, 4)],
)
def test_one_module_is_held_twice_while_it_is_repacked(model: str, gib: float, tp: int) -> None:
    def at(room_gib: float, weights: str = "awq_int4") -> str:
        size = plan(model, gpu_that_shows(400), weights=weights, tp=tp).weights_bytes
        driver = (size + FRAMEWORK_FREE_BYTES + DRIVER_RESERVE_BYTES) / GIB + room_gib
        shown = dataclasses.replace(get_gpu("H100 SXM"), memory_gib=driver / (1 - DRIVER_RESERVE_SHARE))
        made = plan(model, shown, weights=weights, tp=tp, gpu_memory_utilization=1.0, cuda_graphs=False)
        return made.outcome if made.outcome == OOM and "repacked" in made.refusal else ""

    assert at(0.98 * gib) == OOM
    assert not at(1.02 * gib)
    assert not at(0.98 * gib, "nvfp4")


# Whole experts on each GPU: 32 of 128. Other engines and makers have other kernels.
@pytest.mark.parametrize(
    ("gpu", "family", "share"), [("H100 SXM", "vllm", 32 / 128), ("MI300X", "vllm", 0), ("H100 SXM", "sglang", 0)]
)
def test_whole_experts_and_other_kernels(gpu: str, family: str, share: float) -> None:
    model = get_model(MOE)
    split = Parallelism(tensor_parallel_size=4, expert_parallel=True)
    edition = edition_of(EngineSettings(family=family, name=family))
    copy = repacked_bytes(model, model.layer_counts(), "awq_int4", get_gpu(gpu), split, edition)
    assert copy / GIB == pytest.approx(COPY_GIB * share, rel=0.001)
