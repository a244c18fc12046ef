"""Predicted against measured."""

import numpy as np
import pytest

from planner.charts.accuracy import curve_over_concurrency, predicted_against_measured
from tests.charts.cases import traces

MEASURED, PREDICTED = np.array([10.0, 20.0, 40.0]), np.array([11.0, 16.0, 80.0])


def test_the_title_holds_the_median_error():
    # errors of 10 %, 20 % and 100 %
    chart = predicted_against_measured("TPOT", MEASURED, PREDICTED, ["a", "b", "c"])
    assert "3 published measurements are within 20 %" in chart.title


def test_points_and_the_line_of_perfect_prediction():
    drawn = traces(predicted_against_measured("TPOT", MEASURED, PREDICTED, ["a", "b", "c"], unit="ms"))
    assert list(drawn["Headroom"]["x"]) == list(MEASURED)
    assert list(drawn["Headroom"]["y"]) == list(PREDICTED)
    assert drawn["exact"]["x"] == drawn["exact"]["y"] == [10.0, 80.0]  # from the least to the greatest of both


def test_another_tool_is_drawn_where_it_says_something():
    peer = np.array([np.nan, 30.0, np.nan])
    drawn = traces(predicted_against_measured("TPOT", MEASURED, PREDICTED, ["a", "b", "c"], peer=peer))
    assert len(drawn) == 3
    (other,) = set(drawn) - {"exact", "Headroom"}
    assert (list(drawn[other]["x"]), list(drawn[other]["y"])) == ([20.0], [30.0])
    silent = np.full(3, np.nan)
    assert len(traces(predicted_against_measured("TPOT", MEASURED, PREDICTED, ["a", "b", "c"], peer=silent))) == 2


def test_without_rows_there_is_still_a_chart():
    empty = np.array([])
    chart = predicted_against_measured("TPOT", empty, empty, [])
    assert chart.figure["data"]
    assert chart.alt


@pytest.mark.parametrize("axis", ["xaxis", "yaxis"])
def test_both_axes_are_logarithmic(axis):
    chart = predicted_against_measured("TPOT", MEASURED, PREDICTED, ["a", "b", "c"])
    assert chart.figure["layout"][axis]["type"] == "log"


def test_a_sweep_draws_what_was_measured_beside_each_prediction():
    users = np.array([4.0, 16.0])
    lines = {
        "measured": np.array([10.0, 20.0]),
        "Headroom": np.array([11.0, 26.0]),
        "AIConfigurator 0.12": np.array([np.nan, 30.0]),
        "Headroom, source left out": np.full(2, np.nan),
    }
    chart = curve_over_concurrency("TPOT", users, lines, "ms")
    drawn = traces(chart)
    assert set(drawn) == {"measured", "Headroom", "AIConfigurator 0.12"}  # a line without values is not drawn
    assert list(drawn["AIConfigurator 0.12"]["x"]) == [16.0]
    assert chart.title == "TPOT: 20 % off at the median of 2 runs"  # of 10 % and 30 %
