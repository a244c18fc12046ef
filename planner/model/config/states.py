"""Layers of families with Mamba, short convolutions or linear attention, with or without full attention.

Granite 4.0-H, Jamba, Mamba and Falcon-Mamba, LFM2, MiniMax-Text-01 and M1. Shapes as in the modelling files of Hugging
Face transformers; parameter counts agree with the hub's totals (tests/catalog/test_models.py).
"""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InvalidInput
from planner.model.config.blocks import gqa_linears, mlp_linears
from planner.model.config.decoder import Heads, feed_forward, read_heads
from planner.model.config.families import LLAMA, Family
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.config.mixers import full_mixer, mamba2_mixer
from planner.model.shape import Layer, Linear, Mixer, MixerKind, Shard, TensorGroup

LFM2_MULTIPLE = 256


def granite_hybrid_layers(fields: Fields) -> list[Layer]:
    """Granite 4.0-H: Mamba-2 or attention, experts in some sizes, and a shared MLP in every layer."""
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    names = fields.names("layer_types") or ["attention"] * fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    shared = mlp_linears(hidden, fields.integer("shared_intermediate_size"))
    experts, feed, small = None, shared, 0
    if fields.integer("num_experts", 0, at_least=0):
        experts, routed, small = feed_forward(fields, LLAMA, True)
        feed = routed + tuple(replace(linear, group=TensorGroup.SHARED_EXPERT) for linear in shared)
    made = {}
    for name in sorted(set(names)):
        if name == "mamba":
            mixer, linears, own = mamba2_mixer(fields, "mamba_d_", gated_norm=True)
        else:
            mixer, own = full_mixer(heads), 0
            linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
        made[name] = Layer(
            mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=own + small + 2 * hidden
        )
    return [made[name] for name in names]


