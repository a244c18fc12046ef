"""What the widgets ask for becomes the nearest valid scenario."""

from hypothesis import given
from hypothesis import settings as quick
from hypothesis import strategies as st

from planner.dashboard import urlstate
from planner.dashboard.urlstate import YIELDING, key
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario


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
    assert "(shared_prefix_tokens) = 9,000" in refused.errors["shared_prefix_tokens"]
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


LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"


def test_another_model_goes_before_a_draft_model_that_does_not_suit_it():
    before = Scenario(num_speculative_tokens=3, draft_model=LLAMA_1B)
    wanted = {name: getattr(before, name) for name in fields_by_name()} | {"model": "Qwen/Qwen3-8B"}
    now = urlstate.settle(before, wanted)
    assert now.scenario.model == "Qwen/Qwen3-8B"
    assert now.scenario.draft_model == ""
    assert "Planned without" in now.errors["draft_model"]


def test_widgets_of_all_fields_have_keys_of_their_own():
    assert len({key(name) for name in fields_by_name()}) == len(fields_by_name())
    assert set(YIELDING) <= set(fields_by_name())


ODD = st.one_of(st.none(), st.integers(-5, 10**7), st.floats(allow_nan=True), st.text(max_size=5), st.booleans())


@quick(max_examples=60)
@given(st.dictionaries(st.sampled_from(sorted(fields_by_name())), ODD, max_size=4))
def test_whatever_the_widgets_hold_there_is_a_scenario(changes):
    if not isinstance(changes.get("model_config", ""), str):
        changes.pop("model_config")
    now = urlstate.settle(Scenario(), values(**changes))
    assert isinstance(now.scenario, Scenario)
    # What was not taken over is told, under a field of the form.
    lost = {name for name, value in changes.items() if getattr(now.scenario, name) != value and value == value}
    assert not lost or now.errors
    assert set(now.errors) <= set(fields_by_name())


def test_the_address_follows_the_widgets_and_the_widgets_a_link(open_app):
    app = open_app({"v": "2", "u": "7", "nr": "100"})
    assert app.number_input(key=key("users")).value == 7
    app.number_input(key=key("users")).set_value(8).run()
    assert dict(app.query_params) == {"v": "2", "u": "8", "nr": "100"}


def test_a_note_about_the_link_goes_with_the_next_change(open_app):
    app = open_app({"v": "2", "u": "nobody", "nr": "100"})
    assert app.warning
    app.number_input(key=key("users")).set_value(8).run()
    assert not app.warning
