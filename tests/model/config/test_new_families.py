"""Laguna, Inkling, Muse Glimmer, Ling 2.5 to 3.0, ERNIE 4.5 VL, DiffusionGemma, MiMo-V2.5.

Totals: exact parameter counts of the hub (PyPI llmfit 1.1.17 hf_models.json). Layers: model cards and recipes.
"""

from collections import Counter
from typing import Any

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.shape import MixerKind, ModelShape, TensorGroup
from tests.model.config.cases import ling

FULL, SLIDING, STATE, MLA = MixerKind.FULL, MixerKind.SLIDING, MixerKind.STATE, MixerKind.MLA


def kinds(model: ModelShape) -> dict[MixerKind, int]:
    return dict(Counter(layer.mixer.kind for layer in model.layers))


# main model + towers + draft layers
@pytest.mark.parametrize(
    ("name", "total", "layers"),
    [
        ("meta-models/Muse-Glimmer-30B", 29_776_626_688, {SLIDING: 39, FULL: 13}),
        ("poolside/Laguna-XS-2.1", 33_442_617_088, {SLIDING: 30, FULL: 10}),
        ("poolside/Laguna-S-2.1", 117_561_977_600, {SLIDING: 36, FULL: 12}),
        ("poolside/Laguna-M.1", 225_795_725_568, {FULL: 70}),
        ("inclusionAI/Ling-2.6-flash", 107_494_409_216, {STATE: 28, MLA: 4}),
        ("inclusionAI/Ling-2.6-1T", 1_025_414_425_344, {STATE: 70, MLA: 10}),
        ("inclusionAI/Ling-3.0-flash", 127_486_405_600, {STATE: 35, MLA: 7}),
        ("inclusionAI/Ling-3.0-tiny", 7_893_392_800, {STATE: 18, MLA: 6}),
        ("XiaomiMiMo/MiMo-V2.5-Pro", 1_023_182_841_600, {SLIDING: 60, FULL: 10}),
        ("baidu/ERNIE-4.5-VL-28B-A3B-PT", 29_399_294_336, {FULL: 28}),
        ("Qwen/Qwen3.8-2.4T-A95B", 2_446_182_725_504, {STATE: 69, FULL: 23}),
        ("mistralai/Mistral-Medium-3.5-128B", 127_704_210_176, {FULL: 88}),
    ],
)
def test_published_total_is_met_exactly(name: str, total: int, layers: dict[MixerKind, int]) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    assert kinds(model) == layers


# Active parameters per token of the model cards, in billions.
@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("poolside/Laguna-M.1", 23.4),
        ("poolside/Laguna-XS-2.1", 3.0),
        ("inclusionAI/Ling-2.6-1T", 63),
        ("inclusionAI/Ling-2.6-flash", 7.4),
        ("XiaomiMiMo/MiMo-V2.5-Pro", 42),
        ("Qwen/Qwen3.8-2.4T-A95B", 95),
    ],
)
def test_active_parameters_are_those_of_the_card(name: str, active: float) -> None:
    assert get_model(name).num_active_parameters / 1e9 == pytest.approx(active, rel=0.03)


# Bytes of KV cache per token in 16 bits: full layers only, 2 x KV heads x head dimension x 2; latent layers 576 x 2.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("poolside/Laguna-M.1", 70 * 2 * 8 * 128 * 2),
        ("thinkingmachines/Inkling", 11 * 2 * 8 * 128 * 2),
        ("meta-models/Muse-Glimmer-30B", 13 * 2 * 2 * 128 * 2),
        ("inclusionAI/Ling-2.6-flash", 4 * 576 * 2),
    ],
)
def test_cache_that_grows_with_the_context(name: str, expected: int) -> None:
    total = 0
    for layer in get_model(name).layers:
        mixer = layer.mixer
        if mixer.kind is FULL:
            total += mixer.num_kv_heads * (mixer.head_dim + mixer.value_head_dim) * 2
        elif mixer.kind is MLA:
            total += (mixer.kv_lora_rank + mixer.qk_rope_head_dim) * 2
    assert total == expected


def test_laguna_has_more_heads_in_its_windows() -> None:
    heads = {x.mixer.kind: x.mixer.num_heads for x in get_model("poolside/Laguna-XS-2.1").layers}
    assert heads == {FULL: 48, SLIDING: 64}  # ggml-org/llama.cpp pull 25595


# PrimeIntellect-ai/prime-rl pull 3229: g_proj.weight is [48, 3072] in Laguna S and [8192, 4096] in Laguna M.
@pytest.mark.parametrize(
    ("name", "shape"), [("poolside/Laguna-S-2.1", (48, 3072)), ("poolside/Laguna-M.1", (8192, 4096))]
)
def test_gate_of_laguna(name: str, shape: tuple[int, int]) -> None:
    first = get_model(name).layers[0]
    gate = next(linear for linear in first.linears if linear.name == "g_proj")
    assert (gate.out_features, gate.in_features) == shape


def test_ernie_vl_has_experts_of_two_widths() -> None:
    last = get_model("baidu/ERNIE-4.5-VL-28B-A3B-PT").layers[-1]
    experts = [x for x in last.linears if x.group is TensorGroup.EXPERT and x.name == "down_proj"]
    assert [(x.count, x.in_features) for x in experts] == [(64, 1536), (64, 512)]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (ling(layer_types=["linear_attention"]), "layer_types"),
        (ling(model_type="laguna", num_attention_heads_per_layer=[2]), "num_attention_heads_per_layer"),
        (ling(model_type="laguna", num_attention_heads_per_layer=[3] * 8), "num_attention_heads_per_layer"),
        (ling(model_type="laguna", mlp_layer_types=["sparse"]), "mlp_layer_types"),
        (ling(model_type="ernie4_5_moe_vl", moe_intermediate_size=[1, 2, 3]), "moe_intermediate_size"),
    ],
)
def test_contradictions_are_refused(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config)
    assert caught.value.field == field


def test_paddle_ocr_is_ernie_with_a_head_of_its_own() -> None:
    model = get_model("PaddlePaddle/PaddleOCR-VL")
    assert model.model_type == "ernie4_5"
    # ERNIE-4.5-0.3B and an untied head.
    assert model.num_parameters == 360_748_032 + 103_424 * 1024
