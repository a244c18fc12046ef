"""One declaration of a field serves the check, the form and the link."""

import dataclasses
import math

import pytest

from planner.errors import InvalidInput
from planner.scenario.settings import MAX_CONFIG_TEXT, MAX_TEXT, check_setting, optional_setting, setting


@dataclasses.dataclass
class Example:
    count: int = setting(4, "c", "Count", minimum=1, maximum=10)
    number: float = setting(0.5, "n", "Number", minimum=0, maximum=1)
    flag: bool = setting(True, "f", "Flag")
    text: str = setting("", "t", "Text")
    model_config: str = setting("", "mc", "Config")
    choice: str = setting("a", "k", "Choice", choices=("a", "b"))
    open: int | None = optional_setting("o", "Open", kind="count", minimum=1, maximum=10)


FIELDS = {item.name: item for item in dataclasses.fields(Example)}


def test_the_kind_follows_from_the_default():
    kinds = {name: item.metadata["kind"] for name, item in FIELDS.items()}
    assert kinds == {
        "count": "count",
        "number": "number",
        "flag": "flag",
        "text": "text",
        "model_config": "text",
        "choice": "text",
        "open": "count",
    }
    assert FIELDS["open"].default is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 1),
        ("count", 10),
        ("number", 0),
        ("number", 1.0),
        ("flag", False),
        ("text", "Grüße\n\t" + "x" * 100),
        ("text", "x" * MAX_TEXT),
        ("model_config", "x" * MAX_CONFIG_TEXT),
        ("choice", "b"),
        ("open", None),
        ("open", 3),
    ],
)
def test_what_fits_passes(name, value):
    check_setting(FIELDS[name], value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "\ud800"),  # half of a surrogate pair
        ("count", 0),
        ("count", 11),
        ("count", 2.0),
        ("count", True),
        ("count", None),
        ("number", -0.1),
        ("number", math.nan),
        ("number", "0.5"),
        ("flag", 1),
        ("flag", "true"),
        ("text", 7),
        ("text", "x" * (MAX_TEXT + 1)),
        ("text", "a\x00b"),
        ("model_config", "x" * (MAX_CONFIG_TEXT + 1)),
        ("choice", "c"),
        ("choice", ["a"]),
        ("open", 0),
    ],
)
def test_what_does_not_fit_names_its_field(name, value):
    with pytest.raises(InvalidInput) as caught:
        check_setting(FIELDS[name], value)
    assert caught.value.field == name
