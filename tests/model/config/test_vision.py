"""Towers: parameters by closed form and published total, shape of the largest image."""

import pytest

from planner.model.config.build import model_from_config
from planner.model.shape import VisionTower


@pytest.mark.parametrize(
    ("model_type", "vision", "expected"),
    [
        ("qwen3_vl", {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "patch_size": 16},
         VisionTower(width=1152, intermediate_size=4304, gated=False, patch_elements=1536, most_patches=65_536,
                     item_tokens=16_384, learned_positions=True)),
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
