"""Bits per weight and what stays 16-bit, against published sizes and start-up logs."""

import dataclasses

import pytest

from planner.catalog.models import find_model_id, get_model, model_names
from planner.errors import InvalidInput
from planner.model.quantization import (
    kv_bits,
    kv_dtype_names,
    scheme,
    weight_bits,
    weight_bytes_by_group,
    weight_dtype_names,
)
from planner.model.shape import (
    ModelShape,
    TensorGroup,
)
from planner.tables import read_table
from planner.units import GIB
from tests.memory.cases import QWEN27

LLAMA_8B = get_model("meta-llama/Llama-3.1-8B-Instruct")


# Bits per quantised weight: format arithmetic (value bits + scale bits ÷ group).
@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("bf16", 16),
        ("fp8", 8 + 32 / 4096),
        ("fp8_block", 8 + 32 / 16384),
        ("awq_int4", 4 + 16 / 128 + 4 / 128),
        ("int4_g128", 4 + 16 / 128),
        ("int4_g32", 4 + 16 / 32),
        ("nvfp4", 4 + 8 / 16),
        ("mxfp4", 4 + 8 / 32),
        ("gguf_q8_0", 34 * 8 / 32),
        ("gguf_q6_k", 210 * 8 / 256),
    ],
)
def test_bits_per_weight_include_scales(name: str, bits: float) -> None:
    assert scheme(name).bits_per_weight == pytest.approx(bits, abs=0.005)


# AWQ: 2.10 GB of embedding and head + 3.63 GB; fp8: 2.10 + 6.98 GB; Q4_K_M file: 4.91 GB.
@pytest.mark.parametrize(
    ("name", "gigabytes"), [("awq_int4", 5.73), ("fp8", 9.08), ("gguf_q4_k_m", 4.91), ("bf16", 16.06)]
)
def test_llama_8b_has_its_published_size(name: str, gigabytes: float) -> None:
    assert sum(weight_bytes_by_group(LLAMA_8B, name).values()) / 1e9 == pytest.approx(gigabytes, rel=0.003)


# tools/quantize: a 70B file in Q4_K_M has 43.1 GB.
def test_gguf_of_70b_has_its_published_size() -> None:
    model = get_model("meta-llama/Llama-3.1-70B-Instruct")
    assert sum(weight_bytes_by_group(model, "gguf_q4_k_m").values()) / 1e9 == pytest.approx(43.1, rel=0.002)


# Weights of published checkpoints: vLLM logs of Llama-3.3-70B FP8-dynamic (67.72 GiB) and Llama-3.1-8B fp8 (8.49).
@pytest.mark.parametrize(
    ("name", "dtype", "gib"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", "fp8", 67.72),
        ("meta-llama/Llama-3.1-8B-Instruct", "fp8", 8.49),
        ("Qwen/Qwen3-30B-A3B", "auto", 56.88),
        ("deepseek-ai/DeepSeek-V2-Lite", "auto", 29.43),
    ],
)
def test_weights_agree_with_start_up_logs(name: str, dtype: str, gib: float) -> None:
    assert sum(weight_bytes_by_group(get_model(name), dtype).values()) / GIB == pytest.approx(gib, rel=0.01)


def test_embedding_and_head_stay_16_bit() -> None:
    sizes = weight_bytes_by_group(LLAMA_8B, "awq_int4")
    assert sizes[TensorGroup.EMBEDDING] == sizes[TensorGroup.LM_HEAD] == 2 * 128256 * 4096


def test_tied_head_costs_nothing() -> None:
    assert weight_bytes_by_group(get_model("google/gemma-2-2b-it"), "bf16")[TensorGroup.LM_HEAD] == 0


def test_auto_is_the_checkpoints_own_scheme() -> None:
    model = get_model("openai/gpt-oss-20b")
    assert weight_bits(model, "auto", TensorGroup.EXPERT) == 4.25
    assert weight_bits(model, "auto", TensorGroup.ATTENTION) == 16
    assert weight_bits(get_model("deepseek-ai/DeepSeek-V3"), "auto", TensorGroup.ATTENTION) == pytest.approx(
        8, abs=0.01
    )


