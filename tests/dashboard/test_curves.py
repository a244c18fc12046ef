"""Sweeps of the Accuracy page: what it lists, and what a link opens."""

import pandas as pd
import pytest

from planner.accuracy import sweeps
from planner.dashboard import curves
from tests.accuracy.test_sweeps import CHOICE, CURVE, predicted


@pytest.fixture
def table():
    return sweeps.sweeps(predicted(CHOICE, 1.0, 1.1), CHOICE)


def test_deployments_of_a_model_by_their_first_run(table):
    found = curves.deployments(table, "m")
    assert len(found) == 2
    assert all(text.endswith("1,024 → 101 tokens, 3 runs") for text in found.values())
    first = next(iter(found))
    assert curves.model_of(table, first) == "m"
    assert curves.model_of(table, "no such run") == ""


def test_lines_of_a_deployment(table):
    first = next(iter(curves.deployments(table, "m")))
    concurrency, lines = curves.lines_of(table, first, "tpot")
    assert concurrency.tolist() == [4, 16, 64]
    assert lines["measured"].tolist() == [10, 15, 30]
    assert lines["Headroom"].tolist() == pytest.approx([11, 16.5, 33])
    assert pd.isna(lines["AIConfigurator 0.12"]).all()


def test_errors_by_model_are_shares(table):
    (line,) = curves.by_model(table).to_dict("records")
    assert (line["deployments"], line["runs"]) == (2, 6)
    assert line["Time per output token"] == pytest.approx(0.1)
    assert line["Time per output token, shape"] == pytest.approx(0.0)


def test_tables_of_the_page_name_every_tool():
    peers = curves.peer_table(sweeps.sweeps(predicted(CURVE, 1.0, 1.1), CURVE))
    assert len(peers) == 5
    assert peers.set_index("tool").loc["AISimulate 0.12, as it states", "TPOT error"] == pytest.approx(0.284)
    decided = curves.decision_table(sweeps.sweeps(predicted(CHOICE, 1.0, 1.0), CHOICE))
    assert decided["mean loss"].tolist() == [0.0, 0.0]


def test_a_link_opens_the_page_at_a_deployment(open_app):
    table = curves.swept()
    model = "gpt-oss-120b"
    first = list(curves.deployments(table, model))[1]  # not what the page shows by itself
    app = open_app({"v": "1", "view": first}, "accuracy")
    assert not app.exception
    chosen = {box.label: box.value for box in app.selectbox}
    assert (chosen["Measured model"], chosen["Deployment"]) == (model, first)
    assert app.query_params["view"] in (first, [first])
    assert not any("view" in warning.value for warning in app.warning)


def test_a_link_to_a_run_that_nobody_knows_says_so(open_app):
    app = open_app({"v": "1", "view": "nothing"}, "accuracy")
    assert not app.exception
    assert any("does not hold" in warning.value for warning in app.warning)
