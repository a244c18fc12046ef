"""Every input has words, and its values too."""

import pytest

from planner.dashboard.words import WORDS, field_label, field_value, short
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario


@pytest.mark.parametrize("name", fields_by_name())
def test_every_input_has_words(name):
    assert field_label(name)
    assert field_value(name, getattr(Scenario(), name))


@pytest.mark.parametrize("name", [name for name, item in fields_by_name().items() if item.metadata["choices"]])
def test_every_choice_can_be_told_from_the_others(name):
    choices = fields_by_name()[name].metadata["choices"]
    said = [field_value(name, choice) for choice in choices]
    assert len(set(said)) == len(choices)


def test_words_speak_of_inputs_that_there_are():
    assert set(WORDS) <= set(fields_by_name())
    for name, words in WORDS.items():
        choices = fields_by_name()[name].metadata["choices"]
        assert choices is None or set(words) <= set(choices)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("users", 12_345, "12,345"),
        ("enable_prefix_caching", True, "on"),
        ("enable_prefix_caching", False, "off"),
        ("num_replicas", None, "automatic"),
        ("model", "Qwen/Qwen3-8B", "Qwen3-8B"),
        ("ttft_target_s", 0.25, "0.25"),
        ("title", "", "none"),
    ],
)
def test_values_as_the_form_shows_them(name, value, said):
    assert field_value(name, value) == said


def test_a_unit_stands_behind_the_label():
    assert field_label("max_model_len").endswith("(tokens)")
    assert "(" not in field_label("users")


def test_a_hub_id_without_its_owner():
    assert short("Qwen/Qwen3-8B") == short("Qwen3-8B") == "Qwen3-8B"
