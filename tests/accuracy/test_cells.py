"""Cells: blank, words, or a number that a run can have."""

import math

import pytest

from planner.accuracy.cells import LIMITS, count_of, needed_number, number_of, reason_of, text_of
from planner.accuracy.serving_rows import RowSkipped
from planner.errors import InvalidInput


@pytest.mark.parametrize("cell", [None, math.nan, "", " ", "nan", "N/A"])
def test_blanks_are_not_stated(cell):
    assert text_of({"x": cell}, "x") == ""
    assert number_of({"tp": cell}, "tp") is None
    with pytest.raises(InvalidInput, match="tp"):
        needed_number({"tp": cell}, "tp")


def test_numbers_of_cells():
    assert number_of({"isl": "1024.5"}, "isl") == 1024.5
    assert number_of({"tp": 8}, "tp") == 8
    assert number_of({"tp": "as many as fit"}, "tp") is None
    assert number_of({}, "tp") is None
    for column, limits in LIMITS.items():
        assert number_of({column: str(limits.most)}, column) == limits.most
        for cell in ("inf", "-inf", str(2 * limits.most), "-1"):
            with pytest.raises(InvalidInput, match=column):
                number_of({column: cell}, column)


def test_reasons_are_one_line():
    assert reason_of(RowSkipped("two\nlines")) == "two lines"
    assert reason_of(KeyError("x")) == "the row cannot be read (KeyError: 'x')"
    assert len(reason_of(ValueError("x" * 10_000))) == 200


def test_counts_are_at_least_one_where_they_are_stated():
    assert count_of({"tp": "8"}, "tp") == 8
    assert count_of({"tp": ""}, "tp") is None
    for cell in ("0", "0.5", "-2"):
        with pytest.raises(InvalidInput, match="tp"):
            count_of({"tp": cell}, "tp")
