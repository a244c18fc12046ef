"""Figures beside the predicted ones, and traffic over time."""

import dataclasses

import numpy as np
import pytest

from planner.charts.own import SHOWN_ERROR, overlay_errors, rate_over_time
from planner.reading import Compared, Overlay
from planner.workload import Requests, summary_of
from tests.charts.cases import traces


def compared(**errors: float) -> Overlay:
    rows = tuple(Compared(name=name, measured=100.0, predicted=100.0 * (1 + error)) for name, error in errors.items())
    return Overlay(rows=rows, error=0.1, reasons=())


def test_the_title_names_the_largest_error():
    chart = overlay_errors(compared(kv_tokens=0.02, ttft_ms_mean=-0.4))
    assert chart.title == "TTFT, mean is predicted 40 % below what was measured"
    assert "within 5 %" in overlay_errors(compared(kv_tokens=0.02)).title
    assert overlay_errors(compared()) is None


def test_figures_that_another_planner_predicts_are_not_called_measured():
    chart = overlay_errors(dataclasses.replace(compared(ttft_ms_mean=-0.4), predicted_by="AIConfigurator"))
    assert chart.title == "TTFT, mean is predicted 40 % below what AIConfigurator predicts"
    assert "measured" not in chart.alt + chart.subtitle + chart.figure["data"][0]["hovertemplate"]


def test_bars_end_at_the_edge_and_say_how_large_the_error_is():
    drawn = overlay_errors(compared(kv_tokens=6.0)).figure
    assert drawn["data"][0]["x"] == [SHOWN_ERROR]
    assert [item["text"] for item in drawn["layout"]["annotations"]] == ["+600.0 %"]


def test_rate_over_time_has_the_area_of_its_requests():
    count = 600
    ones = np.ones(count, dtype=np.int64)
    requests = Requests(
        arrival_s=np.arange(count) * 0.5,
        prompt_tokens=ones,
        output_tokens=ones,
        output_limit_tokens=ones,
        prefix_group=-ones,
        prefix_tokens=0 * ones,
    )
    told = summary_of(requests)
    chart = rate_over_time(told)
    (line,) = traces(chart).values() if isinstance(traces(chart), dict) else traces(chart)
    assert sum(line["y"]) * told.bin_s == pytest.approx(count)
    assert "req/s on average" in chart.title
