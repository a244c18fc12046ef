"""Latency over load: lines, target and saturation stand where the values are."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner import charts
from planner.answer.planning import plan
from planner.charts.load import QUANTITIES, distribution, latency_finding, load_finding
from planner.scenario.scenario import Scenario
from planner.service.load import LoadCurve
from tests.charts.cases import lines_at


@pytest.fixture(scope="module")
def done():
    return plan(Scenario(num_requests=300))


def test_load_chart_marks_rate_target_and_saturation(done):
    chart = charts.latency_against_load(done.curve, "ttft_s", num_replicas=2, rate_rps=5.0, target_s=1.0)
    shapes = chart.figure["layout"]["shapes"]
    assert any(shape.get("x0") == 5.0 for shape in shapes)
    assert any(shape.get("y0") == 1.0 and shape["yref"] == "y" for shape in shapes)
    shaded = next(shape for shape in shapes if shape["type"] == "rect")
    assert shaded["x0"] == pytest.approx(2 * done.curve.capacity_rps)
    p95 = next(trace for trace in chart.figure["data"] if trace["name"] == "p95")
    assert p95["y"][0] == pytest.approx(done.curve.points[0].metrics.ttft_s.p95)
    assert p95["x"][-1] == pytest.approx(2 * done.curve.points[-1].rate_rps)


def test_a_load_far_beyond_saturation_is_named_at_the_edge_and_keeps_the_curve_readable():
    swept = curve(points=(point(1.0, 0.1), point(8.0, 0.2), point(11.0, 5.0)))
    chart = charts.latency_against_load(swept, "ttft_s", rate_rps=300.0, p95_s=60.0, target_s=1.0)
    right = chart.figure["layout"]["xaxis"]["range"][1]
    assert 11.0 < right < 12.0
    you = next(note for note in chart.figure["layout"]["annotations"] if "you: 300 req/s" in note["text"])
    assert you["text"].endswith("→")
    assert you["x"] == right
    assert not any(shape.get("x0") == 300.0 for shape in chart.figure["layout"]["shapes"])
    assert {trace["name"] for trace in chart.figure["data"]} == {"p50", "p95", "p99"}


def test_tpot_ends_where_the_fleet_saturates():
    swept = curve(points=(point(1.0, 0.1), point(8.0, 0.2), point(11.0, 0.1)))  # saturates at 10 req/s
    chart = charts.latency_against_load(swept, "tpot_s")
    assert {trace["x"][-1] for trace in chart.figure["data"]} == {8.0}
    assert chart.figure["layout"]["xaxis"]["range"][1] > 11.0


def test_hover_texts_write_shares_as_the_page_does():
    line = charts.distribution(np.array([0.1, 0.2, 0.4, 0.8]), "ttft_s", 0.5).figure["data"][0]
    assert line["customdata"] == ["25\u00a0%", "50\u00a0%", "75\u00a0%", "100\u00a0%"]
    assert line["hovertemplate"].startswith("%{customdata} ")


def test_distribution_ends_at_all_requests():
    chart = charts.distribution(np.array([0.1, 0.2, 0.4, 0.8]), "ttft_s", 0.5)
    line = chart.figure["data"][0]
    assert line["y"][-1] == 1.0
    assert chart.title.startswith("75 %")  # three of four are within 0.5 s
    low, high = chart.figure["layout"]["xaxis"]["range"]
    assert 10**low < 0.1
    assert 10**high > 0.8


def test_step_terms_add_up_to_the_step(done):
    chart = charts.step_terms(done.step_time, running=8, context_tokens=1000, chunk_tokens=512)
    from planner.step_time.step_table import PrefillChunk, StepWork

    work = StepWork(
        num_decodes=8, kv_tokens=8000, window_kv_tokens=8000, num_logit_rows=9, chunks=(PrefillChunk(num_tokens=512),)
    )
    assert sum(chart.figure["data"][1]["x"]) == pytest.approx(1000 * done.step_time.step_s(work))


def curve(capacity=10.0, slo=8.0, points=()):
    return LoadCurve(points=points, capacity_rps=capacity, slo_rate_rps=slo, binding="")


def point(rate, p95):
    level = SimpleNamespace(p50=p95 / 2, p95=p95, p99=2 * p95)
    return SimpleNamespace(rate_rps=rate, metrics=SimpleNamespace(ttft_s=level, tpot_s=level, e2e_s=level))


# Two replicas of 10 req/s each, of which 8 within the targets.
def test_where_the_targets_stop_holding():
    within, beyond = load_finding(curve(), 2, 5.0), load_finding(curve(), 2, 30.0)
    assert "16" in within and "20" in within
    assert "30" in beyond and "20" in beyond
    said = {within, beyond, load_finding(curve(slo=0.0), 2, 5.0), load_finding(curve(0.0, 0.0), 2, 5.0)}
    assert len(said) == 4


def test_without_targets_the_fleet_keeps_up():
    assert load_finding(curve(), 2, 5.0, has_targets=False) == "Keeps up with 16 req/s; saturates at 20"


def test_latency_near_saturation_is_read_off_the_curve():
    made = curve(points=(point(0.0, 0.1), point(10.0, 1.1)))
    # 95 % of the capacity: 0.1 + 0.95 × 1.0 s
    said = latency_finding(made, "ttft_s", 1, 0.2)
    assert said.startswith(QUANTITIES["ttft_s"])
    assert "200 ms" in said
    assert "1.05 s" in said


def test_percentiles_of_single_requests_stand_where_they_are():
    seconds = np.linspace(0.0, 1.0, 101)
    chart = distribution(seconds, "ttft_s", None)
    assert lines_at(chart, "x") == pytest.approx([0.5, 0.95, 0.99])
    lost = distribution(np.array([math.nan, 0.5, math.nan, 1.0]), "ttft_s", 0.7)
    assert lost.title.startswith("50 %")  # of the two that got a first token


def test_nothing_finished_is_still_a_chart():
    chart = distribution(np.array([math.nan]), "ttft_s", 1.0)
    assert chart.figure["data"][0]["x"].size == 0
    assert lines_at(chart, "x") == [1.0]


@pytest.mark.parametrize(("target_s", "anchor"), [(0.04, "top"), (2.0, "bottom")])
def test_the_targets_name_lies_on_no_line(target_s, anchor):
    # At low load p50 is 0.05 s, just above the lower target, and p99 is 0.2 s, far below the higher one.
    swept = curve(points=(point(1.0, 0.1), point(8.0, 0.12), point(11.0, 5.0)))
    drawn = charts.latency_against_load(swept, "ttft_s", rate_rps=2.0, target_s=target_s).figure["layout"]
    name = next(note for note in drawn["annotations"] if "target " in note["text"])
    assert name["yanchor"] == anchor
    room = math.log10(target_s) - drawn["yaxis"]["range"][0]
    assert room > 0.09 * (drawn["yaxis"]["range"][1] - drawn["yaxis"]["range"][0])
