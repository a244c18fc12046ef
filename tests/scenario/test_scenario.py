"""The Scenario: defaults, what it refuses, and that it is a value."""

import dataclasses
import math
import pickle

import pytest

from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario
from planner.scenario.settings import check_setting


def test_defaults_are_a_scenario():
    scenario = Scenario()
    # 500 users × 30 requests an hour × peak factor 2 = 8.33 requests a second.
    assert scenario.peak_rate_rps == pytest.approx(500 * 30 * 2 / 3600)
    assert scenario.mean_rate_rps == pytest.approx(scenario.peak_rate_rps / 2)


def test_every_default_is_valid():
    # A Scenario does not check again what was never changed.
    for item in dataclasses.fields(Scenario):
        check_setting(item, item.default)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", 0),
        ("users", -5),
        ("users", 1.5),
        ("users", True),
        ("rate_rps", 0.0),
        ("rate_rps", -1.0),
        ("rate_rps", math.nan),
        ("rate_rps", math.inf),
        ("max_model_len", 10_000_000),
        ("model", "nobody/nothing"),
        ("gpu", "H9000"),
        ("engine", "warp"),
        ("weight_dtype", "int3"),
        ("title", "x" * 1000),
        ("title", "a\x00b"),
        ("title", 7),
        ("demand", "telepathy"),
        ("model_config", "{" * 100),
        ("gpu_memory_utilization", 1.5),
        ("target_quantile", 1.0),
        ("tensor_parallel_size", 0),
    ],
)
def test_impossible_values_name_their_field(field, value):
    changes = {field: value}
    if field == "model_config":
        changes["model"] = "config"
    with pytest.raises(InvalidInput) as caught:
        Scenario(**changes)
    assert caught.value.field == field


def test_a_scenario_is_hashable_and_picklable():
    scenario = Scenario(users=7)
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert hash(scenario) == hash(Scenario(users=7))
