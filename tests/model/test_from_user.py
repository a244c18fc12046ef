"""Models that are not in the catalog: pasted, or entered by hand."""

import json

import pytest

from planner.errors import InvalidInput
from planner.model.from_user import custom_shape, shape_from_config
from tests.model.config.cases import LLAMA

FIGURES = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_kv_heads": 8,
    "head_dim": 128,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "num_experts": 0,
    "experts_per_token": 2,
    "moe_intermediate_size": 4096,
}


def test_a_pasted_config_is_the_model() -> None:
    # Llama 3.1 8B: 8,030,261,248 parameters on the hub.
    assert shape_from_config(json.dumps(LLAMA)).num_parameters == 8_030_261_248
    assert shape_from_config(json.dumps(LLAMA)) is shape_from_config(json.dumps(LLAMA))


@pytest.mark.parametrize("text", ["", "no json", "[", "[" * 100_000, "[1]", "7"])
def test_what_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shape_from_config(text)
    assert caught.value.field == "model_config"


def test_figures_by_hand_without_experts_ignore_those_of_experts() -> None:
    model = custom_shape(**FIGURES)
    assert model.num_parameters == 8_030_261_248
    assert not model.is_moe


def test_figures_by_hand_with_experts() -> None:
    model = custom_shape(**(FIGURES | {"num_experts": 64}))
    experts = 32 * (64 * 3 * 4096 * 4096 + 64 * 4096)  # and a router a layer
    assert model.num_parameters == 8_030_261_248 - 32 * 3 * 4096 * 14_336 + experts
    idle = 32 * 62 * 3 * 4096 * 4096
    assert model.num_active_parameters == model.num_parameters - idle


def test_a_shape_by_hand_has_no_context_limit_of_its_own() -> None:
    assert custom_shape(**FIGURES).longest_context >= 10_000_000


def test_impossible_figures_name_their_field() -> None:
    with pytest.raises(InvalidInput) as caught:
        custom_shape(**(FIGURES | {"num_kv_heads": 5}))
    assert caught.value.field == "num_kv_heads"


def test_experts_per_token_are_those_entered() -> None:
    model = custom_shape(**(FIGURES | {"num_experts": 64, "experts_per_token": 6}))
    assert {layer.experts.experts_per_token for layer in model.layer_kinds if layer.experts is not None} == {6}
