"""Scenarios to start from."""

import pytest

from planner.catalog.lengths import length_quantiles
from planner.errors import InvalidInput
from planner.scenario.presets import PRESETS, USES, capacity_fraction, for_use, preset, preset_names, uses
from planner.scenario.scenario import Scenario
from planner.tables import read_table


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


@pytest.mark.parametrize(("table", "column"), [(USES, "use"), (PRESETS, "preset")])
def test_every_row_has_a_source_and_fills_its_field(table, column):
    for row in read_table(table):
        assert row["source"]
        made = preset(row[column])
        assert made.title == row["title"]
        value = getattr(made, row["field"])
        assert row["value"] == ("none" if value is None else value if isinstance(value, str) else f"{value:g}")


@pytest.mark.parametrize("use", uses())
def test_a_use_keeps_model_gpus_and_amount_of_traffic(use):
    mine = Scenario(model="Qwen/Qwen3-32B", gpu="H200 SXM", tensor_parallel_size=2, users=77, output_limit_tokens=9)
    made = for_use(mine, use)
    assert (made.model, made.gpu, made.tensor_parallel_size, made.users) == ("Qwen/Qwen3-32B", "H200 SXM", 2, 77)
    assert made.output_limit_tokens is None  # of the use before


def test_a_use_holds_the_longest_prompt_of_its_trace():
    for use in uses():
        made = preset(use)
        if made.lengths == "trace":
            assert length_quantiles(f"{made.length_trace}_in")[-1] < made.max_model_len


def test_a_batch_has_no_target_and_an_agent_only_the_end():
    assert preset("batch").targets == ()
    assert [target.name for target in preset("agents").targets] == ["E2E"]


def test_a_short_context_of_the_model_stays():
    made = for_use(Scenario(model="openai-community/gpt2", max_model_len=1024), "chat")
    assert (made.max_model_len, made.length_trace) == (1024, "azure23_conv")
    with pytest.raises(InvalidInput, match="summaries"):
        for_use(made, "enormous")
