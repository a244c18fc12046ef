"""Families with a builder of their own: Nemotron-NAS, Llama 3.2 Vision, DeciLM."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.memory.kv_layout import kv_bytes_for
from planner.model.config.build import model_from_config
from planner.model.shape import MixerKind
from tests.model.config.cases import kinds


# 64 of 162 blocks attend, with 128 / 16 KV heads each; 81 blocks hold nothing at all.
def test_nemotron_ultra_caches_in_its_attention_blocks_only() -> None:
    model = get_model("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1")
    assert kinds(model) == {MixerKind.FULL: 64, MixerKind.NONE: 98}
    assert sum(layer.num_parameters == 0 for layer in model.layers) == 81
    assert kv_bytes_for(model, 1) == 64 * 2 * 8 * 128 * 2


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
    assert kv_bytes_for(model, 10) == 10 * (4 + 2 + 1) * 2 * 128 * 2
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | {"num_key_value_heads_per_layer": [4]})
    assert caught.value.field == "num_key_value_heads_per_layer"


def test_cross_attention_caches_one_image() -> None:
    layers = get_model("meta-llama/Llama-3.2-11B-Vision-Instruct").layers
    assert [index for index, layer in enumerate(layers) if layer.mixer.window_tokens] == [3, 8, 13, 18, 23, 28, 33, 38]
    assert layers[3].mixer.window_tokens == 6404
