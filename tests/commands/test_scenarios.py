import json

import pytest

from planner.commands.scenarios import MAX_ERRORS_SHOWN, refuse
from planner.errors import PlannerError
from planner.scenario.link import to_json, to_query
from planner.scenario.scenario import Scenario
from tests.commands.running import run


def test_the_three_forms_of_a_scenario_agree(tmp_path, capsys):
    scenario = Scenario(users=123, num_requests=300)
    file = tmp_path / "scenario.json"
    file.write_text(to_json(scenario))
    outputs = {
        run("plan", form, capsys=capsys)[1]
        for form in (str(file), to_query(scenario), f"https://plan.example.com/?{to_query(scenario)}")
    }
    assert len(outputs) == 1


START_UP = """\
INFO 03-20 03:37:45 [core.py:101] Initializing a V1 LLM engine (v0.17.0) with config: model='Qwen/Qwen3-8B', \
dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None
INFO 03-20 03:38:45 [gpu_model_runner.py:2000] Model loading took 15.27 GiB memory and 5.1 seconds
INFO 03-20 03:38:56 [kv_cache_utils.py:1000] GPU KV cache size: 321,120 tokens
"""


def test_a_start_up_log_replaces_the_estimate_of_its_own_deployment(tmp_path, capsys):
    log = tmp_path / "log.txt"
    log.write_text(START_UP)
    own = "m=Qwen/Qwen3-8B&ctx=16384&nr=100"
    code, out, _ = run("plan", own, "--log", str(log), "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)["memory"]["kv_tokens"] == 321_120
    code, _, err = run("plan", own + "&tp=2", "--log", str(log), capsys=capsys)
    assert code == 2
    assert "tensor_parallel_size" in err


def test_profiles_of_step_times_are_no_calibration_of_a_plan(tmp_path, capsys):
    made = tmp_path / "profiles.json"
    made.write_text('{"H100 SXM": {"vllm": {"gemm": {}}}}')
    code, _, err = run("plan", "--calibration", str(made), capsys=capsys)
    assert code == 2
    assert "calibrate BENCHMARK" in err


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("u=abc&tp=1", "Users (users) = 'abc'"),
        ("m=foo", "Model (model) = 'foo'"),
        ("u=1.5&tp=abc&g=L40S", "tensor_parallel_size"),
        ("usres=50", "usres"),
        ("http://localhost:8501/?v=1&u=-5", "users"),
        ('{"model": "foo/bar"}', "Model (model) = 'foo/bar'"),
        ('{"users": -5}', "Users (users) = -5"),
        ('{"usres": 5}', "usres"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "simulate", "recommend"])
def test_no_other_question_is_answered(command, scenario, named, tmp_path, capsys):
    if scenario.startswith("{"):
        (tmp_path / "s.json").write_text(scenario)
        scenario = str(tmp_path / "s.json")
    code, out, err = run(command, scenario, capsys=capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert named in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("scenario", "warned"),
    [
        ("m=openai-community/gpt2", "max_model_len"),  # the default context gives way to the model
        ("v=99&u=7&later=1", "newer version"),
        ("http://localhost:8501/?v=1&u=7&utm_source=chat", "utm_source"),
    ],
)
def test_what_gave_way_is_a_warning(scenario, warned, capsys):
    code, out, err = run("plan", scenario, "--requests", "300", capsys=capsys)
    assert code == 0
    assert out
    assert all(line.startswith("warning: ") for line in err.splitlines())
    assert warned in err


@pytest.mark.parametrize("address", ["http://localhost:8501/", "https://plan.example.com", "?"])
def test_the_link_of_the_default_plan_has_no_query(address, capsys):
    code, out, err = run("simulate", address, "--requests", "100", "--json", capsys=capsys)
    assert (code, err) == (0, "")
    assert json.loads(out)["requests"] == 100


def test_a_trace_with_names_of_its_own_is_read_by_the_columns_named(tmp_path, capsys):
    file = tmp_path / "own.csv"
    file.write_text("seconds,in,out\n" + "".join(f"{n},{n + 10},7\n" for n in range(50)))
    named = [part for text in ("arrival=seconds", "prompt=in", "output=out") for part in ("--column", text)]
    code, out, _ = run("read", str(file), *named, "--json", capsys=capsys)
    assert code == 0
    told = {item["name"]: item["value"] for item in json.loads(out)["understood"]}
    assert told["prompt_mean_tokens"] == sum(range(10, 60)) / 50
    code, out, _ = run("simulate", "--trace", str(file), *named, "--json", capsys=capsys)
    assert (code, json.loads(out)["requests"]) == (0, 50)
    for wrong in ("seconds", "when=seconds", "arrival=nothing"):
        code, _, err = run("read", str(file), "--column", wrong, capsys=capsys)
        assert code == 2
        assert len(err.strip().splitlines()) == 1


def test_several_errors_are_told_as_one():
    refuse([])
    with pytest.raises(PlannerError) as caught:
        refuse([PlannerError(f"Error {number}.") for number in range(MAX_ERRORS_SHOWN + 1)])
    assert str(caught.value) == "Error 0. Error 1. Error 2."
