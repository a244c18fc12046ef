"""Lengths of public traces: quantiles at equal steps, true to the file and to the papers."""

import csv

import pytest

from planner.catalog.lengths import LENGTH_SET_TITLES, length_quantiles, length_set_names
from planner.errors import InvalidInput
from planner.tables import PLANNER

COLUMNS = [f"{name}_{side}" for name in length_set_names() for side in ("in", "out")]


@pytest.mark.parametrize("column", COLUMNS)
def test_quantiles_rise_at_equal_steps_from_the_shortest_to_the_longest(column):
    values = length_quantiles(column)
    assert len(values) == 1001
    assert list(values) == sorted(values)
    assert values[0] >= 1


@pytest.mark.parametrize("column", COLUMNS)
def test_levels_of_the_file_are_kept(column):
    text = (PLANNER / "catalog" / "length_quantiles.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    values = length_quantiles(column)
    kept = [row for row in rows if (float(row["pct"]) * 10).is_integer()]
    assert len(kept) >= 100
    for row in kept:
        assert values[round(float(row["pct"]) * 10)] == pytest.approx(float(row[column]))


# Splitwise (Patel et al., ISCA 2024, figure 3): median prompts of 1,020 (conversation) and 1,500 tokens (code), median
# answers of 129 and 13 tokens.
@pytest.mark.parametrize(
    ("column", "median"),
    [("azure23_conv_in", 1020), ("azure23_conv_out", 129), ("azure23_code_in", 1500), ("azure23_code_out", 13)],
)
def test_medians_of_the_azure_traces(column, median):
    assert length_quantiles(column)[500] == pytest.approx(median, rel=0.03)


def test_every_set_has_a_title_and_others_are_refused():
    assert set(length_set_names()) == set(LENGTH_SET_TITLES)
    with pytest.raises(InvalidInput) as caught:
        length_quantiles("azure23_conv")
    assert caught.value.field == "length_trace"
