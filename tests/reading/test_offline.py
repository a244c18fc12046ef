"""Benchmarks without a server, as their writers print and save them."""

import json

import pytest

from planner.reading import read
from planner.reading.offline import llama_bench_csv

#: columns of llama-bench's CSV (tools/llama-bench/llama-bench.cpp), of which a row repeats the test's settings
CSV_HEAD = "build_commit,gpu_info,model_filename,model_type,n_prompt,n_gen,n_depth,avg_ts,stddev_ts"


def csv_row(prompt, answer, depth, rate):
    cells = (
        "8cf427ff",
        "NVIDIA GeForce RTX 4080",
        "models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        "qwen2 7B",
        prompt,
        answer,
    )
    return ",".join(f'"{cell}"' for cell in (*cells, depth, rate, "1.0"))


def test_a_prompt_an_answer_and_both_of_llama_bench():
    text = "\n".join([CSV_HEAD, csv_row(512, 0, 0, 7000.0), csv_row(0, 128, 0, 120.0), csv_row(512, 128, 0, 640.0)])
    reading = read(text)
    prompt, answer, both = (run.columns for run in reading.runs)
    assert prompt["ttft_ms_mean"] == pytest.approx(1e3 * 512 / 7000)
    assert answer["tpot_ms_mean"] == pytest.approx(1e3 / 120)
    assert both["e2e_s_mean"] == 1.0  # 640 tokens at 640 tokens/s
    made = reading.scenario
    assert (made.model, made.gpu, made.engine) == ("Qwen/Qwen2.5-7B-Instruct", "RTX 4080", "llama.cpp")


def test_a_depth_is_context_that_an_answer_reads_and_says_nothing_of_a_prompt():
    runs = read("\n".join([CSV_HEAD, csv_row(512, 0, 4096, 5000.0), csv_row(0, 128, 4096, 100.0)])).runs
    assert [(run.columns["isl"], run.columns["osl"]) for run in runs] == [(4096.0, 128.0)]


def test_a_table_of_llama_bench_with_and_without_a_space_in_the_test():
    head = "| model | size | test | t/s |\n| --- | ---: | --- | ---: |\n"
    rows = "| qwen2 7B Q4_K - Medium | 4.36 GiB | {} | 120.60 ± 0.59 |"
    for test in ("tg128", "tg 128"):
        [run] = read(head + rows.format(test)).runs
        assert run.columns["osl"] == 128.0 and run.columns["output_tok_s_total"] == 120.6


def test_throughput_with_its_command_and_with_rates_alone():
    line = "Throughput: 70.77 requests/s, 54350.30 total tokens/s, 18116.77 output tokens/s"
    command = (
        "vllm bench throughput --model Qwen/Qwen3-8B --random-input-len=512 --random-output-len 256 --num-prompts 512"
    )
    made = read(f"$ {command}\n{line}").scenario
    assert (made.model, made.arrivals, made.num_requests) == ("Qwen/Qwen3-8B", "once", 512)
    assert (made.prompt_mean_tokens, made.output_mean_tokens) == (512, 256)
    columns = read(line).runs[0].columns
    assert columns["osl"] == pytest.approx(256, rel=1e-3) and columns["isl"] == pytest.approx(512, rel=1e-3)


def test_saved_throughput_and_latency():
    # keys of vllm/benchmarks/throughput.py and latency.py
    saved = {"elapsed_time": 7.2, "num_requests": 512, "total_num_tokens": 393216, "requests_per_second": 71.1}
    throughput = read(json.dumps(saved | {"tokens_per_second": 54613.0}))
    assert throughput.kind == "vllm bench throughput"
    assert throughput.runs[0].columns["req_s"] == 71.1
    latency = read(json.dumps({"avg_latency": 1.25, "latencies": [1.2, 1.3], "percentiles": {"50": 1.25}}))
    assert latency.kind == "vllm bench latency" and latency.runs[0].columns["e2e_s_mean"] == 1.25


def test_a_latency_with_its_command_is_one_batch():
    reading = read(
        "vllm bench latency --model Qwen/Qwen3-8B --input-len 32 --output-len 128 --batch-size 8\n"
        "Avg latency: 1.0374 seconds"
    )
    assert (reading.scenario.arrivals, reading.scenario.num_requests) == ("once", 8)
    assert reading.runs[0].columns["e2e_s_mean"] == 1.0374


def test_a_row_that_lacks_a_column_is_no_test():
    shifted = csv_row(512, 0, 0, 7000.0).replace('"qwen2 7B",', "")
    assert llama_bench_csv(f"{CSV_HEAD}\n{shifted}") == ()
    assert llama_bench_csv("arrived_at,tokens\n1,2") == ()
