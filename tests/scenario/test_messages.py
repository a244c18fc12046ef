"""Errors and help speak the language of the form."""

import pytest

from planner.errors import Infeasible, InvalidInput
from planner.scenario.fields import fields_by_name
from planner.scenario.messages import message


def test_a_setting_is_named_by_label_and_name():
    error = InvalidInput("max_model_len", 5, "at least 16")
    assert message(error) == "Context length (max_model_len) = 5 is not valid: expected at least 16."


@pytest.mark.parametrize("error", [InvalidInput("--trace", "x.csv", "a file"), Infeasible("1 GiB short.", ["fp8"])])
def test_other_errors_read_as_they_are(error):
    assert message(error) == str(error)


@pytest.mark.parametrize("name", fields_by_name())
def test_every_input_explains_itself(name):
    meta = fields_by_name()[name].metadata
    assert meta["help"].endswith(".")
    if meta["optional"]:
        assert "Empty:" in meta["help"]


def test_a_file_is_named_by_what_it_is():
    said = message(InvalidInput("file", "a zip archive", "the text itself: a log"))
    assert said == "Headroom cannot use this file (a zip archive): expected the text itself: a log."
    assert len(message(InvalidInput("file", "x" * 500, "a log"))) < 120
