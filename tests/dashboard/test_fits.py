"""The page "What fits on my GPU?"."""

from planner.answer.fits import fits
from planner.dashboard.frames import fit_frame
from planner.scenario.link import from_query

from .conftest import clean


def test_the_table_names_each_model_with_a_link_that_opens_its_plan():
    found = fits("RTX 4090", models=["Qwen/Qwen3-8B", "openai/gpt-oss-20b"])
    table = fit_frame(found)
    owners = {"gpt-oss-20b": "openai", "Qwen3-8B": "Qwen"}
    assert [f"{owners[name]}/{name}" for name in table["model"]] == [item.model for item in found]
    for item, link in zip(found, table["plan"], strict=True):
        assert from_query(link.removeprefix("/?")).scenario == item.scenario


def test_the_page_filters_and_follows_the_gpu(open_app):
    app = clean(open_app({"v": "2", "g": "RTX 4060"}, "fits"))
    assert app.selectbox(key="fits_gpu").value == "RTX 4060"
    whole = len(app.dataframe[0].value)
    app.text_input(key="fits_name").set_value("qwen").run()
    few = app.dataframe[0].value
    assert 0 < len(few) < whole
    assert all("qwen" in name.lower() for name in few["model"])
    app.text_input(key="fits_name").set_value("nothing is called so").run()
    assert any("No model" in box.value for box in app.info)


def test_a_row_that_was_taken_opens_as_the_plan(open_app):
    app = clean(open_app(page="fits"))
    app.session_state["_fits_adopted"] = True
    app.run()
    assert not app.dataframe
    assert any("H100 SXM" in item.value for item in app.subheader)
