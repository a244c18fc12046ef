"""Tables with a run a row."""

import pytest

from planner.reading import read
from planner.reading.column_tables import column_tables
from planner.reading.text import lines_of

# columns of locust/stats.py, with its row of all requests
LOCUST = """Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,\
Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%
POST,/v1/completions,100,5,50,55,10,200,1024,10.5,0.5,50,60,70,80,90,120,150,180,195,200,200
POST,/v1/chat/completions,50,0,30,35,5,100,2048,5.2,0.0,30,35,40,45,50,80,90,95,98,100,100
None,Aggregated,150,5,45,48,5,200,1365,15.7,0.5,45,55,65,75,85,110,130,150,190,200,200
"""


def test_locust_counts_all_requests():
    [run] = read(LOCUST).runs
    told = {"n_requests": 150, "req_s": 15.7, "e2e_s_mean": 0.048, "e2e_s_p95": 0.11, "failed_requests": 5}
    assert {name: run.columns[name] for name in told} == pytest.approx(told)
    assert read(LOCUST).scenario.rate_rps == 15.7


def test_the_summary_of_a_sweep_and_of_lmdeploy():
    text = ",model_id,max_concurrency,request_throughput,output_throughput,mean_ttft_ms,total_input_tokens,"
    text += "total_output_tokens,completed\n0,Qwen/Qwen3-8B,8,2.0,256.0,90.5,10240,1280,10\n"
    text += '1,Qwen/Qwen3-8B,16,3.0,384.0,"1,100.5",10240,1280,10\n'
    first, second = read(text).runs
    assert (first.columns["concurrency"], second.columns["concurrency"]) == (8, 16)
    assert second.columns["ttft_ms_mean"] == 1100.5
    made = read(text).scenario
    assert (made.model, made.prompt_mean_tokens, made.output_mean_tokens) == ("Qwen/Qwen3-8B", 1024.0, 128.0)


def test_prompts_that_a_batch_shares_say_nothing_of_the_first_token():
    head = "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
    shared = (
        head + "|   512 |     32 |    4 |    640 |    0.337 |  1518.90 |    0.320 |   400.00 |    0.657 |   974.12 |\n"
    )
    [run] = read(shared).runs  # 640 tokens in the cache: 512 + 4 × 32
    assert "ttft_ms_mean" not in run.columns
    assert run.columns["tpot_ms_mean"] == 10.0


def test_lengths_of_a_tgi_benchmark():
    text = "| Sequence Length    | 500 |\n| Decode Length      | 1000 |\n\n"
    text += "| Step | Batch Size | Average | Lowest | Highest | p50 | p90 | p99 |\n|---|---|---|---|---|---|---|---|\n"
    text += "| Prefill | 16 | 958.80 ms | 946.70 ms | 970.90 ms | 970.90 ms | 970.90 ms | 970.90 ms |\n"
    text += "| Decode (token) |  | 121.88 ms | 121.88 ms | 121.88 ms | 121.88 ms | 121.88 ms | 121.88 ms |\n"
    made = read(text).scenario
    assert (made.prompt_mean_tokens, made.output_mean_tokens, made.num_requests) == (500.0, 1000.0, 16)
    assert read(text).runs[0].columns["tpot_ms_mean"] == 121.88


# a report of AISBench has a row a metric: the CSV that it saves reads as its table does
def test_the_csv_of_aisbench():
    text = "Performance Parameters,Stage,Average,Min,Max,Median,P75,P90,P99,N\n"
    text += "TTFT,total,2006.0 ms,2005.1 ms,2007.4 ms,2006.1 ms,2006.2 ms,2006.6 ms,2007.3 ms,8\n"
    text += "InputTokens,total,1512.5,1481.0,1566.0,1511.5,1520.25,1536.6,1563.06,8\n"
    [run] = read(text).runs
    assert (run.columns["ttft_ms_mean"], run.columns["ttft_ms_p99"], run.columns["isl"]) == (2006.0, 2007.3, 1512.5)


def test_a_table_ends_where_its_rows_do():
    assert len(list(column_tables(lines_of(LOCUST.replace("None,Aggregated", "done\nNone,Aggregated"))))) == 2
