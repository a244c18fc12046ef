"""Typed reading of configs that may come from anyone."""

import pytest

from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.fields import MAX_LAYERS, Fields, parse_config


@pytest.mark.parametrize(
    "text",
    ["", "<html></html>", "[]", "null", "NaN", '{"hidden_size": NaN}', "x" * 3_000_000, '{"a":' * 50_000, "[" * 100_000,
     '{"hidden_size": ' + "9" * 6000 + "}"],
    ids=["empty", "html", "list", "null", "nan", "nan field", "3 MB", "deep object", "deep list", "digits"],
)  # fmt: skip
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        model_from_config(text)


def test_text_and_parsed_file_are_the_same() -> None:
    assert parse_config('{"a": 1}') == parse_config({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("config", [[1], {1: 2}, 7, '{"a": NaN}', '{"a": Infinity}', "[]"])
def test_what_is_no_object_of_named_finite_fields_is_refused(config: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_config(config)  # type: ignore[arg-type]
    assert caught.value.field == "model_config"


def test_fields_of_the_language_model_stand_before_those_of_the_file() -> None:
    fields = Fields({"hidden_size": 1, "vocab_size": 2, "text_config": {"hidden_size": 3}, "model_type": "Qwen2_VL"})
    assert (fields.integer("hidden_size"), fields.integer("vocab_size")) == (3, 2)
    assert fields.outer_type == "qwen2_vl"


@pytest.mark.parametrize(
    ("older", "name"),
    [
        ("n_layer", "num_hidden_layers"),  # GPT-2
        ("n_embd", "hidden_size"),
        ("n_head_kv", "num_key_value_heads"),  # Falcon
        ("num_local_experts", "num_experts"),  # Mixtral
        ("n_routed_experts", "num_experts"),  # DeepSeek
        ("dtype", "torch_dtype"),  # transformers 5
    ],
)
def test_other_names_of_a_field(older: str, name: str) -> None:
    fields = Fields({older: 12})
    assert fields.has(name)
    assert fields.raw(name) == 12
    assert Fields({older: 12, name: 13}).raw(name) == 13


def test_null_is_not_given() -> None:
    fields = Fields({"head_dim": None})
    assert not fields.has("head_dim")
    assert fields.integer("head_dim", 128) == 128
    assert fields.estimated == []


def test_an_assumed_default_is_noted() -> None:
    fields = Fields({})
    assert fields.integer("max_position_embeddings", 4096, note=True) == 4096
    assert fields.estimated == ["max_position_embeddings = 4,096"]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert Fields({"x": 4096.0}).integer("x") == 4096


@pytest.mark.parametrize("value", [True, "12", 1.5, 0, -1, 10**10, [1], 10**40])
def test_counts_are_whole_and_within_bounds(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Fields({"x": value}).integer("x")
    assert caught.value.field == "x"


@pytest.mark.parametrize(
    ("read", "value"),
    [
        ("flag", 1),
        ("text_value", 7),
        ("text_value", "x" * 20_001),
        ("names", "full"),
        ("names", [1]),
        ("names", ["x"] * (MAX_LAYERS + 1)),
        ("integers", [1.5]),
        ("integers", [True]),
        ("integers", [-1]),
        ("section", [1]),
    ],
)
def test_wrong_types_are_refused_by_name(read: str, value: object) -> None:
    fields = Fields({"x": value})
    with pytest.raises(InvalidInput) as caught:
        fields.flag("x", False) if read == "flag" else getattr(fields, read)("x")
    assert caught.value.field == "x"


def test_what_is_missing_is_none_or_the_default() -> None:
    fields = Fields({})
    assert (fields.names("x"), fields.integers("x"), fields.section("x")) == (None, None, None)
    assert (fields.flag("x", True), fields.text_value("x", "y")) == (True, "y")
    with pytest.raises(InvalidInput, match="cannot be sized"):
        fields.integer("x")
