"""The frame around every page: all pages are there, a fault stays inside its page."""

import pytest
from streamlit.testing.v1 import AppTest

from planner.dashboard import shell
from planner.dashboard.shell import FAULT, MOVED, TITLES
from planner.errors import Infeasible

from .conftest import APP, PAGES, clean


def test_every_page_of_the_folder_is_listed_once():
    assert set(TITLES) == set(PAGES)
    assert set(TITLES) | set(MOVED) == {path.stem for path in shell.PAGES.glob("*.py")}
    assert len(set(TITLES.values())) == len(TITLES)


def test_a_fault_of_a_page_is_a_sentence_and_the_inputs_stay(open_app, monkeypatch):
    def fail(*_args, **_more):
        raise RuntimeError("boom")

    monkeypatch.setattr("planner.dashboard.headlines.latency_sentence", fail)
    app = open_app({"v": "2", "u": "77"}, "latency")
    assert not app.exception
    assert [error.value for error in app.error] == [FAULT]
    assert app.number_input(key="s_users").value == 77
    assert "boom" not in str(app.main)
    monkeypatch.undo()
    assert not app.run().error


def test_a_plan_that_is_refused_keeps_the_last_one_and_says_why(open_app, monkeypatch):
    def refuse(scenario):
        if scenario.users == 78:
            raise Infeasible("nobody can")
        return plan_for(scenario)

    plan_for = shell.plan_for
    app = open_app({"v": "2", "u": "77", "nr": "100"})
    monkeypatch.setattr(shell, "plan_for", refuse)
    app.number_input(key="s_users").set_value(78).run()
    assert not app.exception
    assert any("nobody can" in warning.value for warning in app.warning)
    assert dict(app.query_params)["u"] == "77"


def test_the_name_of_the_plan_stands_above_it(open_app):
    app = open_app({"v": "2", "n": "Budget 2027", "nr": "100"})
    assert any("Budget 2027" in caption.value for caption in app.caption)


@pytest.mark.parametrize("name", TITLES)
def test_titles_are_words(name):
    assert TITLES[name][0].isupper()


def test_a_host_with_sign_in_shows_nothing_before_it():
    app = AppTest.from_file(APP, default_timeout=300)
    app.user = {"is_logged_in": False}
    clean(app.run())
    assert [button.label for button in app.button] == ["Sign in"]
    assert not app.metric
    app.user = {"is_logged_in": True}
    assert clean(app.run()).metric
