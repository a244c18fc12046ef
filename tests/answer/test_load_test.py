"""The load test of a plan: its traffic, and the flags that send it."""

import json
import math
import shlex

import pytest

from planner.answer.load_test import bench_flags, input_half_width, load_test_scenario, measurement
from planner.workload import draw
from tests.answer.cases import planned


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"users": 600}, ["--request-rate 10 ", "--num-prompts 1800", "--goodput ttft:1000 tpot:50 "]),  # 180 s
        ({"users": 3000, "num_replicas": 5}, ["--request-rate 10 "]),  # one replica's share of 50 req/s
        ({"arrivals": "bursty", "burst_cv": 2.0}, ["--burstiness 0.25"]),  # the shape of the Gamma gaps: 1 ÷ CV²
        ({"arrivals": "closed", "concurrent_users": 9, "num_replicas": 2}, ["--max-concurrency 5"]),
        ({"arrivals": "once", "num_replicas": 4}, ["--num-prompts 100 "]),
        ({"e2e_target_s": 20.0, "ttft_target_s": None, "tpot_target_s": None}, ["--goodput e2el:20000 "]),
        ({"target_quantile": 0.9}, ["--metric-percentiles 50,90,95,99"]),
        ({"safety_margin": 0.5}, ["--goodput ttft:1000 tpot:50 "]),  # the targets themselves
    ],
)
def test_the_measurement_sends_one_replicas_share_of_this_traffic(changes, parts):
    command = measurement(planned(**changes))
    assert command.startswith("vllm bench serve --backend openai --model meta-llama/Llama-3.1-8B-Instruct ")
    for part in parts:
        assert part in f"{command} "


def test_what_follows_a_shared_prompt_varies():
    # A uniform distribution of half-width w has a standard deviation of w ÷ √3: 0.3 of the mean is w = 0.52.
    done = planned(
        lengths="lognormal",
        prompt_mean_tokens=900.0,
        output_mean_tokens=80.0,
        prompt_spread=0.3,
        output_spread=0.1,
        shared_prefix_tokens=300,
    )
    tested = load_test_scenario(done)
    flags = dict(bench_flags(tested, "m"))
    own, answer = int(flags["--random-input-len"][0]), int(flags["--random-output-len"][0])
    assert (own, answer) == (round(done.mean_prompt_tokens) - 300, round(done.mean_output_tokens))
    widths = json.loads(flags["--random-range-ratio"][0])
    assert widths == pytest.approx({"input": 0.3 * math.sqrt(3), "output": 0.1 * math.sqrt(3)}, abs=1e-3)
    prompts = draw(tested).prompt_tokens  # the plan of the test draws what the client sends
    assert prompts.min() == pytest.approx(300 + own * (1 - widths["input"]), abs=5)
    assert prompts.max() == pytest.approx(300 + own * (1 + widths["input"]), abs=5)


def test_the_longest_request_fits_in_the_context():
    # 3,000 + 500 tokens of 4,000: at most 500 ÷ 3,500 wider.
    done = planned(
        lengths="lognormal", prompt_mean_tokens=3000.0, output_mean_tokens=500.0, max_model_len=4000, num_requests=300
    )
    tested = load_test_scenario(done)
    both = tested.prompt_mean_tokens + tested.output_mean_tokens
    assert input_half_width(tested) == pytest.approx((4000 - both) / both)


def test_equal_lengths_stay_equal():
    flags = dict(bench_flags(load_test_scenario(planned(lengths="constant")), "m", "http://localhost:30000"))
    assert "--random-range-ratio" not in flags
    assert flags["--base-url"] == ("http://localhost:30000",)


def test_several_shared_prompts_are_sent_with_equal_lengths():
    tested = load_test_scenario(planned(shared_prefix_tokens=100, num_prefix_groups=4))
    assert (tested.lengths, tested.prompt_spread) == ("constant", 0.0)
    assert dict(bench_flags(tested, "m"))["--prefix-repetition-num-prefixes"] == ("4",)


def test_the_command_is_one_line_that_a_shell_reads():
    words = shlex.split(measurement(planned()))
    assert "\n" not in measurement(planned())
    assert json.loads(words[words.index("--random-range-ratio") + 1]).keys() == {"input", "output"}
