"""The search on its page: asked, run, adopted, outdated."""

from planner.answer.search import recommend
from planner.scenario.scenario import Scenario

from .conftest import clean

QUERY = {"v": "2", "nr": "400", "u": "300"}
SCENARIO = Scenario(num_requests=400, users=300)


def searched(open_app, gpus, dtypes=("auto",)):
    app = open_app(QUERY, "find")
    app.multiselect(key="find_gpus").set_value(list(gpus))
    app.multiselect(key="find_dtypes").set_value(list(dtypes))
    app.button[0].click().run()
    return app


def test_nothing_is_searched_before_it_is_asked(open_app):
    app = clean(open_app(QUERY, "find"))
    assert not app.dataframe
    assert "No search yet" in app.info[0].value


def test_a_search_shows_what_the_library_finds(open_app):
    app = clean(searched(open_app, ("L40S", "H100 SXM")))
    found = recommend(SCENARIO, gpus=("L40S", "H100 SXM"), weight_dtypes=("auto",))
    table = app.dataframe[0].value
    assert len(table) == found.candidates_considered
    said = {"cannot be cheaper": "costs more than the best"}
    assert list(table["outcome"]) == [said.get(item.status, item.status) for item in found.candidates]
    best = table.iloc[0]
    assert best["outcome"] == "meets targets"
    assert best["USD a month"] == table[table["outcome"] == "meets targets"]["USD a month"].min()
    assert best["USD a month"] == found.best.usd_per_month
    assert any(found.best.scenario.gpu in text.value for text in app.markdown)
    assert f"Considered {found.candidates_considered} deployments" in " ".join(caption.value for caption in app.caption)


def test_no_gpu_is_told(open_app):
    app = clean(searched(open_app, ()))
    assert "at least one GPU" in app.error[0].value


def test_changed_inputs_outdate_the_search_and_it_stays(open_app):
    app = searched(open_app, ("L40S",))
    app.number_input(key="s_users").set_value(900).run()
    clean(app)
    assert any("have changed" in warning.value for warning in app.warning)
    assert len(app.dataframe) == 1


def test_a_model_that_fits_nowhere_is_told(open_app):
    app = open_app({**QUERY, "m": "deepseek-ai/DeepSeek-V3"}, "find")
    app.multiselect(key="find_gpus").set_value(["L4"])
    app.button[0].click().run()
    clean(app)
    assert any("No deployment" in text.value for text in app.markdown)


def test_without_a_rate_the_search_says_what_it_needs(open_app):
    app = open_app({**QUERY, "a": "closed"}, "find")
    app.button[0].click().run()
    clean(app)
    assert any("poisson or bursty" in error.value for error in app.error)
