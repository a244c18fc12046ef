"""The form: bad values keep the last valid one, nothing else is lost; what it shows and what it sums up."""

import json
import re

import pytest

from planner.catalog.models import model_names
from planner.dashboard.inputs import GROUPS, HEADINGS, in_style, relevant, summary
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario

from .conftest import clean
from .published_config import LLAMA_3_8B


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


def test_every_model_of_the_catalog_can_be_chosen(open_app):
    assert set(model_names()) <= set(open_app().selectbox(key="s_model").options) or len(model_names()) >= 60


def test_the_group_is_closed_and_says_what_is_set(open_app):
    assert summary("advanced", Scenario()) == "engine defaults"
    assert summary("advanced", Scenario(block_size=32)) == "KV block size"
    three = Scenario(block_size=32, kv_offload_gib=5.0, num_lora_adapters=3)
    assert summary("advanced", three) == "KV block size, 2 more"
    assert list(GROUPS).index("advanced") == list(GROUPS).index("engine") + 1
    assert set(HEADINGS) <= set(fields_by_name())


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


def values(**changes):
    return {name: getattr(Scenario(), name) for name in fields_by_name()} | changes


def test_fields_without_effect_are_not_shown():
    assert not relevant("draft_model", values())
    assert relevant("draft_model", values(num_speculative_tokens=2))
    assert not relevant("max_loras", values())
    assert relevant("max_loras", values(num_lora_adapters=2))
    assert not relevant("num_prefix_groups", values())
    assert relevant("num_prefix_groups", values(shared_prefix_tokens=100))
    assert not relevant("router", values(arrivals="closed"))
    assert not relevant("mamba_full_memory_ratio", values())
    assert relevant("mamba_full_memory_ratio", values(engine="sglang"))
    assert relevant("max_state_slots", values(max_state_slots=7))  # so that it can be taken back


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
