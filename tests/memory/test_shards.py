"""Weights as each engine holds them: padding, copies, drafts, and SGLang's first shares."""

import math

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.defaults import resolve
from planner.memory.edition import Edition
from planner.memory.kv_layout import build_layout
from planner.memory.sizing import plan_memory
from planner.model.config.build import model_from_config
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


# server_args.py of SGLang: mem_fraction_static by tp_size (0.4.5), by device class (0.5.3), by purpose (0.5.4: 512 +
# 1.5 × 8,192 + 2 × 512 + 1,024 MiB of 81,560), 2 GiB more when drafting.
@pytest.mark.parametrize(
    ("version", "tp", "drafts", "share"),
    [
        ("0.4.5", 1, 0, 0.88), ("0.4.5", 8, 0, 0.81), ("0.4.5", 16, 0, 0.79), ("0.5.3", 8, 0, 1 - 13.5 / 79.65),
        ("0.5.3", 1, 0, 1 - 10 / 79.65), ("0.5.4", 8, 0, 1 - 14_848 / 81_560), ("", 8, 3, 1 - 16_896 / 81_560),
    ],
)  # fmt: skip
def test_sglang_takes_a_share_by_its_version(version: str, tp: int, drafts: int, share: float) -> None:
    engine = EngineSettings(family="sglang", version=version, num_speculative_tokens=drafts)
    resolved = resolve(engine, get_gpu("H100 SXM"), Parallelism(tensor_parallel_size=tp), 8192)
    assert resolved.gpu_memory_utilization == pytest.approx(share, abs=1e-4)


def test_sglang_leaves_room_for_a_tower() -> None:
    engine, gpu = EngineSettings(family="sglang", version="0.5.5"), get_gpu("H100 SXM")
    shares = [
        resolve(engine, gpu, Parallelism(), 8192, vision_parameters=size).gpu_memory_utilization
        for size in (0.0, 302e6, 604e6, 6e9)
    ]
    assert [share / shares[0] for share in shares] == pytest.approx([1.0, 0.95, 0.95 * 0.9, 0.95 * 0.8])


# vLLM 0.20, Qwen3.6-27B TP 2 with a DFlash draft: 67,728 tokens = 83 × 816 in 9.74 GiB, 5 layers per block.
def test_draft_with_other_heads_is_a_group_of_its_own() -> None:
    model = get_model("Qwen/Qwen3.6-27B")
    draft = model_from_config({
        "model_type": "qwen3", "num_hidden_layers": 5, "hidden_size": model.hidden_size, "intermediate_size": 17_408,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 64,
        "tie_word_embeddings": True, "max_position_embeddings": model.max_position_embeddings,
    })  # fmt: skip
    layers = model.layer_counts() + draft.layer_counts()
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
    from planner.memory.edition import edition_of
    from planner.memory.expert_padding import expert_padding, padded_share

    model = get_model("openai/gpt-oss-20b")
    padding = expert_padding(get_gpu(gpu), edition_of(EngineSettings(version="0.19")), False)
    experts = [x for layer, _ in model.layer_counts() for x in layer.linears if x.group is TensorGroup.EXPERT]
    assert [ranks * padded_share(matrix, ranks, padding) for matrix in experts[:2]] == pytest.approx([factor, factor])
