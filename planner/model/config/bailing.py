"""Ling and Ring 2.5 to 3.0 (bailing_hybrid): latent attention at the end of each group of layers, states in the rest.

Shapes as in transformers bailing_hybrid (3.0) and vLLM bailing_moe_linear.py (2.5, 2.6); totals equal the hub's
(tests/model/config/test_new_families.py).
"""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InvalidInput
from planner.model.config.blocks import gqa_linears, replicated_linear
from planner.model.config.decoder import feed_forward, matrix_state, mla_mixer, moe_flags
from planner.model.config.families import FAMILIES
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.shape import Layer, Linear, Mixer, Shard, TensorGroup

FAMILY = FAMILIES["bailing_hybrid"]
#: fields that only configs with Kimi delta attention (3.0) have; 2.5 and 2.6 have lightning attention
DELTA_FIELDS = ("short_conv_kernel_size", "kda_safe_gate", "kda_lower_bound", "no_kda_lora")


def bailing_hybrid_layers(fields: Fields) -> list[Layer]:
    """All layers: every `layer_group_size`-th one and those behind the last whole group have latent attention."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    latent, moe = _latent_flags(fields, num_layers), moe_flags(fields, num_layers)
    made: dict[tuple[bool, bool], Layer] = {}
    for key in sorted(set(zip(latent, moe, strict=True))):
        mixer, linears, small = _latent(fields) if key[0] else _linear_attention(fields)
        experts, feed, more = feed_forward(fields, FAMILY, key[1])
        small += more + 2 * fields.integer("hidden_size")
        made[key] = Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small)
    return [made[key] for key in zip(latent, moe, strict=True)]


def _latent_flags(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("layer_types")
    if names is not None:
        if len(names) != num_layers:
            raise InvalidInput("layer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
        return [name != "linear_attention" for name in names]
    group = fields.integer("layer_group_size", 1, at_most=MAX_LAYERS)
    return [(i + 1) % group == 0 or i >= num_layers // group * group for i in range(num_layers)]


def _has_delta_attention(fields: Fields) -> bool:
    return any(fields.has(name) for name in DELTA_FIELDS)


def _latent(fields: Fields) -> tuple[Mixer, tuple[Linear, ...], int]:
    mixer, linears, small = mla_mixer(fields)
    if _has_delta_attention(fields):  # a gate per head
        hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads", at_most=100_000)
        gate = Linear(name="g_proj", group=TensorGroup.ATTENTION, in_features=hidden, out_features=heads,
                      shard=Shard.COLUMN, quantizable=False)  # fmt: skip
        linears += (gate,)
    return mixer, linears, small


def _linear_attention(fields: Fields) -> tuple[Mixer, tuple[Linear, ...], int]:
    """A matrix state per head: of Kimi delta attention with full-rank gates, or of lightning attention."""
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads", at_most=100_000)
    head_dim = fields.integer("head_dim", max(1, hidden // heads), at_most=65_536)
    width = heads * head_dim
    state = TensorGroup.STATE
    delta = _has_delta_attention(fields)
    kernel = fields.integer("short_conv_kernel_size", 4)
    linears = tuple(replace(linear, group=state) for linear in gqa_linears(hidden, heads, heads, head_dim))
    for name in ("f_proj", "g_proj") if delta else ("g_proj",):
        linears += (Linear(name=name, group=state, in_features=hidden, out_features=width, shard=Shard.COLUMN),)
    if delta:
        linears += (replicated_linear("b_proj", state, hidden, heads, quantizable=False),)
    convolutions, wide = (3 * width * (kernel - 1), 4) if delta else (0, 2)
    mixer = matrix_state(heads, head_dim, conv_elements=convolutions, element_bytes=wide)
    small = 3 * width * kernel + width + heads + head_dim if delta else width + 2 * head_dim
    return mixer, linears, small
