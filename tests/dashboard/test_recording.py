"""Recorded traffic that a user brings: which column is what, and what the recording looks like."""

from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest

from planner.dashboard.recording import figure_rows, reuse_sentence
from planner.workload import Requests, summary_of

APP = str(Path(__file__).parents[2] / "app.py")
#: a request every two seconds, in columns with names of the writer's own
ROWS = "".join(f"{2 * second},{100 + second % 7},{20},x\n" for second in range(300))
OWN = "seconds,in,out,what\n" + ROWS


def opened(text):
    app = AppTest.from_file(APP, default_timeout=300).run()
    return app.text_area(key="own_paste").set_value(text).run()


def charts_of(app):
    return [chart.proto.id for chart in app.get("plotly_chart") if "own_" in chart.proto.id]


def test_a_table_with_names_of_its_own_asks_which_column_is_what():
    app = opened(OWN)
    assert not app.error
    assert any("If it is a table of recorded traffic" in item.value for item in app.info)
    assert app.selectbox(key="own_column_arrival").value is None
    app.selectbox(key="own_column_prompt").set_value("in")
    app.selectbox(key="own_column_output").set_value("out")
    app.selectbox(key="own_column_arrival").set_value("seconds").run()
    assert not app.exception
    assert any("own_lengths" in name for name in charts_of(app))
    next(item for item in app.button if item.label == "Fill in the form").click().run()
    scenario = app.session_state["_scenario"]
    assert scenario.rate_rps == 300 / 598  # over the time from the first request to the last
    assert scenario.output_quantiles.split(".")[7] == "20"


def test_a_column_that_holds_no_times_is_said_and_another_can_be_chosen():
    app = opened(OWN)
    app.selectbox(key="own_column_arrival").set_value("what").run()
    assert "trace line 2, what" in app.error[0].value.replace("\\", "")
    app.selectbox(key="own_column_arrival").set_value("seconds").run()
    assert not app.error


def test_a_known_table_is_shown_at_once_and_asks_nothing():
    app = opened("arrived_at,num_prefill_tokens,num_decode_tokens\n" + ROWS.replace(",x\n", "\n"))
    assert not [item for item in app.selectbox if str(item.key).startswith("own_column")]
    assert any("own_rate" in name for name in charts_of(app))
    assert not app.exception


def test_another_file_forgets_the_columns_of_the_one_before():
    app = opened(OWN)
    app.selectbox(key="own_column_arrival").set_value("seconds").run()
    app.text_area(key="own_paste").set_value("when,tokens\n1,2\n3,4\n").run()
    assert app.selectbox(key="own_column_arrival").value is None
    assert not app.exception


def test_a_recording_is_told_in_words_and_its_reuse_of_the_prompt_tokens():
    ones = np.ones(4, dtype=np.int64)
    group = np.array([0, 0, 0, -1])
    recorded = Requests(
        arrival_s=np.arange(4.0),
        prompt_tokens=100 * ones,
        output_tokens=ones,
        output_limit_tokens=ones,
        prefix_group=group,
        prefix_tokens=np.array([0, 60, 80, 0]),
    )
    told = summary_of(recorded)
    assert reuse_sentence(told).startswith("35 % of the prompt tokens")
    said = {row["Figure"]: row["Value"] for row in figure_rows(told)}
    assert (said["Requests"], said["Prompt, mean"]) == ("4", "100 tokens")
    assert said["Mean rate"] == "1.33 req/s"  # four in the three seconds from the first to the last
    assert said["Prompt tokens that repeat a prefix"] == "35 %"


def test_a_choice_whose_widgets_went_with_their_file_is_no_choice():
    # In a browser, a new file takes them away, and Streamlit then tells of their change.
    def late():
        from planner.dashboard import recording

        recording._choose()

    app = AppTest.from_function(late).run()
    assert not app.exception
    assert "_own_columns" not in app.session_state
