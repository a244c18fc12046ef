"""Prometheus text of a running engine."""

import pytest

from planner.reading import read
from planner.reading.metrics_text import histogram_quantile

TEXT = """# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1",model_name="Qwen/Qwen3-8B"} 50.0
vllm:time_to_first_token_seconds_bucket{le="0.5",model_name="Qwen/Qwen3-8B"} 90.0
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="Qwen/Qwen3-8B"} 100.0
vllm:time_to_first_token_seconds_sum{model_name="Qwen/Qwen3-8B"} 20.0
vllm:time_to_first_token_seconds_count{model_name="Qwen/Qwen3-8B"} 100.0
vllm:request_prompt_tokens_sum{model_name="Qwen/Qwen3-8B"} 102400.0
vllm:request_prompt_tokens_count{model_name="Qwen/Qwen3-8B"} 100.0
vllm:request_generation_tokens_sum{model_name="Qwen/Qwen3-8B"} 25600.0
vllm:request_generation_tokens_count{model_name="Qwen/Qwen3-8B"} 100.0
vllm:num_requests_running{model_name="Qwen/Qwen3-8B"} 7.0
"""


def test_means_and_quantiles_since_the_start():
    columns = read(TEXT).runs[0].columns
    assert columns["ttft_ms_mean"] == pytest.approx(200.0)
    assert columns["ttft_ms_p50"] == pytest.approx(100.0)
    assert "ttft_ms_p99" not in columns  # in the open last bucket: beyond half a second, nobody knows how far
    assert (columns["isl"], columns["osl"]) == (1024.0, 256.0)
    assert columns["running_requests"] == 7.0


def test_quantile_is_linear_within_its_bucket():
    buckets = {1.0: 10.0, 2.0: 30.0, float("inf"): 30.0}
    assert histogram_quantile(0.5, buckets) == pytest.approx(1.25)  # the 15th of 30: a quarter into the second bucket
    assert histogram_quantile(0.1, buckets) == pytest.approx(0.3)
    assert histogram_quantile(0.5, {}) is None


def test_lines_that_only_look_like_samples_are_passed_over():
    odd = TEXT + 'INFO 03-20\nvllm:time_to_first_token_seconds_bucket{le="soon"} 5\n'
    assert read(odd).runs[0].columns == read(TEXT).runs[0].columns


def test_mean_lengths_come_from_counters_where_there_is_no_histogram():
    reading = read(
        "\n".join(
            [
                'sglang:prompt_tokens_total{model_name="Qwen/Qwen3-8B"} 2.0e+04',
                'sglang:generation_tokens_total{model_name="Qwen/Qwen3-8B"} 5000.0',
                'sglang:time_to_first_token_seconds_sum{model_name="Qwen/Qwen3-8B"} 10.0',
                'sglang:time_to_first_token_seconds_count{model_name="Qwen/Qwen3-8B"} 20.0',
                'sglang:inter_token_latency_seconds_count{model_name="Qwen/Qwen3-8B"} 4980.0',
            ]
        )
    )
    assert reading.runs[0].columns["isl"] == 1000.0  # 20,000 tokens of 20 requests
    assert reading.runs[0].columns["osl"] == 250.0
    assert reading.scenario.engine == "sglang"


def test_tgi_counts_its_requests_and_their_lengths():
    # names as in TGI's documentation of its metrics
    reading = read(
        "\n".join(
            f"{name}_sum {total}\n{name}_count 400"
            for name, total in (
                ("tgi_request_duration", 320.0),
                ("tgi_request_input_length", 4e5),
                ("tgi_request_generated_tokens", 8e4),
            )
        )
    )
    assert reading.runs[0].columns["e2e_s_mean"] == 0.8
    assert (reading.scenario.prompt_mean_tokens, reading.scenario.output_mean_tokens) == (1000, 200)
    assert reading.scenario.engine == "tgi"
