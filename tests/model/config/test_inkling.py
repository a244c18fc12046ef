"""Inkling: published totals, windows, and what its config may not say."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.inkling import FULL_EVERY
from planner.model.shape import MixerKind
from tests.model.config.cases import ling

FULL, SLIDING = MixerKind.FULL, MixerKind.SLIDING


# Exact parameter counts of the hub (PyPI llmfit 1.1.17 hf_models.json); five of six layers have windows.
@pytest.mark.parametrize(
    ("name", "total", "layers"),
    [
        ("thinkingmachines/Inkling", 952_377_623_626, 66),
        ("thinkingmachines/Inkling-Small", 265_956_439_090, 42),
    ],
)
def test_published_total_is_met_exactly(name: str, total: int, layers: int) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    kinds = [layer.mixer.kind for layer in model.layers]
    assert kinds == [FULL if i % FULL_EVERY == FULL_EVERY - 1 else SLIDING for i in range(layers)]


@pytest.mark.parametrize(
    ("change", "field"),
    [({"local_layer_ids": [8]}, "local_layer_ids"), ({"swa_num_attention_heads": 3}, "swa_num_key_value_heads")],
)
def test_contradictions_are_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        model_from_config(ling(model_type="inkling_text", **change))
    assert caught.value.field == field
