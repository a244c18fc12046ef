"""Which names a recording's columns may have."""

import pytest

from planner.errors import InvalidInput
from planner.tables import read_table
from planner.workload.trace_formats import CSV_FORMATS, NAMES, ROLES, columns_in, recorded_in, time_s


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


def test_the_columns_of_a_table_are_told_with_what_they_are():
    found = columns_in("when;isl;text\n1;2;x\n")
    assert found.names == ("when", "isl", "text")
    assert found.known == {"prompt": "isl"}
    lines = columns_in('{"t": 1, "usage": {"completion_tokens": 3}}\n{"t": 2}\n')
    assert lines.known == {"output": "usage.completion_tokens"}
    assert "t" in lines.names


@pytest.mark.parametrize(
    "text",
    ["", "hello, world", "INFO 12-01 a, b\nINFO c\n", "a,a\n1,2\n", "one\n1\n", '{\n"a": 1}\n', "{" * 5000 + "\n{}\n"],
)
def test_a_text_that_is_no_table_has_no_columns(text):
    assert columns_in(text) is None


def test_a_column_that_the_user_says_is_not_there_is_not_looked_for():
    text = "time,isl,osl\n1,2,3\n"
    assert recorded_in(text, None, {"prompt": ""}).prompt_tokens is None
    assert recorded_in(text, None, {"prompt": ""}).output_tokens.tolist() == [3]
    with pytest.raises(InvalidInput):
        recorded_in(text, None, {"arrival": ""})


def test_a_row_of_thousands_of_cells_is_no_table_of_requests():
    with pytest.raises(InvalidInput, match="6,000 columns"):
        recorded_in("," * 6000 + "\n1,2\n", None, None)
