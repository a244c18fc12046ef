"""The step timeline on its page."""

import json

import pytest

from planner.dashboard import lab

from .conftest import clean


def shown(app):
    (found,) = [item for item in app.get("bidi_component") if item.proto.component_name.endswith("headroom_steps")]
    return json.loads(found.proto.json)


def choose(app, key, value):
    next(item for item in app.get("button_group") if item.key == key).set_value(value)
    return clean(app.run())


def test_the_article_is_the_first_example(open_app):
    app = clean(open_app({"v": "1", "nr": "300"}, "batching"))
    assert app.session_state["lab_preset"] == lab.ARTICLE
    assert any("Finished answers hold" in text.value for text in app.markdown)


@pytest.mark.parametrize("preset", [lab.YOURS, lab.TIGHT])
def test_the_plans_own_requests(open_app, preset):
    app = open_app({"v": "1", "nr": "300"}, "batching")
    app.session_state["lab_preset"] = preset
    clean(app.run())
    assert any(lab.ABOUT[preset] in text.value for text in app.caption)
    assert not any("Finished answers" in text.value for text in app.markdown)


def test_an_engine_that_does_not_start_still_shows_the_article(open_app):
    app = clean(open_app({"v": "1", "m": "deepseek-ai/DeepSeek-V3"}, "batching"))
    assert any("Finished answers hold" in text.value for text in app.markdown)
