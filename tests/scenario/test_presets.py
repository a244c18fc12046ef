"""Scenarios to start from."""

import pytest

from planner.errors import InvalidInput
from planner.scenario.presets import capacity_fraction, preset, preset_names
from planner.scenario.scenario import Scenario


@pytest.mark.parametrize("name", preset_names())
def test_each_is_a_scenario_and_says_what_it_is(name):
    made = preset(name)
    assert isinstance(made, Scenario)
    assert bool(made.title) == (name != "default")


def test_the_default_is_the_form_as_it_opens():
    assert preset("default") == Scenario()


def test_all_are_different():
    assert len({preset(name) for name in preset_names()}) == len(preset_names())


def test_only_the_reference_is_offered_as_a_share_of_the_capacity():
    shares = {name: capacity_fraction(name) for name in (*preset_names(), None)}
    assert {name for name, share in shares.items() if share is not None} == {"reference"}
    assert 0 < shares["reference"] < 1  # a queue that settles


def test_another_name_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidInput, match="small-team"):
        preset("enormous")


# The benchmark workload: prompts and answers lognormal with means 512 and 128 and a spread of their mean.
def test_the_reference_is_the_workload_that_the_readme_times():
    drawn = preset("reference").traffic
    assert (drawn.prompt_tokens.mean, drawn.output_tokens.mean) == (512.0, 128.0)
    assert drawn.prompt_tokens.spread == drawn.output_tokens.spread == 1.0
    assert drawn.prompt_tokens.kind == "lognormal"
