"""EAGLE-3 heads: a decoder layer that reads embedding and hidden states side by side, and an output head of its own.

Source: vLLM models/llama_eagle3.py. The embedding is that of the model for which they draft.
"""

from __future__ import annotations

from dataclasses import replace

from planner.model.config.fields import Fields
from planner.model.shape import Layer

EAGLE3 = "eagle3"
INPUTS = ("q_proj", "k_proj", "v_proj")
FUSED_LAYERS = 3  # hidden states of three layers of the model enter


def eagle3_layers(layers: list[Layer]) -> list[Layer]:
    """The layers, of which the first projects embedding and hidden state together, and normalises both."""
    first = layers[0]
    linears = tuple(
        replace(linear, in_features=2 * linear.in_features) if linear.name in INPUTS else linear
        for linear in first.linears
    )
    return [replace(first, linears=linears), *layers[1:]]


def eagle3_fusion(fields: Fields) -> int:
    """Parameters of the matrix that fuses the hidden states of three layers, the same on every rank."""
    hidden = fields.integer("hidden_size")
    return FUSED_LAYERS * fields.integer("target_hidden_size", hidden) * hidden
