"""Colours, ticks and the parts that all charts share."""

import itertools
import math

import pytest

from planner.charts.load import TERM_COLOUR
from planner.charts.style import (
    COLOUR,
    DASH,
    HATCH,
    OUTLINED,
    POLICY_DASH,
    bars,
    end_labels,
    figure,
    fill,
    label,
    layout,
    legend_below,
    line_at,
    linear_time_ticks,
    log_ticks,
    percent_ticks,
    shade_from,
    time_ticks,
)


def test_one_colour_per_meaning():
    colours = [colour for name, colour in COLOUR.items() if name not in ("own", "peer", "neutral", "free")]
    assert len(set(colours)) == len(colours)
    assert len(set(POLICY_DASH.values())) == len(POLICY_DASH) == 4


def test_no_tick_stands_on_that_of_a_minute():
    assert not {"50 s", "1 min"} <= set(time_ticks(2.0, 150.0)["ticktext"])


def test_time_ticks_cover_the_range_in_readable_units():
    ticks = time_ticks(0.02, 3.0)
    assert {"20 ms", "100 ms", "1 s"} <= set(ticks["ticktext"])
    assert min(ticks["tickvals"]) <= 0.02
    assert max(ticks["tickvals"]) >= 3.0


@pytest.mark.parametrize(("low", "high"), [(0.02, 3.0), (1.0, 1.0), (1e-9, 1e9), (5.0, 6.0)])
def test_ticks_stand_at_1_2_and_5_around_the_range(low, high):
    made = log_ticks(low, high, str)
    assert made["tickvals"][0] <= low
    assert made["tickvals"][-1] >= high
    leading = {round(value / 10 ** math.floor(math.log10(value) + 1e-9)) for value in made["tickvals"]}
    assert leading <= {1, 2, 5}
    assert leading == ({1} if high / low > 10**2.5 else {1, 2, 5})
    assert made["ticktext"] == [str(value) for value in made["tickvals"]]
    few = log_ticks(low, high, str, most_decades=0.0)["tickvals"]
    assert few == [value for value in made["tickvals"] if value in few]
    assert all(math.log10(value) == pytest.approx(round(math.log10(value))) for value in few)


@pytest.mark.parametrize(
    ("high_s", "texts"),
    [
        (3.0, ["0", "1 s", "2 s", "3 s"]),
        (0.09, ["0", "50 ms"]),
        (1854.0, ["0", "10 min", "20 min", "30 min"]),
        (9000.0, ["0", "1 h", "2 h"]),
    ],
)
def test_ticks_of_a_linear_time_axis_are_round_and_in_one_unit(high_s, texts):
    made = linear_time_ticks(high_s)
    assert made["ticktext"] == texts
    assert made["tickvals"][-1] <= high_s
    assert linear_time_ticks(math.nan) == {} == linear_time_ticks(0.0)


def test_names_at_the_ends_of_lines_do_not_overlap():
    # A plot of 100 pixels from 0 to 10: names are 15 pixels, 1.5 of the axis, apart at least.
    made = end_labels([("b", "#222222", 5.0, 4.1), ("a", "#111111", 5.0, 4.0), ("c", "", 5.0, 9.0)], 0.0, 10.0, 100)
    assert [note["y"] for note in made] == pytest.approx([4.0, 5.5, 9.0])
    assert ["a" in made[0]["text"], made[2]["text"]] == [True, "c"]


def test_names_stay_within_the_chart():
    made = end_labels([("b", "", 5.0, 9.9), ("a", "", 5.0, 9.8)], 0.0, 10.0, 100)
    assert [note["y"] for note in made] == pytest.approx([8.5, 10.0])


def test_words_have_the_pages_colour_and_a_swatch_of_their_line():
    made = label("target 1 s", 1.0, 2.0, "#e5484d")
    assert "color" not in made["font"]
    assert "#e5484d" in made["text"] and made["text"].endswith("target 1 s")


def test_a_range_of_nothing_has_ticks():
    assert log_ticks(math.nan, math.inf, str)["tickvals"]


def test_a_layout_is_laid_over_the_shared_one():
    made = layout(x="tokens", height=100, xaxis={"range": [0, 1]}, barmode="stack")
    assert made["height"] == 100
    assert made["xaxis"]["title"]["text"] == "tokens"
    assert made["xaxis"]["range"] == [0, 1]
    assert made["barmode"] == "stack"
    assert "range" not in layout()["xaxis"]  # the shared one is left alone


