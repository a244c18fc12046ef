"""The page that compares plans."""

import pytest

from planner.dashboard.sharing import link
from planner.scenario import link as link_format
from planner.scenario.link import compared, from_query, is_plan_link, joined, to_json, to_query
from planner.scenario.scenario import Scenario

from .conftest import clean

VERSION = str(link_format.VERSION)
SMALL = Scenario(num_requests=300)
TWO = joined([f"v={VERSION}&nr=300&g=L40S", f"v={VERSION}&nr=300&n=Cheap&usd=1"])


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()
    return clean(app)


def test_the_pages_link_carries_all_plans(open_app):
    other = to_query(SMALL.replace(gpu="L40S"))
    app = clean(open_app({"v": VERSION, "nr": "300", "vs": other}, "compare", opened=("share",)))
    assert len(app.table) == 2
    assert not app.warning
    shared, _ = next(block.value for block in app.code if "vs=" in block.value).split("&was=")
    parts = dict(pair.split("=", 1) for pair in shared.split("?", 1)[1].split("&"))
    assert parts["nr"] == "300"
    assert shared == link(SMALL, None, other) or shared.endswith(link(SMALL, None, other)[1:])
    assert from_query(other).scenario.gpu == "L40S"
    assert dict(app.query_params) == {"v": VERSION, "nr": "300", "vs": other}


def test_three_plans_from_a_link(open_app):
    app = clean(open_app({"v": VERSION, "nr": "300", "vs": TWO}, "compare"))
    assert list(app.table[0].value.columns) == ["Figure", "This plan", "Plan 2", "Cheap"]
    assert (
        len(compared(app.query_params["vs"] if isinstance(app.query_params["vs"], str) else app.query_params["vs"][0]))
        == 2
    )
    assert len(app.get("plotly_chart")) == 4


def test_a_plan_is_kept_under_a_name_and_the_inputs_changed(open_app):
    app = open_app({"v": VERSION, "nr": "300"}, "compare")
    assert not app.table
    app.text_input(key="compare_name").set_value("Before")
    press(app, "Keep it for comparison")
    assert app.subheader[0].value == "Both are the same plan"
    app.number_input(key="s_users").set_value(5000).run()
    clean(app)
    assert "less a month" in app.subheader[0].value
    assert "Before" in app.table[0].value.columns
    kept = f"v={VERSION}&n=Before&nr=300"
    assert app.query_params["vs"] in ([kept], kept)
    assert any("not like for like" in warning.value for warning in app.warning)


def test_one_is_opened_in_the_form_and_one_removed(open_app):
    app = open_app({"v": VERSION, "nr": "300", "vs": f"v={VERSION}&nr=300&g=L40S"}, "compare")
    press(app, "Open in the form")
    assert dict(app.query_params) == {"v": VERSION, "nr": "300", "g": "L40S", "vs": f"v={VERSION}&nr=300"}
    press(app, "Remove")
    assert "vs" not in dict(app.query_params)
    assert not app.table


@pytest.mark.parametrize("text", ["nonsense", "https://example.com/", "see the plan of last week", "{not json"])
def test_what_is_no_link_is_told_and_nothing_is_compared(open_app, text):
    app = open_app({"v": VERSION, "nr": "300"}, "compare")
    app.text_input(key="compare_link").set_value(text).run()
    clean(app)
    assert [error for error in app.error if text[:20] in error.value.replace("\\", "").replace("\u2060", "")]
    assert not app.table and "vs" not in dict(app.query_params)


@pytest.mark.parametrize("text", ["https://x/?u=abc&zzz=1", f"v={VERSION}&m=<script>", f"v={VERSION}&tp=-7"])
def test_a_link_that_is_wrong_in_part_is_told_and_this_plan_stays(open_app, text):
    app = open_app({"v": VERSION, "nr": "300"}, "compare")
    app.text_input(key="compare_link").set_value(text).run()
    clean(app)
    assert app.warning or app.error
    assert dict(app.query_params)["nr"] == "300"


def test_json_is_taken_too(open_app):
    app = open_app({"v": VERSION, "nr": "300"}, "compare")
    app.text_input(key="compare_link").set_value(to_json(SMALL.replace(gpu="L40S"))).run()
    clean(app)
    assert len(app.table) == 2


def test_other_pages_do_not_carry_the_other_link(open_app):
    app = open_app({"v": VERSION, "nr": "300", "vs": f"v={VERSION}&g=L40S"})
    assert dict(app.query_params) == {"v": VERSION, "nr": "300"}
    assert not [warning for warning in app.warning if "link" in str(warning.value)]


def test_what_is_a_link():
    for text in ("v=1", "?v=1&u=7", "https://host/base/plan?users=9", "u=5"):
        assert is_plan_link(text), text
    for text in ("", "nonsense", "nope=2", "http://[", "https://example.com/?zz=x"):
        assert not is_plan_link(text), text
    assert compared(joined(["v=1", "", f"v={VERSION}&u=2"])) == ("v=1", f"v={VERSION}&u=2")
