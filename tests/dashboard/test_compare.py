"""The page that compares two links."""

import pytest

from planner.dashboard.sharing import link
from planner.scenario.link import from_query, to_query
from planner.scenario.scenario import Scenario

from .conftest import clean

SMALL = Scenario(num_requests=300)


def test_the_pages_link_carries_both(open_app):
    other = to_query(SMALL.replace(gpu="L40S"))
    app = clean(open_app({"v": "2", "nr": "300", "vs": other}, "compare"))
    assert len(app.table) == 2
    assert not app.warning
    shared = next(block.value for block in app.code if "vs=" in block.value)
    parts = dict(pair.split("=", 1) for pair in shared.split("?", 1)[1].split("&"))
    assert parts["nr"] == "300"
    assert shared == link(SMALL, None, other) or shared.endswith(link(SMALL, None, other)[1:])
    assert from_query(other).scenario.gpu == "L40S"
    assert dict(app.query_params) == {"v": "2", "nr": "300", "vs": other}


def test_a_plan_is_kept_and_the_inputs_changed(open_app):
    app = open_app({"v": "2", "nr": "300"}, "compare")
    assert not app.table
    app.button[0].click().run()
    assert app.subheader[0].value == "Both links open the same plan"
    app.number_input(key="s_users").set_value(5000).run()
    clean(app)
    assert "less a month" in app.subheader[0].value
    assert app.query_params["vs"] in (["v=2&nr=300"], "v=2&nr=300")
    assert any("not like for like" in warning.value for warning in app.warning)


def test_the_two_are_swapped(open_app):
    app = open_app({"v": "2", "nr": "300", "vs": "v=2&nr=300&g=L40S"}, "compare")
    app.button[1].click().run()
    clean(app)
    assert dict(app.query_params) == {"v": "2", "nr": "300", "g": "L40S", "vs": "v=2&nr=300"}


@pytest.mark.parametrize("text", ["nonsense", "https://x/?u=abc&zzz=1", "v=1&m=<script>", "&" * 3000, "v=1&tp=7"])
def test_a_bad_other_link_is_told_and_this_plan_stays(open_app, text):
    app = open_app({"v": "2", "nr": "300"}, "compare")
    app.text_input(key="compare_link").set_value(text).run()
    clean(app)
    assert app.number_input(key="s_num_requests").value == 300


def test_other_pages_do_not_carry_the_other_link(open_app):
    app = open_app({"v": "2", "nr": "300", "vs": "v=1&g=L40S"})
    assert dict(app.query_params) == {"v": "2", "nr": "300"}
    assert not [warning for warning in app.warning if "link" in str(warning.value)]
