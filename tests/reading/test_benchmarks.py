"""JSON and tables of benchmark tools, as their writers document them."""

import json

import pytest

from planner.errors import InvalidInput
from planner.reading import read
from planner.reading.benchmarks import saved_runs

#: keys of `vllm bench serve --save-result` (vllm/benchmarks/serve.py)
SAVED = {
    "backend": "vllm",
    "model_id": "Qwen/Qwen3-8B",
    "request_rate": "inf",
    "max_concurrency": 32,
    "completed": 320,
    "duration": 64.0,
    "total_input_tokens": 320 * 1024,
    "total_output_tokens": 320 * 256,
    "request_throughput": 5.0,
    "output_throughput": 1280.0,
    "total_token_throughput": 6400.0,
    "mean_ttft_ms": 250.0,
    "p99_ttft_ms": 900.0,
    "mean_tpot_ms": 24.0,
}
#: GenAI-Perf's profile_export_genai_perf.json
GENAI_PERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 5.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1280.0},
    "time_to_first_token": {"unit": "ms", "avg": 250.0, "p50": 240.0, "p99": 900.0},
    "inter_token_latency": {"unit": "ms", "avg": 24.0},
    "request_latency": {"unit": "ms", "avg": 6400.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
    "input_config": {"model": ["Qwen/Qwen3-8B"], "perf_analyzer": {"stimulus": {"concurrency": 32}}},
}
#: GuideLLM's benchmarks.json
GUIDELLM = {
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 32}},
            "metrics": {
                "request_totals": {"successful": 320},
                "requests_per_second": {"successful": {"mean": 5.0}},
                "output_tokens_per_second": {"successful": {"mean": 1280.0}},
                "prompt_token_count": {"successful": {"mean": 1024.0}},
                "output_token_count": {"successful": {"mean": 256.0}},
                "time_to_first_token_ms": {"successful": {"mean": 250.0, "percentiles": {"p99": 900.0}}},
                "inter_token_latency_ms": {"successful": {"mean": 24.0}},
                "time_per_output_token_ms": {"successful": {"mean": 25.0}},  # the first token's wait in it
                "request_latency": {"successful": {"mean": 6.4}},
            },
        }
    ]
}


@pytest.mark.parametrize("body", [SAVED, GENAI_PERF, GUIDELLM], ids=["vllm", "genai-perf", "guidellm"])
def test_one_run_reads_alike_from_every_tool(body):
    reading = read(json.dumps(body))
    columns = reading.runs[0].columns
    assert columns["req_s"] == 5.0
    assert columns["output_tok_s_total"] == 1280.0
    assert columns["ttft_ms_mean"] == 250.0
    assert columns["ttft_ms_p99"] == 900.0
    assert columns["tpot_ms_mean"] == 24.0  # the mean gap of each request, whatever a tool calls it
    made = reading.scenario
    assert (made.arrivals, made.concurrent_users) == ("closed", 32)
    assert (made.prompt_mean_tokens, made.output_mean_tokens) == (1024.0, 256.0)
    if "e2e_s_mean" in columns:
        assert columns["e2e_s_mean"] == pytest.approx(6.4)


def test_a_log_that_names_another_model_than_its_benchmark_is_said():
    log = "Initializing a V1 LLM engine (v0.9.2) with config: model='Qwen/Qwen3-32B', max_seq_len=32768"
    reading = read(f"{log}\n{json.dumps(SAVED)}")
    assert reading.kind == "vllm start-up log and vllm bench serve"
    assert (reading.scenario.model, reading.scenario.engine_version) == ("Qwen/Qwen3-8B", "0.9.2")
    assert any("the log names Qwen/Qwen3-32B" in item.reason for item in reading.not_understood)
    same = read(f"{log.replace('32B', '8B')}\n{json.dumps(SAVED)}")
    assert not any("the log names Qwen" in item.reason for item in same.not_understood)


def test_the_model_of_a_saved_result_is_filled_in():
    assert read(json.dumps(SAVED)).scenario.model == "Qwen/Qwen3-8B"
    unknown = read(json.dumps(SAVED | {"model_id": "acme/none-such-9000"}))
    assert any("acme/none-such-9000" in item.text for item in unknown.not_understood)


def test_a_line_a_run():
    runs = saved_runs(json.dumps(SAVED) + "\n" + json.dumps(SAVED | {"max_concurrency": 64}) + "\n{broken")
    assert [run.columns["concurrency"] for run in runs] == [32.0, 64.0]
    assert [item.line for run in runs for item in run.understood if item.name == "concurrency"] == [1, 2]


def test_a_comma_is_no_number():
    table = (
        "============ Serving Benchmark Result ============\nSuccessful requests: ,\nRequest throughput (req/s): 2.5\n"
    )
    [run] = read(table).runs
    assert run.columns == {"req_s": 2.5}


def test_rows_that_no_plan_has_are_named():
    table = (
        "============ Serving Benchmark Result ============\nSuccessful requests: 10\nPeak concurrent requests: 26.00\n"
    )
    table += "Backend: vllm\nRequest throughput (req/s): 2.5\n==================================================\n"
    table += "Later requests: 3\n"
    told = [(item.line, item.text) for item in read(table).not_understood if item.line]
    assert told == [(3, "Peak concurrent requests: 26.00")]


def test_llama_bench():
    table = (
        "| model | size | params | backend | ngl | test | t/s |\n| --- | ---: | ---: | --- | --: | ---: | ---: |\n"
        "| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | pp512 | 4000.00 ± 10.00 |\n"
        "| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | tg128 | 125.00 ± 0.50 |\n"
    )
    prefill, decode = read(table).runs
    assert prefill.columns["ttft_ms_mean"] == pytest.approx(128.0)  # 512 tokens at 4,000 a second
    assert decode.columns["tpot_ms_mean"] == pytest.approx(8.0)  # 125 a second


