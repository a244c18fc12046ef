"""A shape's counts in closed form, what it refuses, and the same model with other media or states."""

import dataclasses

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.memory.kv_layout import state_bytes
from planner.model.quantization import weight_bytes_by_group
from planner.model.shape import VisionTower, with_media, with_state_dtype
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
