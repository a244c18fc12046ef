"""Layers with states, by hand from small configs."""

import pytest

from planner.errors import InvalidInput
from planner.model.config import states
from planner.model.config.fields import Fields
from planner.model.shape import MixerKind

BASE = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
        "vocab_size": 100}  # fmt: skip
ATTENTION = 64 * 64 + 2 * 64 * 32 + 64 * 64
MLP = 3 * 64 * 128


# Mamba-1 (mamba-2.8b's shape in small): 2 × hidden inside, 16 states a channel, a step rank of hidden ÷ 16.
def test_mamba_1_by_hand() -> None:
    mixer, linears, small = states.mamba1_mixer(Fields(BASE | {"intermediate_size": 128}), "", inner_norms=False)
    inner, state, rank, kernel = 128, 16, 4, 4
    matrices = 64 * 2 * inner + inner * (rank + 2 * state) + (rank * inner + inner) + inner * 64
    assert sum(x.num_parameters for x in linears) == matrices
    assert small == inner * (kernel + 1) + inner * state + inner
    assert (mixer.state_elements, mixer.conv_elements) == (inner * state, inner * (kernel - 1))
    normed = states.mamba1_mixer(Fields(BASE), "mamba_d_", inner_norms=True)[2]
    assert normed - small == rank + 2 * state


def test_mamba_layers_have_no_feed_forward_part() -> None:
    layers = states.mamba_layers(Fields(BASE | {"num_hidden_layers": 3}))
    assert len(layers) == 3
    assert {layer.mixer.kind for layer in layers} == {MixerKind.STATE}
    assert layers[0].norm_parameters == states.mamba1_mixer(Fields(BASE), "", inner_norms=False)[2] + 64


# Jamba's config: attention in layers 4, 12, …, experts in every odd one.
def test_jamba_deals_attention_and_experts() -> None:
    config = BASE | {"num_hidden_layers": 16, "num_experts": 4, "num_experts_per_tok": 2}
    layers = states.jamba_layers(Fields(config))
    assert [i for i, layer in enumerate(layers) if layer.mixer.kind is MixerKind.FULL] == [4, 12]
    assert [i for i, layer in enumerate(layers) if layer.experts is not None] == list(range(1, 16, 2))
    assert layers[4].num_parameters == ATTENTION + MLP + 2 * 64


# Granite 4.0-H: a shared MLP in every layer beside the experts.
def test_granite_has_a_shared_mlp_in_every_layer() -> None:
    config = BASE | {
        "layer_types": ["mamba", "attention"], "shared_intermediate_size": 256, "mamba_n_heads": 8, "mamba_d_head": 16,
        "mamba_d_state": 32, "num_hidden_layers": 2,
    }  # fmt: skip
    state, attention = states.granite_hybrid_layers(Fields(config))
    assert (state.mixer.kind, attention.mixer.kind) == (MixerKind.STATE, MixerKind.FULL)
    assert attention.num_parameters == ATTENTION + 3 * 64 * 256 + 2 * 64
    assert state.mixer.state_elements == 8 * 16 * 32


# LFM2: two thirds of the stated width, rounded up to 256; a convolution of three columns keeps two.
@pytest.mark.parametrize(
    ("changes", "width"),
    [({}, 256), ({"block_auto_adjust_ff_dim": False}, 128), ({"block_ffn_dim_multiplier": 4.0}, 512)],
)
def test_lfm2_by_hand(changes: dict[str, object], width: int) -> None:
    config = BASE | {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]} | changes
    convolution, attention = states.lfm2_layers(Fields(config))
    assert convolution.num_parameters == 64 * 3 * 64 + 64 * 64 + 3 * 64 + 3 * 64 * width + 2 * 64
    assert convolution.mixer.conv_elements == 64 * 2
    assert attention.num_parameters == ATTENTION + 2 * 16 + 3 * 64 * width + 2 * 64


# MiniMax-Text-01: a matrix of heads × 128 × 128 a sequence in seven layers of eight.
def test_lightning_attention_by_hand() -> None:
    config = BASE | {"num_hidden_layers": 8, "num_local_experts": 4, "num_experts_per_tok": 2}
    layers = states.lightning_layers(Fields(config))
    assert [layer.mixer.kind for layer in layers] == [MixerKind.STATE] * 7 + [MixerKind.FULL]
    assert layers[0].mixer.state_elements == 4 * 16 * 16
    assert layers[0].num_parameters - layers[7].num_parameters == (3 + 1 + 1) * 64 * 64 + 64 - ATTENTION


@pytest.mark.parametrize(
    ("make", "changes", "field"),
    [
        (states.lfm2_layers, {"layer_types": ["conv"]}, "layer_types"),
        (states.lightning_layers, {"attn_type_list": [0]}, "attn_type_list"),
    ],
)
def test_lists_have_one_entry_per_layer(make, changes, field) -> None:
    config = BASE | {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2} | changes
    with pytest.raises(InvalidInput) as caught:
        make(Fields(config))
    assert caught.value.field == field


# The first LFM2 configs number the layers with attention; without numbers or names every layer attends.
def test_lfm2_by_numbers_of_layers() -> None:
    numbered = states.lfm2_layers(Fields(BASE | {"num_hidden_layers": 3, "full_attn_idxs": [1]}))
    assert [layer.mixer.kind for layer in numbered] == [MixerKind.STATE, MixerKind.FULL, MixerKind.STATE]
    plain = states.lfm2_layers(Fields(BASE | {"num_hidden_layers": 3}))
    assert {layer.mixer.kind for layer in plain} == {MixerKind.FULL}
