"""Configs and views of a shape that several tests of the config readers ask for."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import planner.catalog
from planner.model.config.build import model_from_config
from planner.model.shape import Linear, MixerKind, ModelShape

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def kinds(model: ModelShape) -> dict[MixerKind, int]:
    """Count the layers by how they mix tokens."""
    counted: dict[MixerKind, int] = {}
    for layer, count in model.layer_counts():
        counted[layer.mixer.kind] = counted.get(layer.mixer.kind, 0) + count
    return counted


def shapes(model: ModelShape, index: int) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and number of each matrix of a layer."""

    def shape(linear: Linear) -> tuple[int, int, int]:
        return linear.out_features, linear.in_features, linear.count

    return {linear.name: shape(linear) for linear in model.layers[index].linears}


@lru_cache
def published_config(name: str) -> dict[str, object]:
    """Read the config.json that the catalog keeps of a model."""
    entries = json.loads((Path(planner.catalog.__file__).parent / "models.json").read_text(encoding="utf-8"))["models"]
    return next(entry["config"] for entry in entries if entry["id"] == name)


def calibrated(section: dict[str, object]) -> ModelShape:
    """Make a dense model of four layers whose config has this quantization_config."""
    return model_from_config(
        {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
         "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "max_position_embeddings": 4096,
         "quantization_config": section}
    )  # fmt: skip


def ling(**change: Any) -> dict[str, Any]:
    config = {
        "model_type": "bailing_hybrid", "num_hidden_layers": 8, "hidden_size": 256, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 1000, "intermediate_size": 512,
        "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
        "layer_group_size": 3, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
        "max_position_embeddings": 4096,
    }  # fmt: skip
    return config | change
