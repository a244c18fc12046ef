"""A log, a benchmark or traffic that a user brings to the page."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from planner.dashboard.own import understood_rows
from planner.dashboard.tasks import reading_task
from planner.reading import read
from planner.scenario import Scenario

APP = str(Path(__file__).parents[2] / "app.py")
LOG = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 64\nGPU KV cache size: 123,456 tokens\n"


def test_rows_name_the_line():
    rows = understood_rows(read(LOG))
    assert {"Figure or setting": "kv\\_tokens", "Value": "123,456 tokens", "Line": "2"} in rows


def test_text_of_a_log_is_never_markup():
    rows = understood_rows(
        read("vllm serve x/[click](http://evil.example) --max-num-seqs 4\nGPU KV cache size: 5 tokens")
    )
    assert not any("](" in cell for row in rows for cell in row.values())


def test_a_task_reads_and_compares():
    task = reading_task(LOG.encode(), Scenario())
    reading, beside = task.function(*task.tries[0])
    assert reading.scenario.max_num_seqs == 64
    assert [row.name for row in beside.rows] == ["kv_tokens"]


def test_a_pasted_log_fills_in_the_form():
    app = AppTest.from_file(APP, default_timeout=300).run()
    app.text_area(key="own_paste").set_value(LOG).run()
    assert not app.exception
    button = next(item for item in app.button if item.label == "Fill in the form")
    button.click().run()
    assert app.session_state["_scenario"].model == "Qwen/Qwen3-8B"
    assert app.session_state["_scenario"].max_num_seqs == 64


def test_what_is_no_log_is_said_and_the_form_stays():
    app = AppTest.from_file(APP, default_timeout=300).run()
    before = app.session_state["_scenario"]
    app.text_area(key="own_paste").set_value("hello world").run()
    assert any("start-up log of vLLM" in item.value for item in app.error)
    assert app.session_state["_scenario"] == before
    assert not app.exception
