"""Settings for tuning: each is off or as the engine until it is set."""

import dataclasses

import pytest

from planner.catalog.engines import engine_names, get_engine
from planner.scenario.advanced import ROUTERS, AdvancedEngine
from planner.scenario.scenario import Scenario

FIELDS = {item.name: item for item in dataclasses.fields(AdvancedEngine)}


def test_all_stand_in_one_group_with_a_label_and_help_or_bounds():
    for item in FIELDS.values():
        assert item.metadata["group"] == "advanced"
        assert item.metadata["label"]
        assert item.metadata["choices"] or item.metadata["kind"] == "text" or item.metadata["minimum"] is not None


@pytest.mark.parametrize("engine", engine_names())
def test_left_alone_they_change_no_preset(engine):
    assert Scenario(engine=engine).engine_settings == get_engine(engine)


@pytest.mark.parametrize("name", [name for name, item in FIELDS.items() if item.metadata["choices"]])
def test_the_default_is_one_of_the_choices(name):
    assert FIELDS[name].default in FIELDS[name].metadata["choices"]


@pytest.mark.parametrize(
    "name", [name for name, item in FIELDS.items() if item.metadata["kind"] in ("count", "number")]
)
def test_the_default_lies_within_its_bounds(name):
    meta, default = FIELDS[name].metadata, FIELDS[name].default
    assert default is None or meta["minimum"] <= default <= meta["maximum"]


@pytest.mark.parametrize("router", ROUTERS)
def test_every_router_can_be_asked_for(router):
    assert Scenario(router=router).router == router