#: tables of src/guidellm/benchmark/outputs/console.py, with a benchmark at 32 users and one at a rate
TABLES = """
ℹ Run Summary Info
| Benchmark | Timings    || Input Tokens |
| Strategy  | Start | Dur | Comp         |
|           |       | Sec | Tot          |
| concurrent | 09:35:12 | 30.0 | 956.0   |

ℹ Request Token Statistics (Completed Requests)
|============|=======|=======|=======|=======|
| Benchmark  | Input Tok    || Output Tok   ||
| Strategy   | Per Req      || Per Req      ||
|            | Mdn   | p95   | Mdn   | p95   |
|------------|-------|-------|-------|-------|
| concurrent | 546.0 | 546.0 | 256.0 | 256.0 |
| constant   | 546.0 | 546.0 | 256.0 | 256.0 |
|============|=======|=======|=======|=======|

ℹ Request Latency Statistics (Completed Requests)
| Benchmark  | Request Latency || TTFT           || ITL          || TPOT         ||
| Strategy   | Sec             || ms             || ms           || ms           ||
|            | Mdn     | p95    | Mdn    | p95    | Mdn   | p95   | Mdn   | p95   |
|------------|---------|--------|--------|--------|-------|-------|-------|-------|
| concurrent | 20.4    | 21.8   | 1465.9 | 2797.0 | 74.3  | 76.1  | 79.6  | 85.1  |
| constant   | --      | --     | 300.5  | 4038.4 | 42.6  | 103.0 | 43.7  | 118.4 |

ℹ Server Throughput Statistics (All Requests)
| Benchmark  | Requests             ||| Input Tokens | Output Tokens | Total Tokens |
| Strategy   | Concurrency || Per Sec | Per Sec      | Per Sec       | Per Sec      |
|            | Mdn   | Mean | Mean                                               ||||
|------------|-------|------|---------|--------------|---------------|--------------|
| concurrent | 32.0  | 32.0 | 1.1     | 1553.4       | 1,414.5       | 1306.9       |
| constant   | 12.0  | 12.4 | 1.3     | 1873.0       | 545.7         | 2418.8       |
"""


def test_the_tables_of_guidellm():
    users, rate = read(TABLES).runs
    assert (users.columns["concurrency"], rate.columns["request_rate_rps"]) == (32, 1.3)
    assert (users.columns["isl"], users.columns["osl"]) == (546, 256)
    # of (20.4 s − 1.47 s) ÷ 255 the ITL, of 20.4 s ÷ 256 the TPOT
    assert (users.columns["ttft_ms_p50"], users.columns["tpot_ms_p50"]) == (1465.9, 74.3)
    assert (users.columns["output_tok_s_total"], rate.columns["req_s"]) == (1414.5, 1.3)
    assert "e2e_s_p50" not in rate.columns
    made = read(TABLES).scenario
    assert (made.arrivals, made.concurrent_users, made.prompt_mean_tokens) == ("closed", 32, 546)


@pytest.mark.parametrize("lines", [14, 17, 20, 23, 27, 30, 33])
def test_tables_that_are_cut_are_read_as_far_as_they_go(lines):
    first, *_ = read("\r\n".join(TABLES.split("\n")[:lines])).runs
    assert (first.columns["isl"], first.columns["osl"]) == (546, 256)
    assert ("ttft_ms_p50" in first.columns) == (lines >= 23)


def test_a_table_whose_header_is_torn_is_left_out():
    torn = TABLES.replace("| Strategy   | Per Req      || Per Req      ||", "| Strategy   | Per Req      ||")
    first, *_ = read(torn).runs
    assert "isl" not in first.columns
    assert first.columns["ttft_ms_p50"] == 1465.9


@pytest.mark.parametrize(
    "text", ["{}", "[]", "[1, 2]", '{"benchmarks": 3}', "[" * 100_000, "hello world", '{"a": NaN}']
)
def test_other_text_is_refused_with_what_would_be_read(text):
    with pytest.raises(InvalidInput) as caught:
        read(text)
    assert "start-up log of vLLM" in str(caught.value)


# AIPerf's CSV: a block of distributions and a block of single values (genai_perf exporter, as AIPerf keeps it)
def test_the_csv_of_aiperf():
    text = "Metric,avg,min,max,p50,p99,std\r\nTime to First Token (ms),10.00,5.00,15.00,9.00,14.90,2.50\r\n"
    text += "Input Sequence Length (tokens),128.00,128,128,128,128,0\r\n"
    text += "Output Sequence Length (tokens),64.00,64,64,64,64,0\r\n"
    text += "\r\nMetric,Value\r\nRequest Count,3.00\r\nRequest Throughput (requests/sec),4.00\r\n"
    reading = read(text)
    columns = reading.runs[0].columns
    assert (columns["ttft_ms_mean"], columns["ttft_ms_p99"], columns["req_s"], columns["n_requests"]) == (
        10,
        14.9,
        4,
        3,
    )
    assert (reading.scenario.rate_rps, reading.scenario.prompt_mean_tokens) == (4.0, 128.0)


def test_a_benchmark_that_states_no_load_keeps_the_plans():
    table = """ℹ Request Token Statistics (Completed Requests)
| Benchmark | Input Tok || Output Tok ||
| Strategy  | Per Req   || Per Req    ||
|           | Mdn | p95  | Mdn | p95   |
| concurrent | 546.0 | 546.0 | 256.0 | 256.0 |"""
    reading = read(table)
    assert reading.problem == ""
    assert (reading.scenario.prompt_mean_tokens, reading.scenario.output_mean_tokens) == (546.0, 256.0)
    assert any("no load" in item.reason for item in reading.not_understood)
