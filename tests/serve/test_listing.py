import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import model_names
from planner.scenario.scenario import Scenario
from planner.serve.listing import KINDS, entries

FIELD_OF = {
    "models": "model",
    "gpus": "gpu",
    "engines": "engine",
    "weight_dtypes": "weight_dtype",
    "kv_cache_dtypes": "kv_cache_dtype",
    "length_traces": "length_trace",
}


@pytest.mark.parametrize("what", KINDS)
def test_every_entry_has_a_name_of_its_own(what):
    names = [row["name"] for row in entries(what)]
    assert names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("what", FIELD_OF)
def test_a_scenario_takes_the_names_that_are_listed(what):
    name = entries(what)[0]["name"]
    assert (
        getattr(Scenario(max_model_len=512, shared_prefix_tokens=0, **{FIELD_OF[what]: name}), FIELD_OF[what]) == name
    )


def test_figures_are_the_catalogs():
    row = next(row for row in entries("gpus") if row["name"] == "L40S")
    assert row["memory_gib"] == get_gpu("L40S").memory_gib
    assert [row["name"] for row in entries("models")] == list(model_names())