def test_a_figure_in_a_long_bar_and_beside_a_short_one():
    made = bars(["a", "b"], [100.0, 10.0], ["100", "10"], "%{x}")
    assert made["textposition"] == ["inside", "outside"]
    assert bars([], [], [], "")["textposition"] == []
    assert bars(["a"], [1.0], ["1"], "", marker={"color": "red"})["marker"] == {"color": "red"}


@pytest.mark.parametrize(("axis", "other"), [("x", "y"), ("y", "x")])
def test_lines_cross_the_whole_chart(axis, other):
    made = line_at(axis, 3.0, "#fff")
    assert made[f"{axis}0"] == made[f"{axis}1"] == 3.0
    assert (made[f"{other}0"], made[f"{other}1"], made[f"{other}ref"]) == (0, 1, "paper")


def test_shades_and_words():
    assert (shade_from(2.0, 5.0)["x0"], shade_from(2.0, 5.0)["x1"]) == (2.0, 5.0)
    assert label("here", 1.0, 2.0, "#fff", xanchor="right")["xanchor"] == "right"
    assert legend_below(90)["entrywidth"] == 90
    assert figure([{"a": 1}], {"b": 2}) == {"data": [{"a": 1}], "layout": {"b": 2}}


def test_colour_is_never_the_only_difference():
    assert len(set(DASH.values())) == len(DASH) == 3
    assert HATCH["shape"]


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# WCAG 2.1, 1.4.11: 3:1 for graphics that carry meaning. White, the light sidebar and Streamlit's dark ground.
GROUNDS = ("#ffffff", "#f4f6fa", "#0e1117")
DRAWN = {
    **{name: colour for name, colour in COLOUR.items() if name not in OUTLINED},
    **{f"term {name}": colour for name, colour in TERM_COLOUR.items()},
}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("name", DRAWN)
def test_lines_and_bars_stand_out_on_every_ground(name, ground):
    assert contrast(DRAWN[name], ground) >= 3


@pytest.mark.parametrize("ground", GROUNDS)
def test_pale_fills_have_an_outline_that_stands_out(ground):
    for name in OUTLINED:
        assert min(contrast(COLOUR[name], light) for light in GROUNDS[:2]) < 3  # or it needs none
        outline = fill(name)["line"]
        assert outline["width"] == 1
        assert contrast(outline["color"], ground) >= 3
    assert fill("weights")["line"]["width"] == 0
    assert fill("kv_used", "kv_reserved")["line"]["width"] == [0, 1]


def test_figures_inside_bars_can_be_read():
    # WCAG 2.1, 1.4.3: 4.5:1 for text of this size.
    for name in ("kv_used", "kv_reserved", "kv_unused", "free"):
        assert contrast(COLOUR[name], "#14241c") >= 4.5


def cie_lab(colour):
    """CIE 1976 L*a*b* under D65, of an sRGB colour (IEC 61966-2-1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    ratios = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (ratio ** (1 / 3) if ratio > 216 / 24389 else (24389 / 27 * ratio + 16) / 116 for ratio in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


PARTS = ("weights", "kv_used", "states", "activations", "cuda_graphs", "runtime", "occupied", "free", "kv_reserved")
TOGETHER = {
    "memory": [COLOUR[name] for name in (*PARTS, "kv_unused")],
    "latencies": [COLOUR[name] for name in ("p50", "p95", "p99", "target", "here", "neutral")],
    "policies": [COLOUR["own"], COLOUR["neutral"]],
    "terms": list(TERM_COLOUR.values()),
    "rows": [COLOUR[name] for name in ("own", "peer", "here")],
}


# A difference of 2.3 is just noticeable (Mahy, Van Eycken and Oosterlinck 1994); five of them where colours lie apart.
@pytest.mark.parametrize("chart", TOGETHER)
def test_colours_of_one_chart_differ(chart):
    for one, other in itertools.combinations(TOGETHER[chart], 2):
        assert math.dist(cie_lab(one), cie_lab(other)) > 5 * 2.3, (one, other)


@pytest.mark.parametrize(
    ("low", "high", "signed", "texts"),
    [
        (0.0, 1.0, False, "0 % 20 % 40 % 60 % 80 % 100 %"),
        (0.92, 1.0, False, "92 % 94 % 96 % 98 % 100 %"),
        (-0.5, 0.5, True, "−40 % −20 % 0 % +20 % +40 %"),
        (-7.0, 7.0, True, "−500 % 0 % +500 %"),
    ],
)
def test_shares_on_an_axis_are_round_and_read_as_in_the_texts(low, high, signed, texts):
    ticks = percent_ticks(low, high, signed=signed)
    assert " ".join(ticks["ticktext"]).replace("\u00a0", " ") == texts
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in ticks["tickvals"])
