"""The form: bad values keep the last valid one, nothing else is lost."""

import re

import pytest

from planner.catalog.models import model_names
from planner.dashboard.inputs import in_style

from .conftest import clean


def test_wrong_value_on_the_page_stands_under_its_field_and_nothing_else_is_lost(open_app):
    app = open_app(opened=("simulation",))
    app.number_input(key="s_seed").set_value(5).run()
    app.number_input(key="s_users").set_value(0).run()
    clean(app)
    assert any("(users) = 0" in error.value.replace("\\", "") for error in app.error)
    assert dict(app.query_params) == {"v": "2", "s": "5"}
    app.number_input(key="s_users").set_value(600).run()
    assert not app.error
    assert dict(app.query_params) == {"v": "2", "s": "5", "u": "600"}


def test_inputs_survive_a_page_switch(open_app):
    app = open_app()
    app.number_input(key="s_users").set_value(600).run()
    app.switch_page("planner/dashboard/pages/memory.py").run()
    app.switch_page("planner/dashboard/pages/plan.py").run()
    assert app.number_input(key="s_users").value == 600
    assert dict(app.query_params) == {"v": "2", "u": "600"}


def test_every_model_of_the_catalog_can_be_chosen(open_app):
    assert set(model_names()) <= set(open_app().selectbox(key="s_model").options) or len(model_names()) >= 60


def test_a_closed_group_draws_nothing_and_keeps_what_was_set_in_it(open_app):
    app = open_app({"v": "2", "s": "11", "n": "Our plan", "bs": "32"})
    assert not {"s_seed", "s_block_size"} & {item.key for item in app.number_input}
    app.number_input(key="s_users").set_value(600).run()
    app.session_state["group_simulation"] = True
    app.run()
    assert app.number_input(key="s_seed").value == 11
    app.number_input(key="s_seed").set_value(12).run()
    app.session_state["group_simulation"] = False
    app.run()
    app.switch_page("planner/dashboard/pages/memory.py").run()
    app.number_input(key="s_users").set_value(700).run()
    assert dict(clean(app).query_params) == {"v": "2", "s": "12", "n": "Our plan", "bs": "32", "u": "700"}
    app.session_state["group_simulation"] = True
    app.run()
    assert app.number_input(key="s_seed").value == 12


@pytest.mark.parametrize("text", ['a"b', "a\\", "</style><b>", "}*{display:none", "n\nx", "2 × L40S · 8,192 µs"])
def test_what_stands_beside_a_title_cannot_leave_its_style(text):
    # CSS Syntax 3, 4.3.7: a backslash, up to six hex digits and one space stand for a character.
    written = in_style(text)
    assert not set(written) & set('"<>{}\n')
    assert re.sub(r"\\([0-9a-f]{1,6}) ", lambda sign: chr(int(sign[1], 16)), written) == text


def test_the_form_follows_the_question(open_app):
    app = clean(open_app({"v": "2", "nr": "300"}))
    assert app.segmented_control(key="s_question").value == "need"
    app.segmented_control(key="s_question").set_value("take").run()
    clean(app)
    assert dict(app.query_params) == {"v": "2", "ask": "take", "r": "1", "nr": "300"}
    assert "takes at most" in app.subheader[0].value
    assert "s_users" not in {item.key for item in app.number_input}  # what is asked is not entered
    app.segmented_control(key="s_question").set_value("need").run()
    assert dict(clean(app).query_params) == {"v": "2", "nr": "300"}


def test_a_use_fills_lengths_and_targets_and_keeps_the_rest(open_app):
    app = open_app({"v": "2", "nr": "300", "u": "77"})
    app.selectbox(key="fill_for").set_value("code").run()
    query = dict(clean(app).query_params)
    assert query == {"v": "2", "ctx": "16384", "u": "77", "lt": "azure23_code", "ttft": "0.5", "e2e": "2", "nr": "300"}


def test_an_emptied_number_keeps_the_last_value_and_shows_it_in_grey(open_app):
    app = open_app({"v": "2", "u": "700"})
    box = app.number_input(key="s_users")
    box.set_value(None).run()
    assert app.session_state["_scenario"].users == 700
    box = app.number_input(key="s_users")
    assert (box.value, box.placeholder) == (None, "700")
    assert not app.warning
