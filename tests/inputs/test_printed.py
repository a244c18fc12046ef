"""Figures of a start-up log."""

import dataclasses

import pytest

from planner.errors import InvalidInput
from planner.inputs.printed import PrintedMemory


@pytest.mark.parametrize("name", [item.name for item in dataclasses.fields(PrintedMemory)])
def test_no_engine_prints_less_than_nothing(name):
    with pytest.raises(InvalidInput) as caught:
        PrintedMemory(**{name: -1})
    assert caught.value.field == name


def test_a_log_may_be_silent():
    assert set(dataclasses.astuple(PrintedMemory())) == {None}
