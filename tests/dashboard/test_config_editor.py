"""A config.json becomes the model, and what is none is refused."""

import json

import pytest

from planner.dashboard.config_editor import MOST_SHOWN

from .conftest import clean
from .published_config import LLAMA_3_8B


def test_pasted_config_becomes_the_model_and_travels_in_the_link(open_app):
    app = open_app()
    app.selectbox(key="s_model").set_value("config").run()
    app.text_area(key="config_paste").set_value(json.dumps(LLAMA_3_8B)).run()
    clean(app)
    assert app.query_params["m"] == ["config"] or app.query_params["m"] == "config"
    again = open_app(dict(app.query_params.items()))
    assert not again.warning or "link" not in again.warning[0].value
    assert again.subheader[0].value == app.subheader[0].value


@pytest.mark.parametrize("text", ["hello", "[1, 2]", "{", '{"model_type": "unknown"}', "x" * 10_000_000])
def test_what_is_no_config_is_refused_in_words(open_app, text):
    app = open_app()
    app.selectbox(key="s_model").set_value("config").run()
    app.text_area(key="config_paste").set_value(text).run()
    clean(app)
    assert app.error
    assert app.subheader[0].value.startswith("1 × H100")


def test_a_long_paste_is_taken_and_not_kept_in_its_field(open_app):
    app = open_app()
    app.selectbox(key="s_model").set_value("config").run()
    app.text_area(key="config_paste").set_value(json.dumps(LLAMA_3_8B | {"note": "x" * MOST_SHOWN})).run()
    clean(app)
    assert dict(app.query_params)["m"] == "config"
    assert not app.text_area(key="config_paste").value
