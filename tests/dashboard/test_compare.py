"""Two links side by side."""

import math

import pytest

from planner.answer.planning import plan
from planner.dashboard import comparison
from planner.dashboard.comparison import Figure, difference
from planner.dashboard.sharing import link
from planner.scenario.fields import fields_by_name
from planner.scenario.link import from_query, to_query
from planner.scenario.scenario import Scenario

from .conftest import clean

SMALL = Scenario(num_requests=300)


@pytest.mark.parametrize(
    ("ours", "other", "less", "said"),
    [
        (2.0, 3.0, True, "+50 %, worse"),
        (3.0, 2.0, True, "−33 %, better"),
        (100.0, 250.0, False, "2.5×, better"),
        (0.5, 0.6, None, "+20 %"),
        (7.0, 7.0, True, "same"),
        (math.nan, 7.0, True, "—"),
    ],
)
def test_differences_by_hand(ours, other, less, said):
    a = Figure(label="x", value=ours, text="", less_is_better=less)
    b = Figure(label="x", value=other, text="", less_is_better=less)
    assert difference(a, b) == said


def test_differing_inputs_are_named_in_the_forms_words():
    other = SMALL.replace(gpu="L40S", enable_prefix_caching=False, title="another", users=700)
    assert comparison.differing(SMALL, other) == ["gpu", "enable_prefix_caching", "users"]
    rows = [tuple(row.values()) for row in comparison.input_table(SMALL, other)]
    assert rows == [
        ("GPU", "H100\u00a0SXM", "L40S"),
        ("Prefix\u00a0caching", "on", "off"),
        ("Users", "500", "700"),
    ]
    assert comparison.asks_another_question(SMALL, other)
    assert not comparison.asks_another_question(SMALL, SMALL.replace(gpu="L40S"))


def test_every_input_has_words():
    for name in fields_by_name():
        assert comparison.field_label(name)
        assert comparison.field_value(name, getattr(SMALL, name))


def test_the_sentence_tells_which_is_cheaper():
    cheap, dear = plan(SMALL.replace(usd_per_gpu_hour=1.0)), plan(SMALL.replace(usd_per_gpu_hour=3.0))
    # 730 h × 1 GPU × 2 USD of difference = 1,460 USD a month.
    assert cheap.num_gpus == dear.num_gpus == 1
    assert "this plan costs 1,460 USD less a month" in comparison.sentence(cheap, dear)
    assert "the other plan costs 1,460 USD less a month" in comparison.sentence(dear, cheap)
    assert comparison.sentence(cheap, cheap) == "Both links open the same plan"
    refused = plan(SMALL.replace(model="deepseek-ai/DeepSeek-V3"))
    assert comparison.sentence(cheap, refused) == "Only this plan starts"
    assert len(comparison.figure_table(refused, cheap)) == len(comparison.figure_table(cheap, dear))


def test_the_pages_link_carries_both(open_app):
    other = to_query(SMALL.replace(gpu="L40S"))
    app = clean(open_app({"v": "1", "nr": "300", "vs": other}, "compare"))
    assert len(app.table) == 2
    assert not app.warning
    shared = next(block.value for block in app.code if "vs=" in block.value)
    parts = dict(pair.split("=", 1) for pair in shared.split("?", 1)[1].split("&"))
    assert parts["nr"] == "300"
    assert shared == link(SMALL, None, other) or shared.endswith(link(SMALL, None, other)[1:])
    assert from_query(other).scenario.gpu == "L40S"
    assert dict(app.query_params) == {"v": "1", "nr": "300", "vs": other}


def test_a_plan_is_kept_and_the_inputs_changed(open_app):
    app = open_app({"v": "1", "nr": "300"}, "compare")
    assert not app.table
    app.button[0].click().run()
    assert app.subheader[0].value == "Both links open the same plan"
    app.number_input(key="s_users").set_value(5000).run()
    clean(app)
    assert "less a month" in app.subheader[0].value
    assert app.query_params["vs"] in (["v=1&nr=300"], "v=1&nr=300")
    assert any("not like for like" in warning.value for warning in app.warning)


def test_the_two_are_swapped(open_app):
    app = open_app({"v": "1", "nr": "300", "vs": "v=1&nr=300&g=L40S"}, "compare")
    app.button[1].click().run()
    clean(app)
    assert dict(app.query_params) == {"v": "1", "nr": "300", "g": "L40S", "vs": "v=1&nr=300"}


@pytest.mark.parametrize("text", ["nonsense", "https://x/?u=abc&zzz=1", "v=1&m=<script>", "&" * 3000, "v=1&tp=7"])
def test_a_bad_other_link_is_told_and_this_plan_stays(open_app, text):
    app = open_app({"v": "1", "nr": "300"}, "compare")
    app.text_input(key="compare_link").set_value(text).run()
    clean(app)
    assert app.number_input(key="s_num_requests").value == 300


def test_other_pages_do_not_carry_the_other_link(open_app):
    app = open_app({"v": "1", "nr": "300", "vs": "v=1&g=L40S"})
    assert dict(app.query_params) == {"v": "1", "nr": "300"}
    assert not [warning for warning in app.warning if "link" in str(warning.value)]
