"""Ling 2.5 to 3.0: layers with states and layers with latent attention."""

import pytest

from planner.catalog.models import get_model
from planner.model.config.bailing import DELTA_FIELDS
from planner.model.config.build import model_from_config
from planner.model.shape import MixerKind
from tests.model.config.cases import ling

STATE, MLA = MixerKind.STATE, MixerKind.MLA


# 32 heads of 128 x 128 in 16 bits (vLLM bailing_moe_linear.py); Kimi delta attention keeps fp32 and convolutions.
def test_states_of_ling() -> None:
    lightning = next(x.mixer for x in get_model("inclusionAI/Ling-2.6-flash").layers if x.mixer.kind is STATE)
    assert (lightning.state_elements, lightning.state_element_bytes, lightning.conv_elements) == (524_288, 2, 0)
    delta = next(x.mixer for x in get_model("inclusionAI/Ling-3.0-flash").layers if x.mixer.kind is STATE)
    assert (delta.state_elements, delta.state_element_bytes, delta.conv_elements) == (524_288, 4, 3 * 3 * 4096)


# Layers behind the last whole group attend, too (is_linear_layer in vLLM).
def test_layers_behind_the_last_group_of_ling_attend() -> None:
    model = model_from_config(ling())
    assert [x.mixer.kind is MLA for x in model.layers] == [False, False, True, False, False, True, True, True]


# Kimi delta attention of 2 heads x 128: q, k, v, o and two gates of full rank, and a gate per head. Lightning attention
# has one gate and no convolution.
@pytest.mark.parametrize("field", DELTA_FIELDS)
def test_fields_of_delta_attention_change_the_layers(field: str) -> None:
    first = model_from_config(ling(**{field: 4})).layers[0]
    attention = {x.name for x in model_from_config(ling()).layers[0].linears}
    assert {x.name for x in first.linears} - attention == {"f_proj", "b_proj"}
    assert (first.mixer.state_elements, first.mixer.conv_elements) == (2 * 128 * 128, 3 * 256 * 3)
