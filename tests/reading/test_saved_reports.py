"""Reports saved as JSON, with the keys that their writers document."""

import json

import pytest

from planner.errors import InvalidInput
from planner.reading import read
from planner.reading.saved_reports import saved_report

#: get_statistics_dict of tensorrt_llm/bench/dataclasses/reporting.py
TRTLLM = {
    "engine": {
        "model": "Qwen/Qwen3-8B",
        "version": "1.1.0",
        "backend": "Pytorch",
        "dtype": "bfloat16",
        "kv_cache_dtype": "FP8",
        "quantization": "FP8",
    },
    "machine": {"name": "NVIDIA H200", "memory.total": 139.8, "clocks.mem": 3.2},
    "world_info": {"tp_size": 2, "pp_size": 1, "ep_size": 1, "max_batch_size": 256, "max_num_tokens": 8192},
    "request_info": {"num_requests": 512, "avg_input_length": 1024.0, "avg_output_length": 128.0},
    "performance": {
        "request_throughput_req_s": 40.0,
        "system_output_throughput_tok_s": 5120.0,
        "system_total_throughput_tok_s": 46080.0,
        "avg_request_latency_ms": 6400.0,
    },
    "streaming_metrics": {"avg_ttft_ms": 3200.0, "avg_tpot_ms": 25.2},
}
#: utils/process_result.py of InferenceX: seconds, tokens per second and GPU
INFERENCEX = {
    "hw": "b200-nv",
    "conc": 64,
    "model": "openai/gpt-oss-120b",
    "framework": "vllm",
    "precision": "fp4",
    "isl": 1024,
    "osl": 1024,
    "disagg": False,
    "tp": 4,
    "ep": 1,
    "dp_attention": "false",
    "tput_per_gpu": 3000.0,
    "output_tput_per_gpu": 1500.0,
    "mean_ttft": 0.25,
    "mean_tpot": 0.01,
    "mean_e2el": 10.5,
}
#: stage_N_lifecycle_metrics.json of inference-perf: seconds
INFERENCE_PERF = {
    "load_summary": {"count": 120, "requested_rate": 4.0, "achieved_rate": 4.01},
    "successes": {
        "count": 118,
        "latency": {
            "request_latency": {"mean": 8.0, "median": 7.5},
            "time_to_first_token": {"mean": 0.2, "median": 0.19},
            "time_per_output_token": {"mean": 0.02},
        },
        "throughput": {"requests_per_sec": 3.9, "output_tokens_per_sec": 1000.0, "total_tokens_per_sec": 5000.0},
        "prompt_len": {"mean": 1000.0},
        "output_len": {"mean": 250.0},
    },
    "failures": {"count": 2},
}


def test_the_report_of_trtllm_bench_names_the_deployment():
    reading = read(json.dumps(TRTLLM, indent=1))
    made = reading.scenario
    assert reading.problem == ""
    assert (made.model, made.gpu, made.tensor_parallel_size) == ("Qwen/Qwen3-8B", "H200 SXM", 2)
    assert (made.engine, made.weight_dtype, made.arrivals, made.num_requests) == ("tensorrt-llm", "fp8", "once", 512)
    assert made.max_num_batched_tokens == 8192
    assert reading.runs[0].columns["e2e_s_mean"] == pytest.approx(6.4)


@pytest.mark.parametrize("text", [json.dumps(INFERENCEX), json.dumps([INFERENCEX, INFERENCEX | {"conc": 128}])])
def test_a_result_of_inferencex_names_the_deployment(text):
    reading = read(text)
    made = reading.scenario
    assert reading.problem == ""
    assert (made.model, made.gpu, made.tensor_parallel_size) == ("openai/gpt-oss-120b", "B200", 4)
    assert (made.arrivals, made.concurrent_users, made.prompt_mean_tokens) == ("closed", 64, 1024)
    columns = reading.runs[0].columns
    assert (columns["output_tok_s_total"], columns["total_tok_s"]) == (6000.0, 12000.0)  # of four GPUs
    assert (columns["ttft_ms_mean"], columns["tpot_ms_mean"]) == (250.0, 10.0)


def test_a_stage_of_inference_perf():
    reading = read(json.dumps(INFERENCE_PERF))
    columns = reading.runs[0].columns
    assert (columns["ttft_ms_mean"], columns["tpot_ms_mean"], columns["e2e_s_mean"]) == (200.0, 20.0, 8.0)
    made = reading.scenario
    assert (made.arrivals, made.rate_rps, made.output_mean_tokens) == ("poisson", 4.0, 250.0)


def test_the_json_of_aisbench_has_units_in_its_values():
    body = {"Benchmark Duration": {"total": "98409.4916 ms"}, "Success Requests": {"total": 8}}
    body |= {"Max Concurrency": {"total": 1}, "Request Throughput": {"total": "0.0813 req/s"}}
    body |= {"Total Input Tokens": {"total": 12100}, "Total Generated Tokens": {"total": 4096}}
    body |= {"Output Token Throughput": {"total": "41.622 token/s"}}
    reading = read(json.dumps(body))
    assert reading.runs[0].columns["duration_s"] == pytest.approx(98.4094916)
    assert (reading.scenario.prompt_mean_tokens, reading.scenario.output_mean_tokens) == (1512.5, 512.0)


def test_the_requests_of_perf_analyzer():
    # two requests, 1 s apart: first tokens after 200 and 300 ms, ends after 700 and 1,000 ms
    requests = [
        {"timestamp": start * 10**9, "response_timestamps": [start * 10**9 + ms * 10**6 for ms in after]}
        for start, after in ((5, (200, 450, 700)), (6, (300, 1000)))
    ]
    body = {"experiments": [{"experiment": {"mode": "concurrency", "value": 2}, "requests": requests}]}
    columns = read(json.dumps(body)).runs[0].columns
    told = {"ttft_ms_mean": 250.0, "e2e_s_mean": 0.85, "req_s": 1.0, "concurrency": 2.0, "n_requests": 2.0}
    assert {name: columns[name] for name in told} == pytest.approx(told)


def test_the_summary_of_k6():
    body = {"metrics": {"http_req_duration": {"avg": 1500.0, "med": 1400.0}, "http_reqs": {"count": 90, "rate": 3.0}}}
    columns = read(json.dumps(body)).runs[0].columns
    assert (columns["e2e_s_mean"], columns["n_requests"], columns["req_s"]) == (1.5, 90, 3.0)


@pytest.mark.parametrize("body", [{"experiments": 3}, {"experiments": [None, {"experiment": {}, "requests": [1]}]}])
def test_other_experiments_are_refused_and_do_not_fail(body):
    with pytest.raises(InvalidInput, match="start-up log of vLLM"):
        read(json.dumps(body))


def test_results_a_line_are_no_traffic_though_they_have_a_date_and_lengths():
    text = "".join(json.dumps(INFERENCEX | {"date": "2026-03-01", "conc": users}) + "\n" for users in (4, 8))
    assert read(text).kind == "InferenceX"


def test_objects_of_no_tool():
    assert saved_report({"hw": "b200", "conc": 4}, 1) is None
    assert saved_report(INFERENCEX | {"tput_per_gpu": None}, 1) is None
