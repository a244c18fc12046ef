"""Mixers that several families share, by hand."""

import pytest

from planner.model.config.decoder import Heads
from planner.model.config.fields import Fields
from planner.model.config.mixers import full_mixer, mamba2_mixer
from planner.model.shape import MixerKind


def test_attention_over_the_whole_sequence_or_a_window() -> None:
    heads = Heads(heads=32, kv_heads=8, head_dim=128)
    full, window = full_mixer(heads), full_mixer(heads, MixerKind.SLIDING, 4096)
    assert (full.kind, full.num_heads, full.num_kv_heads) == (MixerKind.FULL, 32, 8)
    assert (full.head_dim, full.value_head_dim, full.window_tokens) == (128, 128, None)
    assert (window.kind, window.window_tokens) == (MixerKind.SLIDING, 4096)


NEMOTRON = {"hidden_size": 4096, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128}
GRANITE = {"hidden_size": 4096, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128}


# A state of heads × head width × state width; convolution over inputs, B and C, of which all but one column are kept.
@pytest.mark.parametrize(("config", "prefix", "groups"), [(NEMOTRON, "mamba_", 8), (GRANITE, "mamba_d_", 1)])
def test_mamba_2_by_hand(config: dict[str, object], prefix: str, groups: int) -> None:
    mixer, linears, small = mamba2_mixer(Fields(config), prefix)
    inner, channels = 128 * 64, 128 * 64 + 2 * groups * 128
    assert mixer.state_elements == 128 * 64 * 128
    assert mixer.conv_elements == channels * 3
    assert sum(x.num_parameters for x in linears) == 4096 * (inner + channels + 128) + inner * 4096
    norm = inner if prefix == "mamba_" else 0
    assert small == channels * (4 + 1) + 3 * 128 + norm  # taps and bias; decay, skip and step bias of each head


def test_norm_and_bias_where_the_config_has_them() -> None:
    plain = mamba2_mixer(Fields(GRANITE), "mamba_d_")[2]
    assert mamba2_mixer(Fields(GRANITE), "mamba_d_", gated_norm=True)[2] - plain == 128 * 64
    without = mamba2_mixer(Fields(GRANITE | {"mamba_conv_bias": False}), "mamba_d_")[2]
    assert plain - without == 128 * 64 + 2 * 128


# Nemotron-H keeps states in the model's type, Nemotron 3 (with experts) and mamba_ssm_cache_dtype float32 in 4 bytes.
@pytest.mark.parametrize(
    ("changes", "size"), [({}, 2), ({"n_routed_experts": 8}, 4), ({"mamba_ssm_cache_dtype": "float32"}, 4)]
)
def test_bytes_of_a_state_element(changes: dict[str, object], size: int) -> None:
    assert mamba2_mixer(Fields(NEMOTRON | changes))[0].state_element_bytes == size
