"""Overheads by engine and version: the row that holds."""

import math

import pytest

from planner.step_time.overheads import _stored, overhead

ROWS = (
    {"engine": "", "architecture": "", "version_from": "", "parameter": "x", "value": "1"},
    {"engine": "a", "architecture": "", "version_from": "", "parameter": "x", "value": "2"},
    {"engine": "a", "architecture": "", "version_from": "0.6", "parameter": "x", "value": "3"},
    {"engine": "a", "architecture": "", "version_from": "0.10", "parameter": "x", "value": "4"},
    {"engine": "a", "architecture": "Hopper", "version_from": "", "parameter": "y", "value": "5"},
)


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr("planner.step_time.overheads.read_table", lambda _name: ROWS)
    _stored.cache_clear()
    yield
    _stored.cache_clear()


@pytest.mark.parametrize(
    ("engine", "version", "value"),
    [("b", "9.9", 1), ("a", "0.5", 2), ("a", "0.6.1", 3), ("a", "0.9", 3), ("a", "0.10.0", 4), ("a", "", 4)],
)
def test_the_latest_row_that_holds(rows, engine, version, value):
    assert overhead(engine, version, "x") == value  # 0.10 comes after 0.9


def test_rows_of_one_architecture_and_rows_that_are_not_there(rows):
    assert overhead("a", "", "y", "Hopper") == 5
    assert math.isnan(overhead("a", "", "y"))
    assert math.isnan(overhead("b", "", "y", "Hopper"))
    assert math.isnan(overhead("a", "", "z"))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "tgi", "llamacpp", "generic"])
@pytest.mark.parametrize(
    "parameter",
    ["host_us", "host_us_per_sequence", "prompt_step_us", "prompt_launch_us_per_layer", "api_ms_per_request"],
)
def test_every_engine_has_the_overheads_that_a_table_needs(engine, parameter):
    assert overhead(engine, "", parameter) >= 0
