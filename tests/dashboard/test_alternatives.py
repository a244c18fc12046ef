"""The alternatives below the answer, and their words."""

import dataclasses

import pytest

from planner import plan
from planner.answer import EVIDENCE, Candidate, Change, candidate_of, recommend
from planner.dashboard import alternatives
from planner.dashboard.alternatives import (
    certainty_in_words,
    change_lines,
    deployment_in_words,
    latency_in_words,
    money_in_words,
    present,
    restrictions_in_words,
    with_remedy,
)
from planner.dashboard.searches import Running
from planner.memory import Remedy
from planner.scenario.scenario import Scenario

from .conftest import clean

QUERY = {"v": "2", "nr": "200", "u": "300", "mine": "L40S, H100 SXM"}
SMALL = Scenario(num_requests=200, users=300, my_gpus="L40S, H100 SXM")


def row(**changes):
    base = Candidate(
        scenario=Scenario(gpu="L40S", weight_dtype="fp8"),
        status="meets targets",
        num_gpus=2,
        usd_per_gpu_hour=2.25,
        price_source="CoreWeave 8x, on demand, 2026-09-20 (the middle of 3 offers; somewhere)",
        usd_per_month=3285.0,
        ttft_s=0.5,
        tpot_s=0.04,
        probability=0.81,
        evidence=EVIDENCE[0],
        binding="Latency target",
    )
    return dataclasses.replace(base, **changes)


def test_a_row_in_words():
    assert deployment_in_words(row(), Scenario()) == "fp8 weights"
    assert money_in_words(row(), row(usd_per_month=4000.0)) == (
        "3,285 USD a month (−715.00 USD)",
        "2.25 USD per GPU-hour, CoreWeave 8x, on demand, 2026-09-20",
    )
    assert money_in_words(row(), None)[0] == "3,285 USD a month"
    assert latency_in_words(row()) == "p95 TTFT 500 ms, TPOT 40 ms"
    assert certainty_in_words(row()) == ("81 % sure", "kernels measured; latency target sets the GPUs")
    assert certainty_in_words(row(probability=float("nan")))[0] == "error not known"
    assert certainty_in_words(row(status="misses targets"))[0] == "misses targets"


def test_the_present_plan_is_a_row():
    done = plan(Scenario(num_requests=200))
    assert present(done) == candidate_of(done, evidence=EVIDENCE[0])
    assert present(plan(Scenario(model="meta-llama/Llama-3.1-70B-Instruct", num_requests=100))) is None


def test_restrictions_in_a_line():
    assert restrictions_in_words(Scenario()) == "every GPU with a price · prices on demand"
    all_of_them = Scenario(
        my_gpus="H100 SXM:8,L40S",
        gpu_vendor="NVIDIA",
        most_gpus=8,
        one_node=True,
        measured_only=True,
        price_kind="owned",
    )
    said = restrictions_in_words(all_of_them)
    assert (
        said
        == "H100 SXM:8, L40S · prices of owned GPUs · NVIDIA only · at most 8 GPUs · one server · measured GPUs only"
    )


def test_changes_without_effect_stand_together():
    def change(label, text):
        return Change(label=label, scenario=Scenario(), num_gpus=1, usd_per_month=1.0, text=text)

    texts = {"a": "adds 1 GPU", "b": "no change", "c": "does not start", "d": "no change"}
    differ, idle = change_lines(tuple(change(label, text) for label, text in texts.items()))
    assert [item.label for item in differ] == ["a"]
    assert idle == {"No change with": ["b", "d"], "The engine does not start with": ["c"]}


@pytest.fixture
def searched(monkeypatch):
    """The page's searches, with one that is done."""
    running = Running(SMALL, found=recommend(SMALL), done=True)
    other = SMALL.replace(users=900)
    change = Change(label="more users", scenario=other, num_gpus=2, usd_per_month=1.0, text="adds 1 GPU")
    running.changes = (change,)
    monkeypatch.setattr(alternatives.SEARCHES, "look", lambda scenario, **_more: running)
    return running


def test_nothing_is_searched_by_opening_the_page(open_app):
    app = clean(open_app(QUERY))
    assert any("search for alternatives begins" in caption.value for caption in app.caption)


def test_rows_show_what_the_library_finds_and_apply_with_one_click(open_app, searched):
    app = clean(open_app(QUERY))
    shown = " ".join(text.value for text in app.markdown)
    for item in searched.found.candidates:
        assert f"{item.num_gpus} × {item.scenario.gpu}" in shown
    rows = searched.found.candidates
    best = next((item for item in rows if item.probability >= 0.9), rows[0]).scenario  # the sure one stands first
    app.button(key="alternative_apply_0").click().run()
    clean(app)
    assert app.selectbox(key="s_gpu").value == best.gpu
    assert dict(app.query_params).get("mine") == QUERY["mine"]  # the restrictions stay in the link


def test_a_change_applies_with_one_click(open_app, searched):
    app = clean(open_app(QUERY))
    app.button(key="change_apply_0").click().run()
    assert clean(app).number_input(key="s_users").value == 900


def test_restrictions_are_kept_in_the_link_and_a_wrong_one_is_told(open_app):
    app = open_app(QUERY)
    app.text_input(key="s_my_gpus").set_value("L40S:2").run()
    assert dict(clean(app).query_params)["mine"] == "L40S:2"
    app.text_input(key="s_my_gpus").set_value("H9000").run()
    clean(app)
    assert any("My GPUs" in warning.value and "H9000" in warning.value for warning in app.warning)
    assert app.number_input(key="s_users").value == 300


def test_a_search_that_was_refused_says_why(open_app, monkeypatch):
    scenario = SMALL.replace(my_gpus="L4", measured_only=True)
    try:
        recommend(scenario)
    except ValueError as error:
        refused = Running(scenario, error=error, done=True)
    monkeypatch.setattr(alternatives.SEARCHES, "look", lambda scenario, **_more: refused)
    app = clean(open_app(QUERY))
    assert any("measured" in error.value for error in app.error)


def test_a_remedy_applies_with_one_click(open_app):
    app = clean(open_app({"v": "2", "nr": "100", "m": "meta-llama/Llama-3.3-70B-Instruct"}))
    assert "does not start" in " ".join(text.value for text in app.subheader)
    app.button(key="remedy_apply_0").click().run()
    assert "does not start" not in " ".join(text.value for text in clean(app).subheader)


def test_a_remedy_that_no_setting_makes_has_no_button():
    assert with_remedy(Scenario(), Remedy("freeing 4 GiB")) is None
    assert with_remedy(Scenario(), Remedy("more", tensor_parallel_size=2)).tensor_parallel_size == 2
    assert with_remedy(Scenario(), Remedy("shorter", max_model_len=1)) is None


def test_links_of_the_find_page_open_the_plan(open_app):
    app = clean(open_app(QUERY, "find"))
    assert len(app.metric) == 5
