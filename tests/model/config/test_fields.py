"""Typed reading of configs that may come from anyone."""

import pytest

from planner.errors import InvalidInput
from planner.model.config.build import model_from_config


@pytest.mark.parametrize(
    "text",
    ["", "<html></html>", "[]", "null", "NaN", '{"hidden_size": NaN}', "x" * 3_000_000, '{"a":' * 50_000, "[" * 100_000,
     '{"hidden_size": ' + "9" * 6000 + "}"],
    ids=["empty", "html", "list", "null", "nan", "nan field", "3 MB", "deep object", "deep list", "digits"],
)  # fmt: skip
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        model_from_config(text)
