"""Reports with a figure a line, beyond the published ones."""

from pathlib import Path

import pytest

from planner.reading import read
from planner.reading.line_reports import MOST_RUNS, line_reports
from planner.reading.text import lines_of

PUBLISHED = Path(__file__).parent / "published"


def test_several_reports_in_one_file_are_several_runs():
    text = (PUBLISHED / "bench-ollama.txt").read_text()
    reading = read(text + text.replace("24.61", "50.00"))
    assert [run.columns["tpot_ms_mean"] for run in reading.runs] == [pytest.approx(1e3 / 24.61), 20.0]
    assert any("2 runs" in item.text for item in reading.not_understood)


def test_a_server_that_logs_each_request_gives_no_more_than_a_hundred_runs():
    text = (PUBLISHED / "bench-llama-timings.txt").read_text()
    assert len(list(line_reports(lines_of(text * 300)))) == MOST_RUNS


# rows as `summarize` of lmdeploy/profiler.py prints them (name in 40 columns, values in seconds)
def test_the_table_of_lmdeploys_profiler():
    rows = {"Benchmark duration": 20.0, "Total requests": 100, "Successful requests": 100, "Concurrency": 16}
    rows |= {"Total input tokens": 25_600, "Total generated tokens": 12_800, "Output throughput (tok/s)": 640.0}
    rows |= {"Request throughput (req/s)": 5.0, "End-to-end Latency": 3.2, "Time to First Token (TTFT)": 0.25}
    text = "\n" + " Profile Throughput ".center(80, "=") + "\n"
    text += "\n".join(f"{name:<40}{value:>10}" for name, value in rows.items())
    reading = read(text)
    assert reading.kind == "LMDeploy profile"
    made = reading.scenario
    assert (made.prompt_mean_tokens, made.output_mean_tokens, made.concurrent_users) == (256.0, 128.0, 16)
    assert (reading.runs[0].columns["ttft_ms_mean"], reading.runs[0].columns["e2e_s_mean"]) == (250.0, 3.2)


def test_an_engine_that_the_catalog_lacks_is_said():
    reading = read((PUBLISHED / "bench-ktransformers.txt").read_bytes())
    assert any("no such engine" in item.reason and "ktransformers" in item.text for item in reading.not_understood)


def test_a_report_without_lengths_gives_its_load_alone():
    reading = read((PUBLISHED / "bench-mlperf.txt").read_bytes())
    assert (reading.scenario.arrivals, reading.scenario.rate_rps) == ("poisson", 11.07)
    assert any("no prompt and answer lengths" in item.reason for item in reading.not_understood)


def test_a_report_of_requests_without_an_answer_states_no_load():
    text = "Benchmarking summary:\nAverage input tokens per request | 28.9\nAverage output tokens per request | 0.0\n"
    reading = read(text + "Output token throughput (tok/s) | 891.3\n")
    assert any("states no load" in item.reason for item in reading.not_understood)


def test_a_batch_of_a_server():
    text = "batch size: 16\nlatency: 2.00 s\noutput throughput: 128.00 token/s\n"
    text += "(input + output) throughput: 8320.00 token/s\n"
    reading = read(text)
    made = reading.scenario
    assert (made.arrivals, made.num_requests, made.engine) == ("once", 16, "sglang")
    assert (made.prompt_mean_tokens, made.output_mean_tokens) == (1024.0, 16.0)  # 16 × (1024 + 16) ÷ 2 s = 8,320
