"""Lines and bars of the tiles: where the curve, the plan and the bar's end are drawn."""

import base64
import math
import re

import pytest

from planner.charts.tiles import HEIGHT, PADDING, WIDTH, Line, bar_svg, line_svg
from planner.errors import InvalidInput


def svg(html):
    return base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()


def curve(html):
    points = re.search(r'<polyline points="([^"]+)"', svg(html))[1]
    return [tuple(map(float, point.split(","))) for point in points.split()]


def rising(**changes):
    values = {"x": (0.0, 5.0, 10.0), "y": (1.0, 2.0, 5.0), "ends": ("1 s", "5 s"), "about": "TTFT against load"}
    return Line(**values | changes)


def test_the_curve_fills_the_drawing_and_rises_with_its_values():
    low, high = HEIGHT - PADDING, PADDING
    middle = low - (2.0 - 1.0) / (5.0 - 1.0) * (low - high)
    assert curve(line_svg(rising())) == [
        pytest.approx((PADDING, low), abs=0.06),
        pytest.approx((WIDTH / 2, middle), abs=0.06),
        pytest.approx((WIDTH - PADDING, high), abs=0.06),
    ]


def test_the_plan_is_a_dot_on_the_curve():
    dot = svg(line_svg(rising(here=(5.0, 2.0))))
    x, y = curve(line_svg(rising()))[1]
    assert f'x1="{x}" x2="{x}" y1="{y}" y2="{y}"' in dot
    assert "x1=" not in svg(line_svg(rising()))


def test_a_flat_curve_is_labelled_once():
    flat = line_svg(rising(y=(5.0, 5.02, 5.05), ends=("5 s", "5.05 s")))
    assert {y for _, y in curve(flat)} == {HEIGHT / 2}
    assert "<span>5 s</span>" in flat
    assert "5.05 s" not in flat


@pytest.mark.parametrize(("share", "width"), [(0.37, 37.0), (1.8, 100.0), (-1.0, 0.0), (math.nan, 0.0)])
def test_the_bar_is_as_long_as_its_share(share, width):
    drawn = re.findall(r'<rect[^>]* width="([\d.]+)"', svg(bar_svg(share, "Busy")))
    assert [float(text) for text in drawn] == [WIDTH, width]


def test_what_a_reader_hears_is_escaped():
    assert 'alt="&lt;b&gt;"' in line_svg(rising(about="<b>"))


@pytest.mark.parametrize("changes", [{"x": (1.0,), "y": (1.0,)}, {"x": (1.0, 2.0)}, {"y": (1.0, math.inf, 2.0)}])
def test_what_is_no_curve_is_refused(changes):
    with pytest.raises(InvalidInput):
        rising(**changes)
