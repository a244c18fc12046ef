"""The advanced engine settings: what they say when closed, their link, and what is refused beside the others."""

import pytest

from planner.dashboard import urlstate
from planner.dashboard.inputs import GROUPS, HEADINGS, relevant, summary
from planner.scenario.fields import ROUTERS, fields_by_name
from planner.scenario.scenario import Scenario

from .conftest import clean

LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"
QUERY = {"v": "1", "nr": "300"}


def values(**changes):
    return {name: getattr(Scenario(), name) for name in fields_by_name()} | changes


def test_the_group_is_closed_and_says_what_is_set(open_app):
    assert summary("advanced", Scenario()) == "engine defaults"
    assert summary("advanced", Scenario(block_size=32)) == "KV block size"
    three = Scenario(block_size=32, kv_offload_gib=5.0, num_lora_adapters=3)
    assert summary("advanced", three) == "KV block size, 2 more"
    assert list(GROUPS).index("advanced") == list(GROUPS).index("engine") + 1
    assert set(HEADINGS) <= set(fields_by_name())


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


def test_settings_travel_in_the_link(open_app):
    app = open_app(QUERY)
    app.number_input(key="s_num_speculative_tokens").set_value(3).run()
    app.selectbox(key="s_draft_model").set_value(LLAMA_1B).run()
    app.number_input(key="s_block_size").set_value(32).run()
    app.number_input(key="s_patience_s").set_value(5.0).run()
    app.selectbox(key="s_router").set_value(ROUTERS[2]).run()
    clean(app)
    expected = {**QUERY, "spec": "3", "dm": LLAMA_1B, "bs": "32", "pat": "5", "rt": ROUTERS[2]}
    assert dict(app.query_params) == expected
    again = clean(open_app(expected))
    assert again.subheader[0].value == app.subheader[0].value


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("block_size", 17, "one of 1, 8, 16"),
        ("occupied_gib", 500.0, "less than"),
        ("long_prefill_token_threshold", 9000, "8,192"),
        ("kv_offload_gib", -1.0, "(kv_offload_gib) = -1"),
        ("patience_s", 0.0, "0.001"),
    ],
)
def test_a_contradiction_stands_under_its_field_and_the_rest_stays(open_app, field, value, said):
    app = open_app({**QUERY, "u": "777"})
    app.number_input(key=f"s_{field}").set_value(value).run()
    clean(app)
    told = [error.value.replace("\\", "") for error in app.error]
    assert any(field in text and said in text for text in told)
    assert dict(app.query_params) == {**QUERY, "u": "777"}


def test_another_model_goes_before_a_draft_model_that_does_not_suit_it():
    before = Scenario(num_speculative_tokens=3, draft_model=LLAMA_1B)
    wanted = {name: getattr(before, name) for name in fields_by_name()} | {"model": "Qwen/Qwen3-8B"}
    now = urlstate.settle(before, wanted)
    assert now.scenario.model == "Qwen/Qwen3-8B"
    assert now.scenario.draft_model == ""
    assert "Planned without" in now.errors["draft_model"]
