"""A log, a benchmark or traffic that a user brings to the page."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.dashboard.own import understood_rows
from planner.dashboard.tasks import reading_task
from planner.reading import read
from planner.scenario import Scenario

APP = str(Path(__file__).parents[2] / "app.py")
LOG = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 64\nGPU KV cache size: 123,456 tokens\n"

SAVED = json.dumps(
    {
        "backend": "vllm",
        "model_id": "Qwen/Qwen3-8B",
        "max_concurrency": 8,
        "completed": 32,
        "total_input_tokens": 32 * 1024,
        "total_output_tokens": 32 * 128,
        "request_throughput": 3.2,
        "output_throughput": 409.6,
        "mean_ttft_ms": 50.0,
        "mean_tpot_ms": 9.0,
    }
).encode()


def test_rows_name_the_line():
    rows = understood_rows(read(LOG))
    assert {"Figure or setting": "kv\\_tokens", "Value": "123,456 tokens", "Line": "2"} in rows


def test_text_of_a_log_is_never_markup():
    rows = understood_rows(
        read("vllm serve x/[click](http://evil.example) --max-num-seqs 4\nGPU KV cache size: 5 tokens")
    )
    assert not any("](" in cell for row in rows for cell in row.values())


def test_a_task_reads_and_compares():
    task = reading_task((("vllm.log", LOG.encode()),), Scenario())
    found, (beside,) = task.function(*task.tries[0])
    assert found.scenario.max_num_seqs == 64
    assert [row.name for row in beside.rows] == ["kv_tokens"]


def test_a_benchmark_is_compared_with_the_deployment_of_the_log_beside_it():
    deployment = Scenario(model="Qwen/Qwen3-8B", max_model_len=8192, max_num_seqs=64)
    task = reading_task((("vllm.log", LOG.encode()), ("bench.json", SAVED), ("notes.txt", b"hello")), Scenario())
    _, (_, beside, nothing) = task.function(*task.tries[0])
    alone = reading_task((("bench.json", SAVED),), deployment)
    _, (expected,) = alone.function(*alone.tries[0])
    assert beside.rows == expected.rows
    assert nothing is None


@pytest.fixture(scope="module")
def dropped():
    app = AppTest.from_file(APP, default_timeout=300).run()
    other = SAVED.replace(b"Qwen3-8B", b"Qwen3-4B")
    files = [("vllm.log", LOG.encode(), "text/plain"), ("bench.json", other, "application/json")]
    app.file_uploader(key="own_file").set_value(files).run()
    assert not app.exception
    return app


def test_of_several_files_each_is_named_and_what_they_state_differently(dropped):
    said = [item.value.replace("\\", "") for item in dropped.markdown]
    assert any(text.startswith("**vllm.log**: vLLM start-up log") for text in said)
    assert any(text.startswith("**bench.json**: vLLM bench serve") for text in said)
    warned = next(item.value.replace("\\", "") for item in dropped.warning)
    assert "Qwen/Qwen3-8B in vllm.log" in warned and "Qwen/Qwen3-4B in bench.json" in warned


def test_several_files_fill_in_one_plan(dropped):
    next(item for item in dropped.button if item.label == "Fill in the form").click().run()
    scenario = dropped.session_state["_scenario"]
    assert (scenario.max_num_seqs, scenario.concurrent_users) == (64, 8)


def test_pasted_text_joins_the_files_and_goes_with_its_box(dropped):
    dropped.text_area(key="own_paste").set_value("hello world").run()
    assert any(item.value.startswith("pasted text: ") for item in dropped.error)
    dropped.text_area(key="own_paste").set_value("").run()
    assert not dropped.error


def test_more_files_than_a_page_reads_are_refused():
    app = AppTest.from_file(APP, default_timeout=300).run()
    app.file_uploader(key="own_file").set_value([(f"{number}.log", b"x", "text/plain") for number in range(11)]).run()
    assert any("at most 10 files" in item.value for item in app.error)


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
