"""Towers: parameters by closed form and published total, shape of the largest image."""

import pytest

from planner.model.config.build import model_from_config
from planner.model.config.fields import Fields
from planner.model.config.vision import image_tokens, vision_parameters, vision_tower
from planner.model.shape import VisionTower


@pytest.mark.parametrize(
    ("model_type", "vision", "expected"),
    [
        ("qwen3_vl", {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "patch_size": 16},
         VisionTower(width=1152, intermediate_size=4304, gated=False, patch_elements=1536, most_patches=65_536,
                     item_tokens=16_384, learned_positions=True, deep_features=3)),
        ("mistral3", {"hidden_size": 1024}, None),
    ],
)  # fmt: skip
def test_shape_of_a_tower_in_a_config(model_type: str, vision: dict[str, int], expected: VisionTower | None) -> None:
    text = {"model_type": "qwen3", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
            "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "head_dim": 128,
            "max_position_embeddings": 4096}  # fmt: skip
    assert (
        model_from_config({"model_type": model_type, "text_config": text, "vision_config": vision}).vision_tower
        == expected
    )


# Qwen2.5-VL-7B: 8,292,166,656 parameters on the hub, of which Qwen2.5-7B's language model has 7,615,616,512.
def test_tower_of_qwen2_5_vl_is_what_the_language_model_is_not() -> None:
    config = {
        "model_type": "qwen2_5_vl",
        "hidden_size": 3584,
        "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "patch_size": 14},
    }
    assert vision_parameters(Fields(config)) == 8_292_166_656 - 7_615_616_512


def test_a_text_only_model_has_no_tower() -> None:
    fields = Fields({"model_type": "qwen2", "hidden_size": 3584})
    assert (vision_parameters(fields), vision_tower(fields), image_tokens(fields)) == (0, None, 0)


# Blocks of four projections and two MLP matrices, and a two-layer projector.
def test_an_unknown_tower_is_estimated_and_says_so() -> None:
    fields = Fields(
        {
            "model_type": "unheard_of",
            "hidden_size": 100,
            "vision_config": {"num_hidden_layers": 3, "hidden_size": 10, "intermediate_size": 20},
        }
    )
    assert vision_parameters(fields) == 3 * (4 * 10 * 10 + 2 * 10 * 20) + 10 * 100 + 100 * 100
    assert any("vision tower" in text for text in fields.estimated)


# 65,536 patches are 16,384 tokens of 2 × 2; colours × two frames × 14 × 14 elements a patch.
def test_largest_image_of_qwen2_vl() -> None:
    tower = vision_tower(Fields({"model_type": "qwen2_vl", "hidden_size": 1536, "vision_config": {"embed_dim": 1280}}))
    assert tower is not None
    assert tower.most_patches == 4 * tower.item_tokens == 65_536
    assert tower.patch_elements == 3 * 2 * 14 * 14
    assert (tower.intermediate_size, tower.gated, tower.videos_as_images) == (4 * 1280, False, True)


# vLLM gemma4_mm.py: 32 frames of 70 tokens, nine patches each; the whole of an image attends to itself (#42687).
def test_images_of_gemma_4_enter_whole() -> None:
    text = {"model_type": "gemma4_text", "hidden_size": 2816, "use_bidirectional_attention": "vision"}
    fields = Fields({"model_type": "gemma4", "text_config": text, "vision_config": {"hidden_size": 1152}})
    tower = vision_tower(fields)
    assert tower is not None
    assert tower.most_patches == 32 * 70 * 9
    assert image_tokens(fields) == tower.item_tokens == 2496
    assert (
        image_tokens(Fields({"model_type": "gemma4", "text_config": text | {"use_bidirectional_attention": None}})) == 0
    )
