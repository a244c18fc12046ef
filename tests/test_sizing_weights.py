"""Weights as each engine holds them: padding, copies, drafts, and SGLang's first shares."""

import math

import pytest

from planner.catalog.gpu_catalog import get_gpu
from planner.catalog.model_catalog import get_model
from planner.engine import EngineSettings
from planner.hardware import Parallelism
from planner.model import TensorGroup
from planner.sizing import plan_memory
from planner.sizing.edition import Edition
from planner.sizing.kv_layout import build_layout
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


# DeepSeek-R1 on eight H200: 83.88 GiB per GPU in vLLM 0.7 with absorbed products; 105.59 in SGLang 0.4.6, DP attention.
@pytest.mark.parametrize(
    ("family", "version", "tp", "dp", "gib"), [("vllm", "0.7.3", 8, 1, 83.88), ("sglang", "0.4.6", 1, 8, 105.59)]
)
def test_latent_attention_weighs_what_the_log_says(family: str, version: str, tp: int, dp: int, gib: float) -> None:
    parallelism = Parallelism(tensor_parallel_size=tp, attention_data_parallel_size=dp)
    engine = EngineSettings(family=family, version=version)
    made = plan_memory(
        get_model("deepseek-ai/DeepSeek-R1"), get_gpu("H200 SXM"), engine, parallelism, max_model_len=8192
    )
    assert made.weights_bytes / GIB == pytest.approx(gib, rel=0.006)


# server_args.py of SGLang 0.4: mem_fraction_static by tp_size, whatever the device.
@pytest.mark.parametrize(("tp", "share"), [(1, 0.88), (2, 0.87), (4, 0.85), (8, 0.81), (16, 0.79)])
def test_first_sglang_takes_a_share_by_ranks(tp: int, share: float) -> None:
    from planner.sizing.defaults import default_utilization

    parallelism = Parallelism(tensor_parallel_size=tp)
    assert default_utilization(Edition("sglang", (0, 4)), get_gpu("H100 SXM"), parallelism) == share


# vLLM 0.20, Qwen3.6-27B TP 2 with a DFlash draft: 67,728 tokens = 83 × 816 in 9.74 GiB, 5 layers per block.
def test_draft_with_other_heads_is_a_group_of_its_own() -> None:
    from planner.accuracy.memory_names import block_diffusion_draft

    model = get_model("Qwen/Qwen3.6-27B")
    layers = model.layer_counts() + block_diffusion_draft(model).layer_counts()
    layout = build_layout(
        layers, tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto", fp32=False,
        edition=Edition("vllm", (0, 20)), block_size=16, num_speculative_tokens=5,
    )  # fmt: skip
    assert (layout.num_groups, layout.main.block_tokens) == (15, 816)
    assert math.floor(9.74 * GIB / layout.block_bytes) // 15 * 816 == 67_728


# vLLM quantization/mxfp4.py: inner width and hidden size rounded up to 256 and 256 (FlashInfer), 128 and 256 (Marlin).
@pytest.mark.parametrize(
    ("gpu", "ranks", "factor"),
    [("B200", 1, (3072 / 2880) ** 2), ("B200", 8, 8 * 512 * 3072 / 2880**2), ("RTX 4090", 1, 2944 * 3072 / 2880**2)],
)
def test_experts_are_padded_by_the_kernel_of_the_device(gpu: str, ranks: int, factor: float) -> None:
    from planner.sizing.edition import edition_of
    from planner.sizing.expert_padding import expert_padding, padded_share

    model = get_model("openai/gpt-oss-20b")
    padding = expert_padding(get_gpu(gpu), edition_of(EngineSettings(version="0.19")), False)
    experts = [x for layer, _ in model.layer_counts() for x in layer.linears if x.group is TensorGroup.EXPERT]
    assert [ranks * padded_share(matrix, ranks, padding) for matrix in experts[:2]] == pytest.approx([factor, factor])
