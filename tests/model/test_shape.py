"""A shape's counts in closed form, what it refuses, and the same model with other media or states."""

import dataclasses
from collections.abc import Callable

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.memory.kv_layout import state_bytes
from planner.model.quantization import weight_bytes_by_group
from planner.model.shape import (
    Experts,
    Layer,
    Linear,
    Mixer,
    MixerKind,
    ModelShape,
    Shard,
    TensorGroup,
    VisionTower,
    with_media,
    with_state_dtype,
)
from planner.scenario.scenario import Scenario
from tests.memory.cases import QWEN27


def test_a_tower_refuses_impossible_widths() -> None:
    with pytest.raises(InvalidInput) as caught:
        VisionTower(width=0, intermediate_size=4, gated=False, patch_elements=4, most_patches=4, item_tokens=1)
    assert caught.value.field == "width"


# Qwen3.8-27B keeps states of 48 × 128 × 128 in fp32 (3 MiB a layer) unless told; a tail of 3 × 10,240 in 16 bits.
def test_states_in_another_type() -> None:
    model = get_model(QWEN27)
    state = next(layer.mixer for layer in model.layer_kinds if layer.mixer.is_state)
    narrow = with_state_dtype(model, "bfloat16")
    assert with_state_dtype(model, "auto") == model
    assert with_state_dtype(model, "float32") == model
    other = next(layer.mixer for layer in narrow.layer_kinds if layer.mixer.is_state)
    assert state_bytes(state, 1) == 48 * 128 * 128 * 4 + 3 * 10_240 * 2
    assert state_bytes(other, 1) == 48 * 128 * 128 * 2 + 3 * 10_240 * 2
    assert with_state_dtype(get_model("Qwen/Qwen3-8B"), "bfloat16") == get_model("Qwen/Qwen3-8B")
    with pytest.raises(InvalidInput) as caught:
        with_state_dtype(model, "int8")
    assert caught.value.field == "state_dtype"
    assert Scenario(model=QWEN27, state_dtype="bfloat16").model_shape == narrow


def test_what_a_model_is_sent() -> None:
    model = get_model("Qwen/Qwen2.5-VL-7B-Instruct")
    assert with_media(model, "auto") == model
    text = with_media(model, "none")
    assert (text.vision_parameters, text.vision_tower) == (0, None)
    # the tower of 32 blocks of 1,280: 676.6 million parameters with its merger, in 16 bits
    whole, without = (weight_bytes_by_group(shape, "auto") for shape in (model, text))
    assert sum(whole.values()) - sum(without.values()) == 2 * model.vision_parameters
    assert model.vision_parameters == pytest.approx(676.6e6, rel=0.001)
    plain = get_model("Qwen/Qwen3-8B")
    assert all(with_media(plain, media) == plain for media in ("auto", "images", "none"))
    with pytest.raises(InvalidInput) as caught:
        with_media(model, "audio")
    assert caught.value.field == "media"
    assert Scenario(model="Qwen/Qwen2.5-VL-7B-Instruct", max_model_len=8192, media="none").model_shape == text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"image_tokens": -5}, "image_tokens"),
        ({"ngram_parameters": -1}, "ngram_parameters"),
        ({"extended_context": 0}, "extended_context"),
        ({"kv_cache_quantization": "int3"}, "kv_cache_quantization"),
        ({"group_bits": (("nonsense", 4.0),)}, "group_bits"),
        ({"group_bits": (("attention", -4.0),)}, "group_bits"),
    ],
)
def test_shapes_that_cannot_be(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        dataclasses.replace(get_model("Qwen/Qwen3-8B"), **changes)  # type: ignore[arg-type]
    assert caught.value.field == field


def small(**changes: object) -> ModelShape:
    """Two layers of different kinds in the order 0, 1, 1, with figures that can be summed by head."""
    attention = Linear(name="q_proj", group=TensorGroup.ATTENTION, in_features=4, out_features=8, shard=Shard.COLUMN,
                       bias=True)  # fmt: skip
    experts = Linear(name="down_proj", group=TensorGroup.EXPERT, in_features=2, out_features=4, shard=Shard.EXPERT,
                     count=10)  # fmt: skip
    full = Mixer(kind=MixerKind.FULL, num_heads=2, num_kv_heads=1, head_dim=2, value_head_dim=2)
    kinds = (
        Layer(mixer=full, linears=(attention,), norm_parameters=4),
        Layer(mixer=full, linears=(attention, experts), norm_parameters=4,
              experts=Experts(num_experts=10, experts_per_token=2, intermediate_size=2)),
    )  # fmt: skip
    plain = {"name": "x", "model_type": "x", "hidden_size": 4, "vocab_size": 100, "max_position_embeddings": 64,
             "layer_kinds": kinds, "layer_order": (0, 1, 1)}  # fmt: skip
    return ModelShape(**(plain | changes))  # type: ignore[arg-type]


def test_parameters_by_hand() -> None:
    model = small()
    # q_proj 8 × (4 + 1) = 40, experts 10 × 2 × 4 = 80, norms 4: layers 44, 124, 124; embedding and head 400 each.
    assert [layer.num_parameters for layer in model.layers] == [44, 124, 124]
    assert model.num_parameters == 44 + 2 * 124 + 2 * 400
    assert small(tie_word_embeddings=True).num_parameters == 44 + 2 * 124 + 400
    assert small(lm_head_bias=True).lm_head_parameters == 400 + 100
    assert small(extra_embedding_parameters=7, ngram_parameters=1000).embedding_parameters == 400 + 7 + 1000


def test_active_parameters_by_hand() -> None:
    # Two of ten experts of 8 weights in two layers, and of the n-gram tables a few rows.
    assert small().num_active_parameters == small().num_parameters - 2 * 8 * 8
    assert small(ngram_parameters=1000).num_active_parameters == small().num_active_parameters


def test_layers_are_counted_and_ordered() -> None:
    model = small()
    assert model.num_layers == 3
    assert [count for _, count in model.layer_counts()] == [1, 2]
    assert model.layers == (model.layer_kinds[0], model.layer_kinds[1], model.layer_kinds[1])
    assert model.is_moe and not small(layer_order=(0,), layer_kinds=model.layer_kinds[:1]).is_moe
    assert (model.longest_context, small(extended_context=256).longest_context) == (64, 256)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Experts(num_experts=4, experts_per_token=5, intermediate_size=8), "experts_per_token"),
        (lambda: Mixer(kind=MixerKind.FULL, num_heads=8, num_kv_heads=3, head_dim=4, value_head_dim=4), "num_kv_heads"),
        (lambda: Mixer(kind=MixerKind.SLIDING, num_heads=8, num_kv_heads=8, head_dim=4, value_head_dim=4),
         "window_tokens"),
        (lambda: Mixer(kind=MixerKind.MLA, num_heads=8), "kv_lora_rank"),
        (lambda: small(layer_order=(0, 2)), "layer_order"),
        (lambda: small(hidden_size=0), "hidden_size"),
        (lambda: small(layer_order=()), "num_layers"),
    ],
)  # fmt: skip
def test_parts_that_cannot_be(make: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field == field


def test_a_cross_attention_cache_is_no_state() -> None:
    assert Mixer(kind=MixerKind.STATE, state_elements=64).is_state
    assert not Mixer(kind=MixerKind.STATE, window_tokens=1500).is_state
    assert not Mixer(kind=MixerKind.NONE).is_state