def test_fp32_checkpoint_is_loaded_in_bf16() -> None:
    assert weight_bits(get_model("allenai/OLMo-2-1124-7B-Instruct"), "auto", TensorGroup.MLP) == 16


@pytest.mark.parametrize("dtype", weight_dtype_names())
def test_no_scheme_exceeds_fp32_or_vanishes(dtype: str) -> None:
    for name in model_names()[::9]:
        model = get_model(name)
        total = sum(weight_bytes_by_group(model, dtype).values())
        parameters = model.num_parameters + model.vision_parameters
        assert 0.25 * parameters < total <= 4.01 * parameters


def test_kv_bits() -> None:
    assert kv_bits("auto") == 16
    assert kv_bits("fp8") == 8
    assert kv_bits("q8_0") == 34 * 8 / 32
    assert kv_bits("q4_0") == 18 * 8 / 32
    assert "auto" in kv_dtype_names()
    with pytest.raises(InvalidInput):
        kv_bits("fp5")


@pytest.mark.parametrize("name", ["", "fp7", None, 3])
def test_unknown_scheme_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        scheme(name)  # type: ignore[arg-type]


# Llama-3.1-70B: 70,553,706,496 parameters × 2 B = 131.4165 GiB (llm-d-benchmark PR #381); all experts of Mixtral are
# resident, about 94 GB (llmfit #497); vramscout: Qwen3.8-27B in three schemes, draft layer and tower included.
def test_published_weights() -> None:
    model = get_model("meta-llama/Llama-3.1-70B-Instruct")
    assert model.num_parameters == 70_553_706_496
    assert sum(weight_bytes_by_group(model).values()) / GIB == pytest.approx(131.4165, abs=1e-4)
    mixtral = sum(weight_bytes_by_group(get_model("mistralai/Mixtral-8x7B-Instruct-v0.1")).values())
    assert mixtral / 1e9 == pytest.approx(94, rel=0.01)


@pytest.mark.parametrize(("dtype", "gib", "draft_bytes"), [("auto", 51.700, 2), ("fp8_block", 28.560, 1)])
def test_checkpoint_sizes_of_one_model(dtype: str, gib: float, draft_bytes: int) -> None:
    model = get_model("Qwen/Qwen3.8-27B")
    size = sum(weight_bytes_by_group(model, dtype).values()) + draft_bytes * model.mtp_parameters
    assert size / GIB == pytest.approx(gib, rel=0.04)


# NVFP4 of one model by publisher. NVIDIA (4-bit head, 8-bit attention): logs of vLLM on a DGX Spark (20.57 GiB with the
# draft layers) and on an RTX 5090 (19.78 GiB without). Inferact (16-bit attention): 12.02 GiB on each of two GPUs,
# draft layers included (vllm-project/recipes pull 810).
@pytest.mark.parametrize(
    ("publisher", "drafts", "gib"),
    [("nvidia/Qwen3.6-27B-NVFP4", 1, 20.57), ("nvidia/Qwen3.8-27B-NVFP4", 0, 19.78),
     ("Inferact/Qwen3.8-27B-NVFP4", 1, 24.04)],
)  # fmt: skip
def test_checkpoint_sizes_by_publisher(publisher: str, drafts: int, gib: float) -> None:
    model = get_model(publisher if find_model_id(publisher) else "Qwen/Qwen3.8-27B")
    size = sum(weight_bytes_by_group(model, "nvfp4").values()) + drafts * 2 * model.mtp_parameters
    assert size / GIB == pytest.approx(gib, rel=0.02)


def test_widths_of_one_checkpoint_stand_before_those_of_its_scheme() -> None:
    model = dataclasses.replace(get_model(QWEN27), quantization="nvfp4", group_bits=(("attention", 16.0),))
    usual = weight_bytes_by_group(get_model(QWEN27), "nvfp4")
    wide = weight_bytes_by_group(model, "auto")
    attention = next(group for group in wide if group.value == "attention")
    assert wide[attention] == pytest.approx(2 * usual[attention], rel=0.01)
    assert {k: v for k, v in wide.items() if k != attention} == {k: v for k, v in usual.items() if k != attention}