def jamba_layers(fields: Fields) -> list[Layer]:
    """Jamba: attention in every eighth layer, Mamba in the others, experts in every second."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    attention = fields.integer("attn_layer_period", 8), fields.integer("attn_layer_offset", 4, at_least=0)
    sparse = fields.integer("expert_layer_period", 2), fields.integer("expert_layer_offset", 1, at_least=0)
    routed = fields.integer("num_experts", 16, at_least=0) > 1
    made: dict[tuple[bool, bool], Layer] = {}
    layers = []
    for index in range(num_layers):
        attends = index % attention[0] == attention[1]
        moe = routed and index % sparse[0] == sparse[1]
        if (attends, moe) not in made:
            if attends:
                mixer, own = full_mixer(heads), 0
                linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
            else:
                mixer, linears, own = mamba1_mixer(fields, "mamba_d_", inner_norms=True)
            experts, feed, small = feed_forward(fields, LLAMA, moe)
            made[attends, moe] = Layer(
                mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=own + small + 2 * hidden
            )
        layers.append(made[attends, moe])
    return layers


def mamba_layers(fields: Fields) -> list[Layer]:
    """Mamba and Falcon-Mamba: a Mamba-1 mixer and a norm in every layer, no feed-forward part."""
    mixer, linears, own = mamba1_mixer(fields, "", inner_norms=False)
    layer = Layer(mixer=mixer, linears=linears, norm_parameters=own + fields.integer("hidden_size"))
    return [layer] * fields.integer("num_hidden_layers", at_most=MAX_LAYERS)


def mamba1_mixer(fields: Fields, prefix: str, *, inner_norms: bool) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Mamba-1 block: mixer, matrices and small parameters.

    Parameters
    ----------
    fields : Fields
        The config.
    prefix : str
        "mamba_d_" for fields such as mamba_d_state, "" for names such as state_size.
    inner_norms : bool
        Whether step, B and C are normalised (Jamba).

    Returns
    -------
    tuple
        Mixer, matrices, number of small parameters.
    """
    hidden = fields.integer("hidden_size")
    inner = fields.integer("mamba_expand" if prefix else "expand", 2) * hidden
    state = fields.integer("mamba_d_state" if prefix else "state_size", 16)
    kernel = fields.integer("mamba_d_conv" if prefix else "conv_kernel", 4)
    if not prefix:
        inner = fields.integer("intermediate_size", inner)
    name = "mamba_dt_rank" if prefix else "time_step_rank"
    rank = -(-hidden // 16) if fields.raw(name) in (None, "auto") else fields.integer(name)
    group = TensorGroup.STATE

    def linear(name: str, inputs: int, outputs: int, shard: Shard, bias: bool = False) -> Linear:
        return Linear(name=name, group=group, in_features=inputs, out_features=outputs, shard=shard, bias=bias)

    linears = (
        linear("in_proj", hidden, 2 * inner, Shard.COLUMN),
        linear("x_proj", inner, rank + 2 * state, Shard.ROW),
        linear("dt_proj", rank, inner, Shard.COLUMN, bias=True),
        linear("out_proj", inner, hidden, Shard.ROW),
    )
    small = inner * (kernel + 1) + inner * state + inner + (rank + 2 * state if inner_norms else 0)
    mixer = Mixer(
        kind=MixerKind.STATE,
        num_heads=inner // state,
        num_kv_heads=1,
        head_dim=state,
        value_head_dim=state,
        state_elements=inner * state,
        conv_elements=inner * (kernel - 1),
        state_element_bytes=2,
    )
    return mixer, linears, small


def lfm2_layers(fields: Fields) -> list[Layer]:
    """LFM2: gated short convolutions and attention; experts after the first dense layers in LFM2-MoE."""
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    names = _lfm2_names(fields, num_layers)
    family = Family(qk_norm="head", routing_bias=fields.flag("use_expert_bias", False))
    dense_first = fields.integer("num_dense_layers", 0, at_least=0) if fields.has("num_experts") else num_layers
    made: dict[tuple[str, bool], Layer] = {}
    layers = []
    for index, name in enumerate(names):
        key = (name, index >= dense_first)
        if key not in made:
            mixer, linears, own = _short_convolution(fields) if name == "conv" else _normed_attention(hidden, heads)
            experts, feed, small = None, mlp_linears(hidden, _lfm2_width(fields)), 0
            if key[1]:
                experts, feed, small = feed_forward(fields, family, True)
            made[key] = Layer(
                mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=own + small + 2 * hidden
            )
        layers.append(made[key])
    return layers


def _lfm2_names(fields: Fields, num_layers: int) -> list[str]:
    names = fields.names("layer_types")
    if names is None:
        full = set(fields.integers("full_attn_idxs") or range(num_layers))
        names = ["full_attention" if index in full else "conv" for index in range(num_layers)]
    if len(names) != num_layers:
        raise InvalidInput("layer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
    return names


def _lfm2_width(fields: Fields) -> int:
    """Width of the dense MLP: two thirds of the stated one, rounded up, unless the config turns that off."""
    width = fields.integer("intermediate_size", fields.integer("block_ff_dim", 0, at_least=0) or None)
    if fields.has("num_experts") or not fields.flag("block_auto_adjust_ff_dim", True):
        return width
    factor = fields.raw("block_ffn_dim_multiplier")
    width = int((factor if isinstance(factor, (int, float)) else 1.0) * int(2 * width / 3))
    multiple = fields.integer("block_multiple_of", LFM2_MULTIPLE)
    return -(-width // multiple) * multiple


def _normed_attention(hidden: int, heads: Heads) -> tuple[Mixer, tuple[Linear, ...], int]:
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    return full_mixer(heads), linears, 2 * heads.head_dim


def _short_convolution(fields: Fields) -> tuple[Mixer, tuple[Linear, ...], int]:
    hidden, kernel = fields.integer("hidden_size"), fields.integer("conv_L_cache", 3)
    group = TensorGroup.STATE
    linears = (
        Linear(name="in_proj", group=group, in_features=hidden, out_features=3 * hidden, shard=Shard.COLUMN),
        Linear(name="out_proj", group=group, in_features=hidden, out_features=hidden, shard=Shard.ROW),
    )
    mixer = Mixer(
        kind=MixerKind.STATE,
        num_heads=fields.integer("num_attention_heads"),
        num_kv_heads=1,
        head_dim=kernel,
        value_head_dim=1,
        conv_elements=hidden * (kernel - 1),
        state_element_bytes=2,
    )
    return mixer, linears, hidden * kernel


def lightning_layers(fields: Fields) -> list[Layer]:
    """MiniMax-Text-01 and M1: lightning (linear) attention with a matrix state; every eighth layer is full."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    kinds = fields.integers("attn_type_list")
    if kinds is None:
        names = fields.names("layer_types") or ["full_attention" if i % 8 == 7 else "linear" for i in range(num_layers)]
        kinds = [int(name == "full_attention") for name in names]
    if len(kinds) != num_layers:
        raise InvalidInput("attn_type_list", f"{len(kinds)} entries", f"{num_layers} entries, one per layer")
    experts, feed, small = feed_forward(fields, LLAMA, True)
    full = Layer(
        mixer=full_mixer(heads),
        linears=gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim) + feed,
        experts=experts,
        norm_parameters=small + 2 * hidden,
    )
    width = heads.heads * heads.head_dim
    linears = tuple(
        Linear(name=name, group=TensorGroup.STATE, in_features=inputs, out_features=outputs, shard=shard)
        for name, inputs, outputs, shard in (
            ("qkv_proj", hidden, 3 * width, Shard.COLUMN),
            ("output_gate", hidden, width, Shard.COLUMN),
            ("out_proj", width, hidden, Shard.ROW),
        )
    )
    mixer = Mixer(
        kind=MixerKind.STATE,
        num_heads=heads.heads,
        num_kv_heads=heads.heads,
        head_dim=heads.head_dim,
        value_head_dim=heads.head_dim,
        state_elements=width * heads.head_dim,
        state_element_bytes=2,
    )
    linear = Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small + 2 * hidden + width)
    return [full if kind else linear for kind in kinds]
