"""The advanced engine settings on the page: their link, and what is refused beside the others."""

import pytest

from planner.scenario.fields import ROUTERS

from .conftest import clean

LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"


QUERY = {"v": "2", "nr": "300"}


def test_settings_travel_in_the_link(open_app):
    app = open_app(QUERY, opened=("advanced",))
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
    app = open_app({**QUERY, "u": "777"}, opened=("advanced",))
    app.number_input(key=f"s_{field}").set_value(value).run()
    clean(app)
    told = [error.value.replace("\\", "") for error in app.error]
    assert any(field in text and said in text for text in told)
    assert dict(app.query_params) == {**QUERY, "u": "777"}
