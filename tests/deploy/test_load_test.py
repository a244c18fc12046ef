"""The load test says what its own traffic should show."""

import itertools
import json
import shlex

import pytest

from planner.answer.load_test import measurement
from planner.answer.planning import plan
from planner.deploy.engines import launch
from planner.deploy.load_test import guidellm, load_test, vllm_bench

from .cases import planned

CONSTANT = {
    "lengths": "constant",
    "prompt_mean_tokens": 500.0,
    "output_mean_tokens": 100.0,
    "prompt_spread": 0.0,
    "output_spread": 0.0,
    "demand": "rate",
    "rate_rps": 10.0,
    "num_replicas": 2,
}


def words(text):
    lines = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    return shlex.split(lines[0])


def pairs(text):
    found = words(text)
    return {flag: value for flag, value in itertools.pairwise(found) if flag.startswith("--")}


def test_one_replica_gets_its_share_of_the_load():
    test = load_test(planned(**CONSTANT))
    flags = pairs(vllm_bench(test, launch(planned(**CONSTANT))))
    assert flags["--request-rate"] == "5"
    assert (flags["--random-input-len"], flags["--random-output-len"]) == ("500", "100")
    assert flags["--num-prompts"] == "900"  # three minutes at 5 req/s
    assert flags["--goodput"] == "ttft:1000"
    assert not test.notes


def test_the_expected_figures_are_those_of_the_plan_of_the_same_test():
    test = load_test(planned(**CONSTANT))
    again = plan(test.scenario, most_requests=test.scenario.num_requests).metrics
    assert test.expected.ttft_s.p95 == pytest.approx(again.ttft_s.p95, rel=0.02)
    assert test.expected.output_tokens_per_s == pytest.approx(again.output_tokens_per_s, rel=0.02)


def test_a_closed_loop_is_a_concurrency():
    done = planned(arrivals="closed", concurrent_users=32, num_replicas=2)
    test = load_test(done)
    flags = pairs(vllm_bench(test, launch(done)))
    assert flags["--max-concurrency"] == "16"
    assert "--request-rate" not in flags
    assert json.loads(pairs(guidellm(test, launch(done)))["--profile"]) == {"kind": "concurrent", "streams": 16}


def test_bursts_are_a_gamma_shape():
    # A gamma distribution of shape k has a coefficient of variation of 1 ÷ √k.
    done = planned(arrivals="bursty", burst_cv=2.0)
    assert pairs(vllm_bench(load_test(done), launch(done)))["--burstiness"] == "0.25"


def test_shared_prompts_are_part_of_the_prompt():
    done = planned(**CONSTANT, shared_prefix_tokens=200)
    flags = pairs(vllm_bench(load_test(done), launch(done)))
    assert (flags["--random-prefix-len"], flags["--random-input-len"]) == ("200", "300")
    several = planned(**CONSTANT, shared_prefix_tokens=200, num_prefix_groups=4)
    flags = pairs(vllm_bench(load_test(several), launch(several)))
    assert flags["--dataset-name"] == "prefix_repetition"
    assert (flags["--prefix-repetition-num-prefixes"], flags["--prefix-repetition-suffix-len"]) == ("4", "300")
    data = json.loads(pairs(guidellm(load_test(several), launch(several)))["--data"])
    assert data["prefix_buckets"] == [{"prefix_count": 4, "prefix_tokens": 200}]


def test_a_mix_of_lengths_is_named():
    assert any("drawn evenly" in text for text in load_test(planned()).notes)
    several = load_test(planned(shared_prefix_tokens=100, num_prefix_groups=4))
    assert any("mean lengths" in text for text in several.notes)


def test_guidellm_draws_the_same_lengths():
    done = planned(lengths="uniform", prompt_mean_tokens=500.0, output_mean_tokens=100.0, prompt_spread=0.2)
    data = json.loads(pairs(guidellm(load_test(done), launch(done)))["--data"])
    mean = data["prompt_tokens"]
    assert (data["prompt_tokens_min"], data["prompt_tokens_max"]) == (round(0.8 * mean), round(1.2 * mean))


def test_the_verdict_names_the_same_test():
    # One line instead of several, without the server's address, and the model's own name.
    done = planned(**CONSTANT)
    flags = words(vllm_bench(load_test(done), launch(done)))
    at = flags.index("--base-url")
    assert shlex.split(measurement(done)) == flags[:at] + flags[at + 2 :]


def test_every_target_that_the_client_counts_is_said():
    done = planned(**CONSTANT, ttft_target_s=None, e2e_target_s=4.0, itl_target_s=0.5)
    test = load_test(done)
    assert "--goodput tpot:50 e2el:4000" in vllm_bench(test, launch(done))
    assert any("ITL" in text for text in test.notes)
