"""Tables as CSV and as cards."""

import csv
import io

from planner.dashboard.plan_tables import table
from planner.dashboard.tabular import csv_text, folding_style


def read(rows):
    return list(csv.reader(io.StringIO(csv_text(rows).removeprefix("\ufeff"))))


def test_cells_are_as_on_the_page_without_markup():
    rows = table(("Policy", "USD / M"), [("One *at* a_time", "1,234.5 USD"), ("[x](y)", "−33 %")])
    assert rows[0]["Policy"] != "One *at* a_time"  # escaped for the page
    assert read(rows) == [["Policy", "USD / M"], ["One *at* a_time", "1,234.5 USD"], ["[x](y)", "−33 %"]]


def test_no_cell_is_a_formula():
    rows = [{"a": "=1+1", "b": "-3"}, {"a": "@x", "b": "+cmd"}]
    assert read(rows)[1:] == [["'=1+1", "-3"], ["'@x", "'+cmd"]]


def test_names_of_columns_stand_before_their_cells_and_cannot_end_the_style():
    style = folding_style("table_x", ["Figure", 'This "plan"', "</style><script>"])
    assert style.count("<style>") == style.count("</style>") == 1
    assert style.startswith("<style>") and style.endswith("</style>")
    assert "script>" not in style
    assert 'td:nth-child(2)::before{content:"This ' in style
    assert "nth-child(1)" not in style
