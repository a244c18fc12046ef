"""Families with a builder of their own: Nemotron-NAS, Llama 3.2 Vision, DeciLM."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.fields import Fields
from planner.model.config.hybrids import MLLAMA_IMAGE_TOKENS, hybrid_layers
from planner.model.shape import MixerKind
from tests.memory.cases import sequence_bytes
from tests.model.config.cases import kinds, published_config


# 64 of 162 blocks attend, with 128 / 16 KV heads each; 81 blocks hold nothing at all.
def test_nemotron_ultra_caches_in_its_attention_blocks_only() -> None:
    model = get_model("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1")
    assert kinds(model) == {MixerKind.FULL: 64, MixerKind.NONE: 98}
    assert sum(layer.num_parameters == 0 for layer in model.layers) == 81
    assert sequence_bytes(model, 1) == 64 * 2 * 8 * 128 * 2


# ffn_mult gives two thirds of its multiple of the hidden width, in steps of 256; linear stand-ins are square.
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"attention": {"no_op": True}, "ffn": {"no_op": True}}, 0),
        ({"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3125}}, 3 * 4096 * 3584 + 4096),
        ({"attention": {"no_op": True}, "ffn": {"intermediate_size": 1000}}, 3 * 4096 * 1000 + 4096),
        ({"attention": {"replace_with_linear": True}, "ffn": {"replace_with_linear": True}}, 2 * 4096 * 4097),
        ({"attention": {"n_heads_in_group": 4}, "ffn": {"no_op": True}}, 2 * 4096 * (4096 + 1024) + 4096),
        ({"attention": {"num_key_value_heads": 8}, "ffn": {"no_op": True}}, 2 * 4096 * (4096 + 1024) + 4096),
    ],
)
def test_blocks_of_nemotron_nas(block: dict[str, object], expected: int) -> None:
    config = {"model_type": "nemotron-nas", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 1,
              "vocab_size": 100, "block_configs": [block]}  # fmt: skip
    assert model_from_config(config).layers[0].num_parameters == expected


# DeciLM lists the KV heads of each layer; other figures are Llama's.
def test_kv_heads_of_decilm_differ_by_layer() -> None:
    config = {
        "model_type": "deci", "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
        "num_hidden_layers": 3, "vocab_size": 32_000, "num_key_value_heads_per_layer": [4, 2, 1],
    }  # fmt: skip
    model = model_from_config(config)
    assert [layer.mixer.num_kv_heads for layer in model.layers] == [4, 2, 1]
    assert sequence_bytes(model, 10) == 10 * (4 + 2 + 1) * 2 * 128 * 2
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | {"num_key_value_heads_per_layer": [4]})
    assert caught.value.field == "num_key_value_heads_per_layer"


def test_cross_attention_caches_one_image() -> None:
    layers = get_model("meta-llama/Llama-3.2-11B-Vision-Instruct").layers
    assert [index for index, layer in enumerate(layers) if layer.mixer.window_tokens] == [3, 8, 13, 18, 23, 28, 33, 38]
    assert layers[3].mixer.window_tokens == 6404


BASE = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
        "vocab_size": 100}  # fmt: skip
ATTENTION = 64 * 64 + 2 * 64 * 32 + 64 * 64


# Four tiles of 40 × 40 patches and a class token each (config of Llama 3.2 Vision: image_size 560, patch 14).
def test_tokens_of_one_image_of_llama_3_2_vision() -> None:
    assert MLLAMA_IMAGE_TOKENS == 4 * ((560 // 14) ** 2 + 1)


# Llama 4: every fourth layer attends to all; experts in every second layer here, with a shared one beside them.
def test_llama_4_by_hand() -> None:
    config = BASE | {
        "num_hidden_layers": 8,
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2,
        "intermediate_size_mlp": 256,
        "attention_chunk_size": 32,
    }
    layers = hybrid_layers(Fields(config), "llama4")
    assert [layer.mixer.kind for layer in layers] == 2 * [*3 * [MixerKind.CHUNKED], MixerKind.FULL]
    assert {layer.mixer.window_tokens for layer in layers} == {32, None}
    dense = ATTENTION + 3 * 64 * 256 + 2 * 64
    routed = ATTENTION + 5 * 3 * 64 * 128 + 4 * 64 + 2 * 64
    assert [layer.num_parameters for layer in layers] == 4 * [dense, routed]


def test_nemotron_h_reads_its_pattern() -> None:
    config = BASE | {"hybrid_override_pattern": "M*-", "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
                     "ssm_state_size": 32, "num_hidden_layers": 3}  # fmt: skip
    layers = hybrid_layers(Fields(config), "nemotron_h")
    assert [layer.mixer.kind for layer in layers] == [MixerKind.STATE, MixerKind.FULL, MixerKind.NONE]
    assert layers[0].mixer.state_elements == 8 * 16 * 32
    assert layers[1].num_parameters == ATTENTION + 64
    assert layers[2].num_parameters == 2 * 64 * 128 + 64  # an MLP without a gate
    listed = {"layers_block_type": ["mamba", "attention", "mlp"]}
    newer = {key: value for key, value in config.items() if key != "hybrid_override_pattern"} | listed
    assert hybrid_layers(Fields(newer), "nemotron_h") == layers


@pytest.mark.parametrize(
    ("model_type", "config", "field"),
    [
        ("nemotron_h", {"hybrid_override_pattern": "MX", "num_hidden_layers": 2}, "hybrid_override_pattern"),
        ("nemotron-nas", {"block_configs": [{}], "num_hidden_layers": 2}, "block_configs"),
        ("nemotron-nas", {"block_configs": [{"ffn": {"ffn_mult": True}, "attention": {"no_op": True}}],
                          "num_hidden_layers": 1}, "ffn_mult"),
        ("deepseek_v4", {"compress_ratios": [4], "num_hidden_layers": 2}, "compress_ratios"),
        ("mimo_v2", {"hybrid_layer_pattern": [1], "num_hidden_layers": 2}, "hybrid_layer_pattern"),
        ("llama4", {"no_rope_layers": [1], "num_hidden_layers": 2, "num_local_experts": 4}, "no_rope_layers"),
    ],
)  # fmt: skip
def test_lists_that_do_not_fit_are_refused(model_type: str, config: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        hybrid_layers(Fields(BASE | config), model_type)
    assert caught.value.field == field


# DeepSeek-V4-Flash: two plain layers first, then 4:1 and 128:1 in turn (compress_ratios of its config).
def test_compression_of_deepseek_v4() -> None:
    ratios = published_config("deepseek-ai/DeepSeek-V4-Flash")["compress_ratios"]
    layers = get_model("deepseek-ai/DeepSeek-V4-Flash").layers
    expected = [max(1, ratio) for ratio in ratios[: len(layers)]]  # type: ignore[index]
    assert [layer.mixer.kv_compression for layer in layers] == expected
    assert set(expected) == {1, 4, 128}
