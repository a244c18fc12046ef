"""Bits per weight and what stays 16-bit, against published sizes and start-up logs."""

import pytest

from planner.catalog.models import get_model, model_names
from planner.errors import InvalidInput
from planner.model.quantization import (
    kv_bits,
    kv_dtype_names,
    scheme,
    weight_bits,
    weight_bytes_by_group,
    weight_dtype_names,
)
from planner.model.shape import TensorGroup
from planner.units import GIB

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
