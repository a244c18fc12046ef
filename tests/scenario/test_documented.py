"""The table of fields says what a Scenario accepts."""

import pytest

from planner.errors import InvalidInput
from planner.scenario import Scenario, from_params
from planner.scenario.documented import differing_fields, field_rows
from planner.scenario.fields import fields_by_name


def test_every_field_stands_in_it_with_a_link_name_of_its_own():
    rows = field_rows()
    assert [row["name"] for row in rows] == list(fields_by_name())
    assert len({row["link"] for row in rows}) == len(rows)
    assert all(row["label"] for row in rows)


def test_bounds_are_those_that_hold():
    row = next(row for row in field_rows() if row["name"] == "tensor_parallel_size")
    assert row["valid"].startswith("a whole number from 1 to ")
    most = int(row["valid"].rsplit(" ", 1)[1].replace(",", ""))
    with pytest.raises(InvalidInput):
        Scenario(tensor_parallel_size=most + 1)


def test_a_link_written_by_the_table_is_read():
    row = next(row for row in field_rows() if row["name"] == "users")
    assert from_params({row["link"]: "77"}).scenario.users == 77


def test_only_inputs_that_differ_are_named_in_form_order():
    first = Scenario(users=50, title="ours")
    assert differing_fields([first, first.replace(title="theirs")]) == []
    assert differing_fields([first, first.replace(users=60), first.replace(gpu="L40S")]) == ["gpu", "users"]
