"""Declarations of the inputs."""

import dataclasses

import pytest

from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.scenario.fields import ARRIVAL_KINDS, OPEN_LOOP_KINDS, TAKEN_OVER, fields_by_name
from planner.scenario.scenario import Scenario


def test_every_field_has_a_link_name_of_its_own():
    keys = [item.metadata["key"] for item in fields_by_name().values()]
    assert len(keys) == len(set(keys))
    assert "v" not in keys


def test_every_default_is_valid_and_every_field_has_its_place() -> None:
    assert set(fields_by_name()) == {item.name for item in dataclasses.fields(Scenario)}
    groups = [item.metadata["group"] for item in fields_by_name().values()]
    assert "" not in groups
    # The settings for tuning follow those of the engine.
    assert groups[max(i for i, name in enumerate(groups) if name == "engine") + 1] == "advanced"


@pytest.mark.parametrize("name", [name for name, item in fields_by_name().items() if item.metadata["maximum"]])
def test_bounds_are_those_that_the_scenario_keeps(name: str) -> None:
    meta = fields_by_name()[name].metadata
    assert meta["minimum"] <= meta["maximum"]
    too_much = meta["maximum"] + 1
    with pytest.raises(InvalidInput) as caught:
        Scenario(**{name: int(too_much) if meta["kind"] == "count" else float(too_much)})
    assert caught.value.field == name


def test_settings_that_the_engine_takes_over_are_the_engines() -> None:
    assert set(TAKEN_OVER) <= {item.name for item in dataclasses.fields(EngineSettings)}
    assert set(OPEN_LOOP_KINDS) < set(ARRIVAL_KINDS)
