"""Shapes of a day and start-up times: complete, with a source."""

import pytest

from planner.catalog.day_shapes import day_shape, engine_start_s
from planner.errors import InvalidInput
from planner.scenario.times import DAY_SHAPES
from planner.tables import read_table


def test_shapes_have_24_hours_and_reach_the_peak():
    for name in set(DAY_SHAPES) - {"drawn"}:
        shape = day_shape(name)
        assert len(shape) == 24
        assert max(shape) == 1.0
        assert min(shape) > 0
    with pytest.raises(InvalidInput, match="day_shape"):
        day_shape("weekend")


def test_every_row_has_a_source():
    assert all(row["source"] for name in ("day_shapes", "startup_times") for row in read_table(f"catalog/{name}.csv"))


def test_engines_without_a_row_take_the_other():
    assert engine_start_s("nobody") == engine_start_s("other")
    assert engine_start_s("vllm")[0] > engine_start_s("llamacpp")[0]
