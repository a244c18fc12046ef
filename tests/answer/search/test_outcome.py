import dataclasses
import math

from planner import plan
from planner.answer.search.outcome import EVIDENCE, MEETS, Candidate, candidate_of
from planner.scenario import fingerprint
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=300)


def test_a_row_has_the_figures_of_its_plan():
    done = plan(SMALL)
    row = candidate_of(done, evidence=EVIDENCE[0], checkpoint="somebody/something")
    assert row.status == MEETS
    assert (row.num_gpus, row.usd_per_month, row.capacity_rps) == (
        done.num_gpus,
        done.cost.usd_per_month,
        done.curve.capacity_rps,
    )
    assert row.ttft_s == done.metrics.ttft_s.p95
    assert row.binding in {link.reason for link in done.chain}
    assert row.key == (round(done.cost.usd_per_month, 6), done.num_gpus)


def test_what_does_not_start_has_no_figures_and_ranks_last():
    row = candidate_of(plan(SMALL.replace(model="meta-llama/Llama-3.1-70B-Instruct")))
    assert row.status == "does not start"
    assert row.reason
    assert row.num_gpus is None
    assert math.isinf(row.key[0])


def test_owned_gpus_rank_by_their_number():
    few, many = (Candidate(scenario=SMALL, status=MEETS, num_gpus=n, usd_per_month=0.0) for n in (1, 4))
    assert few.key < many.key


def test_a_row_says_that_an_api_is_cheaper_for_few_requests():
    # 2 users × 30 requests an hour, 24 hours a day: 1,440 requests a day for one H100.
    few = candidate_of(plan(SMALL.replace(users=2)))
    assert few.api_note.startswith("Self-hosting for a few thousand requests a day: 1,440 requests a day cost")
    assert candidate_of(plan(SMALL.replace(users=2, usd_per_gpu_hour=0.0))).api_note == ""


def test_a_row_of_the_measured_deployment_rests_on_the_users_runs():
    base = Scenario()
    own = base.replace(calibration_runs=3, calibration_of=fingerprint(base))
    row = Candidate(scenario=own, status="meets targets", evidence="kernels measured")
    assert row.rests_on == "calibrated to your 3 measurements"
    assert dataclasses.replace(row, scenario=own.replace(gpu="L40S")).rests_on == "kernels measured"
