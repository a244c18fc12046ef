"""One figure of several plans."""

import math

from planner.charts.compare import plan_bars


def drawn(names=("This plan", "B"), values=(2.0, 4.0), errors=(0.1, 0.5)):
    return plan_bars("t", "s", list(names), list(values), [f"{value:g} s" for value in values], list(errors))


def test_bars_and_their_errors_in_the_figures_unit():
    trace = drawn().figure["data"][0]
    assert trace["x"] == [2.0, 4.0]
    assert trace["error_x"]["array"] == [0.2, 2.0]
    assert len(set(trace["marker"]["color"])) == 2  # the reader's own stands out
    assert drawn().figure["layout"]["xaxis"]["range"][1] > 4.0 + 2.0


def test_no_error_is_drawn_where_none_is_known():
    assert "error_x" not in drawn(errors=(0.0, math.nan)).figure["data"][0]


def test_a_plan_without_the_figure_says_so():
    chart = drawn(values=(2.0, math.nan))
    assert chart.figure["data"][0]["x"] == [2.0, 0.0]
    assert chart.alt == "t. This plan: 2 s; B: nan s"


def test_long_names_take_two_lines_and_hold_no_markup():
    (row, _) = drawn(names=("<b>a</b> plan whose name goes on and on and on", "B")).figure["data"][0]["y"]
    assert row.count("<br>") == 1 and "<b>" not in row and row.endswith("…")
