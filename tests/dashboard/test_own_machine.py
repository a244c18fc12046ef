"""The page follows the user's own machine, says so, and can be told not to."""

import json
import math
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.dashboard.own_machine import errors_in_words, factor_rows, figure_rows, narrowing
from planner.dashboard.tasks import calibration_task
from planner.reading import AdvisedTest
from planner.reading.calibrating import Calibration, Factor, Fitted
from planner.scenario import Scenario

APP = str(Path(__file__).parents[2] / "app.py")
SAVED = {
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "max_concurrency": 4,
    "completed": 20,
    "total_input_tokens": 20 * 512,
    "total_output_tokens": 20 * 64,
    "output_throughput": 300.0,
    "request_throughput": 4.7,
    "mean_ttft_ms": 60.0,
    "mean_tpot_ms": 12.0,
}
LOG = """\
INFO 03-20 03:37:45 [core.py:101] Initializing a V1 LLM engine (v0.17.0) with config: \
model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=8192, tensor_parallel_size=1, quantization=None
INFO 03-20 03:38:56 [kv_cache_utils.py:1000] GPU KV cache size: 321,120 tokens
"""
MADE = Calibration(
    scenario=Scenario(calibration_runs=2),
    factors=(Factor(name="host", label="CPU time per step", value=1.0, low=0.5, high=2.0, is_seen=False),),
    figures=(
        Fitted(run=1, figure="tpot", column="tpot_ms_mean", measured=10.0, before=8.0, after=9.9, left_out=9.5),
        Fitted(run=2, figure="tpot", column="tpot_ms_mean", measured=20.0, before=16.0, after=20.2, left_out=21.0),
    ),
)


def opened():
    return AppTest.from_file(APP, default_timeout=300).run()


def button(app, label):
    return next(item for item in app.button if item.label == label)


def test_errors_before_after_and_left_out_in_a_sentence():
    assert "over 2 runs" in errors_in_words(MADE)
    assert "TPOT 20 % → 1.0 % (5.0 %)" in errors_in_words(MADE)
    assert "TTFT" not in errors_in_words(MADE)


def test_one_run_has_no_others_to_be_predicted_from():
    alone = Calibration(scenario=Scenario(calibration_runs=1), factors=(), figures=MADE.figures[:1])
    assert errors_in_words(alone) == "Error of the run, before → after: TPOT 20 % → 1.0 %."


def test_tables_say_what_the_runs_do_not_show():
    assert factor_rows(MADE)[0][""] == "these runs do not show it"
    assert figure_rows(MADE)[1]["Left out"] == "21"


def test_a_task_calibrates():
    task = calibration_task((("bench.json", json.dumps(SAVED).encode()),), Scenario())
    made = task.function(*task.tries[0])
    assert made.scenario.is_calibrated
    assert made.scenario.calibration_weights > 1


@pytest.fixture(scope="module")
def calibrated():
    app = opened()
    app.text_area(key="own_paste").set_value(json.dumps(SAVED)).run()
    button(app, "Calibrate to this").click().run()
    button(app, "Put it in the plan").click().run()
    assert not app.exception
    return app


def test_the_numbers_are_in_the_plan_and_the_page_says_so(calibrated):
    scenario = calibrated.session_state["_scenario"]
    assert scenario.is_calibrated
    assert any("Calibrated to your 1 measurement" in item.value for item in calibrated.markdown)


def test_under_another_load_the_page_asks_to_calibrate_again(calibrated):
    users = calibrated.number_input(key="s_users")
    before = users.value
    users.set_value(before + 400).run()
    said = re.compile(r"Calibrated for another load.*Made for .* with prompts of .*: calibrate again")
    assert any(said.search(item.value) for item in calibrated.markdown)
    calibrated.number_input(key="s_users").set_value(before).run()
    assert not any(said.search(item.value) for item in calibrated.markdown)


def test_the_calibration_can_be_dropped(calibrated):
    button(calibrated, "Drop the calibration").click().run()
    assert calibrated.session_state["_scenario"].calibration_runs == 0
    assert not any("Calibrated to your" in item.value for item in calibrated.markdown)


def test_a_logs_memory_replaces_the_estimate_and_can_be_dropped():
    app = opened()
    app.text_area(key="own_paste").set_value(LOG).run()
    button(app, "Use its memory instead of the estimate").click().run()
    assert app.session_state["_scenario"].printed_kv_tokens == 321_120
    assert any("Memory as your engine printed it" in item.value for item in app.markdown)
    button(app, "Drop the log").click().run()
    assert app.session_state["_scenario"].printed_kv_tokens is None
    assert not app.exception


def test_a_log_of_another_deployment_is_refused_by_name():
    app = opened()
    app.text_area(key="own_paste").set_value(LOG.replace("tensor_parallel_size=1", "tensor_parallel_size=4")).run()
    button(app, "Use its memory instead of the estimate").click().run()
    assert any("Tensor parallel" in item.value for item in app.error)
    assert app.session_state["_scenario"].printed_kv_tokens is None


def test_what_a_load_test_narrows():
    test = AdvisedTest(load="32 users at once", error=math.log(1.1), command="vllm bench serve", scenario=Scenario())
    assert narrowing("TPOT", math.log(1.5), test) == "32 users at once: TPOT from ± 50 % to ± 10 %"
    assert narrowing("", math.log(1.5), test) == "32 users at once: ± 10 %"


def test_the_page_finds_the_load_test_that_narrows_the_plan_most():
    app = opened()
    app.button(key="own_next").click().run()
    assert not app.exception
    assert sum(item.value.startswith("vllm bench serve") for item in app.code) >= 2
    assert any("TTFT from ±" in item.value or "TPOT from ±" in item.value for item in app.markdown)
