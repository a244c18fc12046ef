"""Factors on step times."""

import dataclasses

import pytest

from planner.errors import InvalidInput
from planner.inputs.scales import AS_PREDICTED, StepScales


def test_without_measurements_every_factor_is_one():
    assert dataclasses.astuple(AS_PREDICTED) == (1.0,) * 5


@pytest.mark.parametrize("name", [item.name for item in dataclasses.fields(StepScales)])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_time_cannot_vanish(name, value):
    with pytest.raises(InvalidInput) as caught:
        StepScales(**{name: value})
    assert caught.value.field == name
