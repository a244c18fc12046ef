"""Which names a recording's columns may have."""

import pytest

from planner.errors import InvalidInput
from planner.tables import read_table
from planner.workload.trace_formats import CSV_FORMATS, NAMES, ROLES, recorded_in, time_s


def test_every_published_form_stands_in_the_table_of_names():
    names = {(row["role"], row["name"]) for row in read_table(NAMES)}
    for form in CSV_FORMATS.values():
        assert {("prompt", form.prompt), ("output", form.output)} <= names
    assert {role for role, _ in names} == set(ROLES)


def test_what_the_form_is():
    assert recorded_in("arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n", None, None).kind == "vidur"
    assert recorded_in("time,isl,osl\n1,2,3\n", None, None).kind == "csv"
    assert recorded_in('{"timestamp": 1, "input_length": 2, "output_length": 3}', None, None).kind == "mooncake"
    assert recorded_in('{"time": 1, "isl": 2, "osl": 3}', None, None).kind == "jsonl"


def test_a_role_that_does_not_exist_is_named():
    with pytest.raises(InvalidInput, match="speed"):
        recorded_in("a,b\n1,2\n", None, {"speed": "a"})


def test_times_are_seconds_or_dates():
    assert time_s("t", "12.5") == 12.5
    assert time_s("t", "1970-01-01 00:01:00.5+00:00") == 60.5
    with pytest.raises(InvalidInput):
        time_s("t", "tomorrow")
