"""Several files of one deployment."""

import json

from planner.reading.together import read_together
from planner.reading.wording import together_dict, together_text
from planner.scenario import Scenario

LOG = (
    b"(APIServer pid=1) INFO 06-01 10:00:00 [utils.py:328] non-default args: {'model': 'Qwen/Qwen3-8B', "
    b"'tensor_parallel_size': 2, 'max_model_len': 8192}\nGPU KV cache size: 123,456 tokens\n"
)
SAVED = {
    "backend": "vllm",
    "model_id": "Qwen/Qwen3-8B",
    "max_concurrency": 8,
    "completed": 32,
    "duration": 10.0,
    "total_input_tokens": 32 * 1024,
    "total_output_tokens": 32 * 128,
    "request_throughput": 3.2,
    "output_throughput": 409.6,
    "mean_ttft_ms": 50.0,
    "mean_tpot_ms": 9.0,
}


def saved(**changes):
    return json.dumps(SAVED | changes).encode()


def test_a_log_gives_the_deployment_and_a_benchmark_the_traffic():
    found = read_together([("bench.json", saved()), ("vllm.log", LOG), ("more.json", saved(max_concurrency=64))])
    made = found.scenario
    assert (made.model, made.tensor_parallel_size, made.max_model_len) == ("Qwen/Qwen3-8B", 2, 8192)
    assert (made.arrivals, made.concurrent_users, made.prompt_mean_tokens) == ("closed", 8, 1024)
    assert [item.name for item in found.files] == ["bench.json", "vllm.log", "more.json"]
    assert found.files[1].reading.measured["kv_tokens"] == 123_456
    assert found.contradictions == ()


def test_what_files_state_differently_is_named():
    found = read_together([("vllm.log", LOG), ("bench.json", saved(model_id="Qwen/Qwen3-32B"))])
    assert found.contradictions == (
        "Model: Qwen/Qwen3-8B in vllm.log, Qwen/Qwen3-32B in bench.json; the plan takes Qwen/Qwen3-32B",
    )


def test_a_model_that_no_catalog_has_contradicts_nothing():
    found = read_together([("vllm.log", LOG), ("bench.json", saved(model_id="my-own-name"))])
    assert found.contradictions == ()
    assert found.scenario.model == "Qwen/Qwen3-8B"


def test_a_file_that_cannot_be_read_leaves_the_others():
    found = read_together([("notes.txt", b"hello world"), ("vllm.log", LOG)], Scenario(gpu="L40S"))
    assert found.files[0].reading is None
    assert "start-up log" in found.files[0].problem
    assert (found.scenario.model, found.scenario.gpu) == ("Qwen/Qwen3-8B", "L40S")


def test_the_text_and_the_plain_types_have_each_file_and_what_differs():
    found = read_together([("vllm.log", LOG), ("bench.json", saved(model_id="Qwen/Qwen3-32B")), ("notes.txt", b"hi")])
    text, plain = together_text(found), together_dict(found)
    assert text.count("Qwen/Qwen3-32B in bench.json") == 1
    assert "notes.txt: " in text and "kv_tokens = 123,456" in text
    assert [item["name"] for item in plain["files"]] == ["vllm.log", "bench.json", "notes.txt"]
    assert plain["contradictions"] == list(found.contradictions)
    assert plain["link"] in text


def test_nothing_that_can_be_read_is_no_plan():
    found = read_together([("a", b"hello world"), ("b", b"")])
    assert found.scenario is None
    assert all(item.problem for item in found.files)


def test_chosen_columns_are_those_of_what_is_shown_and_of_the_plan():
    rows = "".join(f"{2 * second},{100 + second},{20},{7}\n" for second in range(50))
    table = f"timestamp,input_tokens,output_tokens,other\n{rows}".encode()
    chosen = {"arrival": "timestamp", "prompt": "input_tokens", "output": "other"}
    found = read_together([("rows.csv", table)], columns=chosen)
    assert found.files[0].reading.traffic.mean_output_tokens == 7
    assert found.scenario == found.files[0].reading.scenario
