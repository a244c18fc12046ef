"""Which load test tells most: against the closed form of a linear model."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner import Scenario, plan
from planner.errors import InvalidInput
from planner.reading.advising import advice_text, advise, slopes_of
from planner.reading.nearness import rest_sd
from planner.scenario import SCALES, fingerprint

PLAN = Scenario(num_requests=200, model="Qwen/Qwen3-8B")


def machine(scenario):
    """A service whose TPOT is the product of two powers of factors, the more users the more that of sequences."""
    factors = scenario.step_scales
    share = min(1.0, scenario.concurrent_users / 128) if scenario.arrivals == "closed" else 0.3
    tpot = factors.weights ** (1 - share) * factors.sequences**share
    return {"tpot_ms_mean": 10 * tpot, "ttft_ms_mean": 100 * factors.prefill, "output_tok_s_total": 1000 / tpot}


@pytest.fixture(scope="module")
def done():
    return plan(PLAN, with_policies=False)


def test_slopes_are_the_powers_of_the_factors():
    loop = PLAN.replace(arrivals="closed", concurrent_users=32)
    slopes = slopes_of(loop, np.zeros(len(SCALES)), machine)
    assert slopes["tpot"] == pytest.approx([0.75, 0.25, 0, 0, 0], abs=1e-9)
    assert slopes["ttft"] == pytest.approx([0, 0, 1, 0, 0], abs=1e-9)
    assert slopes["throughput"] == pytest.approx([-0.75, -0.25, 0, 0, 0], abs=1e-9)


def test_the_best_test_follows_the_deciding_figure_most_closely(done):
    deciding = SimpleNamespace(**{name: getattr(done, name) for name in ("scenario", "memory", "model", "chain")})
    for name in ("mean_prompt_tokens", "mean_output_tokens", "num_replicas", "pools"):
        setattr(deciding, name, getattr(done, name))
    deciding.verdict = SimpleNamespace(narrows="TPOT")
    found = advise(deciding, np.array([0.5, 0.5, 0.1, 0.1, 0.1]), machine)
    # TPOT of the plan's own load: 0.7 of one factor, 0.3 of the other, what no factor explains, 3 % of noise
    assert found.error == pytest.approx(math.hypot(0.7 * 0.5, 0.3 * 0.5, rest_sd()["tpot"], 0.03))
    assert found.tests[0].load == "the plan's own load"
    assert [test.error for test in found.tests] == sorted(test.error for test in found.tests)
    assert found.tests[-1].load in ("512 users at once", "128 users at once")  # sequences alone
    assert all(0.03 < test.error < found.error for test in found.tests)


def test_the_command_loads_one_replica_and_the_text_says_what_it_brings(done):
    found = advise(done, predict=machine)
    best = found.tests[0]
    assert best.command.startswith("vllm bench serve")
    assert "--model Qwen/Qwen3-8B" in best.command
    assert best.scenario.num_replicas == 1
    text = advice_text(found)
    assert text.startswith(f"Run next: {best.load}.") and best.command in text


def test_what_a_calibration_left_in_doubt_decides_the_next_test(done):
    known = np.array([0.01, 0.5, 0.01, 0.01, 0.01])
    found = advise(done, known, machine)
    unknown = advise(done, np.full(5, 0.5), machine)
    assert found.error < unknown.error
    assert fingerprint(found.tests[0].scenario) == fingerprint(done.scenario)


def test_a_calibrated_plan_is_in_no_more_doubt_than_its_calibration_says(done):
    made = PLAN.replace(
        calibration_runs=3,
        calibration_of=fingerprint(PLAN),
        calibration_tpot_error=0.1,
        calibration_ttft_error=0.4,
        calibration_throughput_error=0.15,
    )
    found = advise(plan(made, with_policies=False), predict=machine)
    stated = {"TTFT": 0.4, "TPOT": 0.1}[found.figure]
    assert found.error == pytest.approx(stated)
    assert found.tests[0].error < stated


def test_a_plan_that_does_not_start_has_no_test():
    stuck = plan(PLAN.replace(model="meta-llama/Llama-3.3-70B-Instruct", gpu="L4"), with_policies=False)
    with pytest.raises(InvalidInput):
        advise(stuck)
