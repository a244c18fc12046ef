"""Engine settings refuse what no engine takes, by name."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_loras": -1}, "max_loras"),
        ({"max_lora_rank": 0}, "max_lora_rank"),
        ({"kv_offload_gib": -1}, "kv_offload_gib"),
    ],
)  # fmt: skip
def test_bad_settings_name_their_field(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**settings)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(("name", "value"), [("kv_unified", "no"), ("ngram_on_gpu", "yes"), ("offline", 2)])
def test_switches_take_no_words(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name
