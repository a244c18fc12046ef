"""Models that are not in the catalog: a pasted config.json, or dimensions entered by hand."""

from __future__ import annotations

import json
from functools import lru_cache

from planner.errors import InvalidInput
from planner.model.config.build import model_from_config, model_from_shape
from planner.model.shape import ModelShape


@lru_cache(maxsize=256)
def shape_from_config(text: str) -> ModelShape:
    """Shape of a pasted config.json.

    Raises
    ------
    InvalidInput
        When it is not JSON or does not describe a model.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("model_config", text, "JSON, as in a Hugging Face config.json") from error
    return model_from_config(config)


@lru_cache(maxsize=256)
def custom_shape(
    num_layers: int,
    hidden_size: int,
    num_attention_heads: int,
    num_kv_heads: int,
    head_dim: int,
    intermediate_size: int,
    vocab_size: int,
    num_experts: int,
    experts_per_token: int,
    moe_intermediate_size: int,
) -> ModelShape:
    """Shape of a model entered by its dimensions; 0 experts = dense."""
    return model_from_shape(
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_attention_heads=num_attention_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        intermediate_size=intermediate_size,
        vocab_size=vocab_size,
        num_experts=num_experts,
        experts_per_token=experts_per_token if num_experts else 0,
        moe_intermediate_size=moe_intermediate_size if num_experts else 0,
        max_position_embeddings=100_000_000,
        name="custom",
    )
