"""Padding of 4-bit experts by the kernel of the device."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.model.shape import TensorGroup
from planner.units import GIB


# gpt-oss-120b, TP 1, H100: "Model loading took" 64.38 GiB in vLLM 0.11.0 and 0.14.1 (Triton), 65.97 in 0.10.1 (Marlin).
@pytest.mark.parametrize(("version", "gib"), [("0.11.0", 64.38), ("0.14.1", 64.38), ("0.10.1", 65.97)])
def test_padded_experts_weigh_what_the_log_says(version: str, gib: float) -> None:
    made = plan_memory(
        get_model("openai/gpt-oss-120b"),
        get_gpu("H100 SXM"),
        EngineSettings(version=version),
        Parallelism(),
        max_model_len=8192,
    )
    assert made.weights_bytes / GIB == pytest.approx(gib, rel=0.001)


# vLLM quantization/mxfp4.py: inner width and hidden size rounded up to 256 and 256 (FlashInfer), 128 and 256 (Marlin).
@pytest.mark.parametrize(
    ("gpu", "ranks", "factor"),
    [("B200", 1, (3072 / 2880) ** 2), ("B200", 8, 8 * 512 * 3072 / 2880**2), ("RTX 4090", 1, 2944 * 3072 / 2880**2)],
)
def test_experts_are_padded_by_the_kernel_of_the_device(gpu: str, ranks: int, factor: float) -> None:
    from planner.memory.edition import edition_of
    from planner.memory.expert_padding import expert_padding, padded_share

    model = get_model("openai/gpt-oss-20b")
    padding = expert_padding(get_gpu(gpu), edition_of(EngineSettings(version="0.19")), False)
    experts = [x for layer, _ in model.layer_counts() for x in layer.linears if x.group is TensorGroup.EXPERT]
    assert [ranks * padded_share(matrix, ranks, padding) for matrix in experts[:2]] == pytest.approx([factor, factor])