# Its list of 712 modules names norms, routers, parts of the indexer, embedding and head: attention is in 8 bits.
def test_lists_of_small_parts() -> None:
    model = get_model("zai-org/GLM-5-FP8")
    assert model.unquantized_groups == ("embedding", "lm_head")
    assert weight_bits(model, "auto", TensorGroup.ATTENTION) < 8.1


# The index of the 96 files: 1,560,860,324,864 bytes; convolutions and decays are fp32 there (22 MB).
def test_kimi_k3_quantises_its_routed_experts_only() -> None:
    sizes = weight_bytes_by_group(get_model("moonshotai/Kimi-K3"))
    fp32 = 69 * (3 * 12_288 * 4 + 12_288 + 2 * 128) + 92 * 896
    assert sum(sizes.values()) + 2 * fp32 == 1_560_860_324_864


# Hub size of nvidia/Kimi-K3-NVFP4: 1,609.9 GB.
def test_kimi_k3_in_nvfp4() -> None:
    assert sum(weight_bytes_by_group(get_model("nvidia/Kimi-K3-NVFP4")).values()) == pytest.approx(1609.9e9, rel=5e-4)


def quantised(model: ModelShape, bits: float) -> int:
    """Weights that a scheme of `bits` covers, from the bytes that it saves."""
    saved = sum(weight_bytes_by_group(model, "bf16").values()) - sum(weight_bytes_by_group(model).values())
    return round(saved / (2 - bits / 8))


# The MXFP8 checkpoint holds one scale more per 32 weights that it quantises: 13,239,705,600 of them.
def test_minimax_m3_in_mxfp8_quantises_all_but_router_head_and_tower() -> None:
    assert quantised(get_model("MiniMaxAI/MiniMax-M3-MXFP8"), 8.25) == 32 * (440_279_845_760 - 427_040_140_160)


# The FP8 checkpoint holds 11,612,160 scales more, one per block of 128 × 128: those of the routed experts. The NVFP4
# one has 129.2 GB on the hub.
def test_step_quantises_its_routed_experts_only() -> None:
    routed = 42 * 288 * 3 * 4096 * 1280
    assert routed == (199_395_913_536 - 199_384_301_376) * 128 * 128
    assert quantised(get_model("stepfun-ai/Step-3.5-Flash-FP8"), 8.002) == pytest.approx(routed, rel=1e-6)
    model = get_model("stepfun-ai/Step-3.7-Flash-NVFP4")
    assert sum(weight_bytes_by_group(model).values()) + 2 * model.mtp_parameters == pytest.approx(129.2e9, rel=1e-3)


# The hub counts the packed bytes of the NVFP4 checkpoint, two weights each: every matrix but embedding and head.
def test_nemotron_super_in_nvfp4_quantises_every_matrix() -> None:
    covered = quantised(get_model("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-NVFP4"), 4.5)
    assert 49_867_145_216 - covered + covered // 2 == 25_984_778_240


def test_each_group_of_a_family_is_known_and_has_a_source():
    families = {get_model(name).model_type for name in model_names()}
    rows = read_table("catalog/quantization_groups.csv")
    assert len({(row["scheme"], row["model_type"], row["group"]) for row in rows}) == len(rows)
    for row in rows:
        assert scheme(row["scheme"]).name == row["scheme"]
        assert row["model_type"] in families, row
        assert TensorGroup(row["group"])
        assert 4 <= float(row["bits"]) <= 16
        assert row["source"]


# Files of gpt-oss keep the experts in MXFP4 whatever the rest is in (unsloth/gpt-oss-20b-GGUF and gpt-oss-120b-GGUF).
@pytest.mark.parametrize(
    ("size", "scheme", "gigabytes"),
    [
        ("120b", "gguf_q8_0", 63.39),
        ("20b", "gguf_f16", 13.8),
        ("20b", "gguf_q4_k_m", 11.62),
        ("20b", "gguf_q4_0", 11.5),
    ],
)
def test_files_of_gpt_oss_keep_its_experts(size: str, scheme: str, gigabytes: float) -> None:
    model = get_model(f"openai/gpt-oss-{size}")
    assert sum(weight_bytes_by_group(model, scheme).values()) / 1e9 == pytest.approx(gigabytes, rel=0.035)
