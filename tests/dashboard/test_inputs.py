"""The form: bad values keep the last valid one, nothing else is lost."""

import json
import re

import pytest

from planner.catalog.models import model_names
from planner.dashboard import urlstate
from planner.dashboard.config_text import MAX_BYTES, fetch_from_hub, pruned
from planner.dashboard.markdown import WORD_JOINER
from planner.dashboard.sharing import link
from planner.dashboard.widgets import plain, prose
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario

from .conftest import clean

# Llama 3 8B, as published: https://huggingface.co/meta-llama/Meta-Llama-3-8B/blob/main/config.json
LLAMA_3_8B = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 128000,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.0.dev0",
    "vocab_size": 128256,
}


def values(**changes):
    return {name: getattr(Scenario(), name) for name in fields_by_name()} | changes


def test_valid_changes_are_taken_over():
    now = urlstate.settle(Scenario(), values(users=7, seed=3))
    assert now.scenario == Scenario(users=7, seed=3)
    assert not now.errors


def test_an_invalid_field_keeps_its_last_valid_value_and_the_others_are_taken():
    now = urlstate.settle(Scenario(users=9), values(users=0, seed=3))
    assert now.scenario == Scenario(users=9, seed=3)
    assert set(now.errors) == {"users"}
    assert "0" in now.errors["users"]


def test_a_long_system_prompt_gives_way_to_a_shorter_context():
    before = Scenario(shared_prefix_tokens=5000)
    now = urlstate.settle(before, values(shared_prefix_tokens=5000, max_model_len=4096))
    assert (now.scenario.max_model_len, now.scenario.shared_prefix_tokens) == (4096, 0)
    assert "4,096" in now.errors["shared_prefix_tokens"]
    refused = urlstate.settle(Scenario(), values(shared_prefix_tokens=9000))
    assert refused.scenario == Scenario()
    assert "(shared_prefix_tokens) = 9000" in refused.errors["shared_prefix_tokens"]
    model = urlstate.settle(before, values(shared_prefix_tokens=5000, model="openai-community/gpt2"))
    assert (model.scenario.model, model.scenario.shared_prefix_tokens) == ("openai-community/gpt2", 0)


def test_a_model_with_a_shorter_context_is_planned_with_its_longest():
    # GPT-2 has 1,024 positions (its config.json).
    now = urlstate.settle(Scenario(), values(model="openai-community/gpt2"))
    assert now.scenario.model == "openai-community/gpt2"
    assert now.scenario.max_model_len == 1024
    assert "max_model_len" in now.errors


def test_choosing_a_config_before_giving_one_keeps_the_model_silently():
    now = urlstate.settle(Scenario(), values(model="config"))
    assert now.scenario == Scenario()
    assert not now.errors


def test_wrong_value_on_the_page_stands_under_its_field_and_nothing_else_is_lost(open_app):
    app = open_app()
    app.number_input(key="s_seed").set_value(5).run()
    app.number_input(key="s_users").set_value(0).run()
    clean(app)
    assert any("(users) = 0" in error.value.replace("\\", "") for error in app.error)
    assert dict(app.query_params) == {"v": "1", "s": "5"}
    app.number_input(key="s_users").set_value(600).run()
    assert not app.error
    assert dict(app.query_params) == {"v": "1", "s": "5", "u": "600"}


def test_inputs_survive_a_page_switch(open_app):
    app = open_app()
    app.number_input(key="s_users").set_value(600).run()
    app.switch_page("planner/dashboard/pages/memory.py").run()
    app.switch_page("planner/dashboard/pages/plan.py").run()
    assert app.number_input(key="s_users").value == 600
    assert dict(app.query_params) == {"v": "1", "u": "600"}


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


def test_pruning_keeps_the_model_and_drops_the_rest():
    short = pruned(json.dumps(LLAMA_3_8B))
    assert model_from_config(json.loads(short)) == model_from_config(LLAMA_3_8B)
    assert "transformers_version" not in short
    assert len(short) < 300


def test_too_large_is_told_in_megabytes():
    with pytest.raises(InvalidInput, match="MB"):
        pruned(" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("hub_id", ["", "no-slash", "../../etc/passwd", "a/b/c", "a b/c", "x" * 300])
def test_malformed_hub_id_is_refused_before_any_request(hub_id):
    with pytest.raises(InvalidInput, match="owner/name"):
        fetch_from_hub(hub_id)


def test_offline_hub_says_so(monkeypatch):
    def refuse(*_args, **_more):
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("planner.dashboard.config_text.socket.create_connection", refuse)
    with pytest.raises(InvalidInput, match="this machine cannot reach"):
        fetch_from_hub("Qwen/Qwen3-8B")


def test_link_keeps_host_and_page():
    found = link(Scenario(users=7), "https://plan.example.com/base/memory?v=1&u=9#x")
    assert found == "https://plan.example.com/base/memory?v=1&u=7"
    assert link(Scenario(), None) == "?v=1"


@pytest.mark.parametrize(
    "text", ["$a$", "[x](y)", "`c`", "*b*", "<b>", ":red[x]", ":material/home:", "http://a.b", "www.a.b", "a@b.c"]
)
def test_users_text_is_never_markdown(text):
    # CommonMark: a backslash before ASCII punctuation makes it literal.
    for escape in (plain, prose):
        escaped = escape(text)
        assert escaped != text
        assert escaped.replace("\\", "").replace(WORD_JOINER, "") == text


@pytest.mark.parametrize(
    "address", ["https://a.example/b", "HTTP://a.example", "www.a.example", "WWW.a.b", "x.y@a.example"]
)
def test_no_address_in_a_text_becomes_a_link(address):
    # The patterns of mdast-util-gfm-autolink-literal, which look at a text after its escapes are resolved.
    links = re.compile(r"(https?://|www(?=\.))[-.\w]+|[-.\w+]+@[-\w]+(\.[-\w]+)+", re.IGNORECASE)
    assert links.search(address)
    for escape in (plain, prose):
        assert not links.search(escape(f"see {address}, please").replace("\\", ""))


def test_every_model_of_the_catalog_can_be_chosen(open_app):
    assert set(model_names()) <= set(open_app().selectbox(key="s_model").options) or len(model_names()) >= 60
