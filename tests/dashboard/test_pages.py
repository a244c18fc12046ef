"""Each page with the default scenario, a hostile link and a shared link."""

import json

import pytest

from planner.scenario.link import from_params
from planner.scenario.scenario import Scenario

from .conftest import HOSTILE, PAGES, SHARED, clean


@pytest.mark.parametrize("page", PAGES)
def test_default_scenario_fills_the_page(open_app, page):
    app = clean(open_app(page=page))
    assert app.subheader[0].value
    assert dict(app.query_params) == {"v": "2"}


@pytest.mark.parametrize("page", PAGES)
def test_hostile_link_says_what_was_ignored_and_loads_the_rest(open_app, page):
    app = clean(open_app(HOSTILE, page))
    said = " ".join(warning.value for warning in app.warning)
    for part in ("nope", "abc", "nan", "newer version"):
        assert part in said
    for text in [said, *(caption.value for caption in app.caption)]:
        assert "[x](javascript" not in text  # the bracket is escaped, so no link is made
        assert "$a$" not in text.replace("\\$", "")
    assert app.subheader[0].value


def test_a_link_full_of_unknown_settings_keeps_the_plan_in_sight(open_app):
    app = clean(open_app({f"zz{number}": "1" for number in range(200)}))
    (said,) = [item.value for item in app.warning if "zz0" in item.value]
    assert said.count("\n") == 10
    assert said.endswith("- And 190 more.")


@pytest.mark.parametrize("page", PAGES)
def test_shared_link_opens_the_same_scenario(open_app, page):
    app = clean(open_app(SHARED, page))
    assert from_params(dict(app.query_params)).scenario == from_params(SHARED).scenario
    assert not app.warning or "link" not in app.warning[0].value


@pytest.mark.parametrize("page", PAGES)
def test_model_that_does_not_fit_keeps_every_page(open_app, page):
    app = clean(open_app({"v": "2", "m": "deepseek-ai/DeepSeek-V3"}, page))
    assert app.subheader[0].value


def test_infeasible_first_screen_says_what_would_help(open_app):
    app = clean(open_app({"v": "2", "m": "deepseek-ai/DeepSeek-V3"}))
    assert "does not start" in app.subheader[0].value
    assert not app.metric
    assert len(app.get("plotly_chart")) >= 1


@pytest.mark.parametrize(
    "query",
    [
        {"a": "closed", "cu": "1"},
        {"a": "once"},
        {"l": "constant", "p": "1", "o": "1"},
        {"ttft": "0.001"},
        {"tp": "7"},
        {"e": "ollama"},
        {"g": "custom", "gm": "0.5"},
        {"m": "custom", "ex": "8"},
        {"u": "100000000", "uh": "100000", "pk": "100"},
        {"r": "3", "sr": "2"},
        {"usd": "0"},
    ],
)
def test_unusual_scenarios_show_the_first_screen(open_app, query):
    assert clean(open_app({"v": "2", **query})).subheader[0].value


def test_every_chart_says_its_finding_and_has_a_text(open_app):
    for page in ("plan", "memory", "latency", "batching", "fleet"):
        app = open_app(page=page)
        charts = app.get("plotly_chart")
        assert charts
        for chart in charts:
            spec = json.loads(chart.proto.spec)
            assert spec["data"]
            assert chart.proto.alt


def test_memory_identity_adds_up(open_app):
    app = open_app(page="memory")
    assert any("tokens ×" in text.value for text in app.markdown)
    assert any("adds up" in text.value for text in app.markdown)


def test_the_lab_has_the_articles_table(open_app):
    # The article's printed table.
    tables = [table.value for table in open_app(page="batching").table]
    (table,) = [table for table in tables if "decode steps" in table.columns]
    assert list(table["decode steps"]) == ["25,505", "8,020", "3,319"]
    assert list(table["tokens per step"]) == ["1.00", "3.18", "7.68"]
    assert list(table["slots busy"]) == ["100 %", "40 %", "96 %"]
    assert list(table["median wait"]) == ["11,880", "3,682", "1,565"]
    assert list(table["95th percentile"]) == ["24,817", "7,758", "3,101"]
    (cache,) = [table for table in tables if "per token" in table.columns]
    assert list(cache["per token"]) == ["36 KiB", "512 KiB"]
    assert list(cache["together"]) == ["288 MiB", "16 GiB"]


def test_an_old_link_to_the_article_opens_the_lab(open_app):
    app = clean(open_app(SHARED, "seed"))
    assert any("Step by step" in text.value for text in app.markdown)
    assert from_params(dict(app.query_params)).scenario == from_params(SHARED).scenario


def test_share_shows_a_link_that_decodes_to_the_scenario(open_app):
    app = open_app(SHARED, "fleet", opened=("share",))
    link = next(block.value for block in app.code if "?" in block.value)
    from planner.scenario.link import from_query

    decoded = from_query(link)
    assert not decoded.problems
    assert decoded.scenario == from_params(SHARED).scenario
    assert decoded.scenario != Scenario()


@pytest.mark.parametrize("page", ["plan", "latency", "batching", "fleet"])
def test_a_traffic_that_does_not_fit_at_all_keeps_the_page(open_app, page):
    # Every prompt is longer than the context of 8,192 tokens: nothing is finished, so nothing has a price or a wait.
    assert clean(open_app({"v": "2", "l": "constant", "p": "9000"}, page)).subheader[0].value


def test_weights_that_run_weight_only_have_the_nearest_native_choice_one_click_away(open_app):
    # Ampere has no FP8 units: vLLM runs FP8 weight-only there; INT8 W8A8 is native.
    app = clean(open_app({"v": "2", "g": "A100 SXM 80GB", "w": "fp8", "nr": "100"}))
    assert any("weight-only" in text.value for text in app.markdown)
    clean(app.button(key="finding_kernel_support").click().run())
    assert app.query_params["w"] in ("int8", ["int8"])
    assert not any("weight-only" in text.value for text in app.markdown)
