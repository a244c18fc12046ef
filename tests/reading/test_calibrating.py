"""A plan calibrated to runs of its deployment: against figures that a machine with known factors would show."""

import json
import math

import numpy as np
import pytest

from planner import Scenario
from planner.accuracy.serving import serving_columns
from planner.errors import InvalidInput
from planner.reading import read
from planner.reading.calibrating import FIGURES, calibrate, calibrate_runs, further_error, prior_sd, uncalibrated
from planner.scenario import SCALES, fingerprint

PLAN = Scenario(num_requests=200)
#: what the machine does: steps take 25 % longer, prompts 30 % less, requests cost as predicted
TRUTH = {"calibration_weights": 1.25, "calibration_sequences": 1.25, "calibration_prefill": 0.7}
LOADS = (1, 8, 48)


def load(users, plan=PLAN):
    return plan.replace(
        arrivals="closed",
        concurrent_users=users,
        num_requests=max(20, 4 * users),
        question="will",
        num_replicas=1,
        measured_requests="all",
        exact_output_limit=True,
        lengths="constant",
        prompt_mean_tokens=1024.0,
        output_mean_tokens=128.0,
    )


def shown(scenario):
    machine = scenario.replace(calibration_runs=1, calibration_of=fingerprint(scenario), **TRUTH)
    figures = serving_columns(machine)
    return {columns[0]: figures[columns[0]] for columns in FIGURES.values()}


@pytest.fixture(scope="module")
def made():
    return calibrate_runs([(load(users), shown(load(users))) for users in LOADS], PLAN)


def test_it_finds_the_factors_that_the_runs_show(made):
    factors = {item.name: item for item in made.factors}
    assert factors["weights"].low < 1.25 < factors["weights"].high
    assert factors["weights"].value == pytest.approx(1.25, rel=0.06)
    assert factors["prefill"].low < 0.7 < factors["prefill"].high
    assert factors["weights"].is_seen and not factors["host"].is_seen
    assert made.runs == 3


def test_errors_before_after_and_left_out(made):
    assert made.error("before", "tpot") == pytest.approx(1 - 1 / 1.25, abs=0.03)
    assert made.error("after", "tpot") < 0.02
    assert made.error("left_out", "tpot") < 0.5 * made.error("before", "tpot")


def test_a_run_left_out_is_near_to_what_a_fit_without_it_predicts(made):
    runs = [(load(users), shown(load(users))) for users in LOADS]
    rest = calibrate_runs(runs[:2], PLAN).scenario
    fields = {name: getattr(rest, name) for name in (*SCALES.values(), "calibration_runs", "calibration_of")}
    exact = serving_columns(load(LOADS[2]).replace(**fields))["tpot_ms_mean"]
    told = next(row.left_out for row in made.figures if row.run == 3 and row.figure == "tpot")
    assert told == pytest.approx(exact, rel=0.04)  # the other runs' figures are taken as linear in the factors


def test_the_plan_keeps_its_traffic_and_says_what_it_rests_on(made):
    assert uncalibrated(made.scenario) == PLAN
    assert made.scenario.is_calibrated
    assert 0 < made.scenario.calibration_tpot_error < 0.1  # three runs that agree leave the usual error


def test_two_runs_narrow_no_band():
    made = calibrate_runs([(load(users), shown(load(users))) for users in LOADS[:2]], PLAN)
    assert made.scenario.calibrated_errors == {}
    assert made.scenario.is_calibrated


# 95th percentile of Student's distribution with 2, 4 and 5 degrees of freedom: 2.920, 2.132, 2.015 (Abramowitz and
# Stegun, table 26.10)
@pytest.mark.parametrize(
    ("off", "ninety"), [([], 2.920 * 0.1), ([0.3, -0.3], 2.132 * math.sqrt(0.05)), ([0.0] * 3, 2.015 * 0.1 * 0.4**0.5)]
)
def test_the_band_of_a_figure_rests_on_what_its_own_runs_were_off(off, ninety):
    assert 1.645 * further_error(0.1, np.array(off), np.array([])) == pytest.approx(ninety, rel=0.015)


def test_a_large_correction_stays_in_doubt():
    none, much = (further_error(0.1, np.zeros(3), np.full(3, before)) for before in (0.0, 0.5))
    assert much / none == pytest.approx(math.sqrt(1 + (0.3 * 0.5) ** 2 / (0.4 * 0.1**2)))


def test_runs_of_another_deployment_are_refused():
    with pytest.raises(InvalidInput) as caught:
        calibrate_runs([(load(1), {"tpot_ms_mean": 9.0})], PLAN.replace(gpu="L40S"))
    assert "GPU" in caught.value.valid


def test_the_prior_is_our_error_on_published_runs():
    measured, unmeasured = prior_sd(PLAN), prior_sd(PLAN.replace(gpu="MI300X"))
    assert all(unmeasured[:3] > measured[:3])  # no kernels measured: the machine may do anything
    assert measured[3:].tolist() == [0.4, 0.4]


def test_a_benchmarks_output_calibrates_the_plan_that_it_describes():
    figures = shown(load(8))
    saved = {
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "max_concurrency": 8,
        "completed": 32,
        "duration": 10.0,
        "total_input_tokens": 32 * 1024,
        "total_output_tokens": 32 * 128,
        "request_throughput": figures["output_tok_s_total"] / 128,
        "output_throughput": figures["output_tok_s_total"],
        "mean_ttft_ms": figures["ttft_ms_mean"],
        "mean_tpot_ms": figures["tpot_ms_mean"],
    }
    made = calibrate(read(json.dumps(saved), PLAN), PLAN)
    assert made.error("after", "tpot") < 0.4 * made.error("before", "tpot")
    assert uncalibrated(made.scenario) == PLAN
    assert math.isnan(made.error("before", "itl"))


def test_a_file_without_a_run_is_refused():
    with pytest.raises(InvalidInput) as caught:
        calibrate(read("vllm serve Qwen/Qwen3-8B --max-model-len 8192", PLAN), PLAN)
    assert "benchmark" in caught.value.valid
