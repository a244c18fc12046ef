"""The verdict: margins and chances by hand, and the sentence."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import pytest

from planner.answer import plan
from planner.answer.confidence import Band
from planner.answer.outcome import serving_replicas
from planner.answer.verdict import SHARES, _worth, chance, evidence, probability, sure_in_words, verdict
from planner.scenario import Scenario, fingerprint
from tests.answer.cases import planned

#: half of all errors below 10 %: one standard deviation of the logarithm is ln 1.1 ÷ 0.6745
TEN = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=100, basis="dense", evidence="measured")
UNKNOWN = Band(quantity="x", median_fraction=math.nan, p90_fraction=math.nan, rows=0, basis="not measured")
KNOWN = {"ttft": TEN, "tpot": TEN, "throughput": TEN}


def with_latencies(done, ttft_s, tpot_s, met, attainment):
    """The same plan with the same latencies for every request, and an error of 10 % on every figure."""
    count = len(done.metrics.ttft_s.quantiles)
    metrics = dataclasses.replace(
        done.metrics,
        ttft_s=dataclasses.replace(done.metrics.ttft_s, quantiles=(ttft_s,) * count),
        tpot_s=dataclasses.replace(done.metrics.tpot_s, quantiles=(tpot_s,) * count),
        slo_attainment=attainment,
    )
    return dataclasses.replace(done, metrics=metrics, slo_met=met, bands=KNOWN)


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "attainment", "state", "said"),
    [
        # margins by hand: 1 − 0.6 ÷ 1 = 40 %, 1 − 0.03 ÷ 0.05 = 40 %; 1 − 0.049 ÷ 0.05 = 2 %
        (
            *(0.6, 0.03, 1.0, "sure"),
            "meets TTFT p95 600 ms (target 1 s) and TPOT p95 30 ms (target 50 ms) with 40 % to spare; over 99 % sure, "
            "kernels measured on H100 SXM",
        ),
        # ln(50 ÷ 49) ÷ (ln 1.1 ÷ 0.6745) = 0.143 standard deviations: 56 %
        (0.6, 0.049, 1.0, "unsure", "with 2.0 % to spare; 56 % sure"),
        # ln(50 ÷ 46) ÷ 0.1413 = 0.590: 72 %
        (0.6, 0.046, 1.0, "likely", "with 8.0 % to spare; 72 % sure"),
        (2.0, 0.04, 0.9, "miss", "misses TTFT p95 2 s, target 1 s, 2 times the target (90 % of requests meet both)"),
        (0.6, 0.06, 0.0, "miss", "misses TPOT p95 60 ms, target 50 ms, 20 % over (no request meets both)"),
        (0.6, 0.04, 0.8, "miss", "misses the targets: 80 % of requests meet both, 95 % are asked for"),
    ],
)
def test_target_figure_margin_and_how_sure(ttft_s, tpot_s, attainment, state, said):
    found = verdict(with_latencies(planned(), ttft_s, tpot_s, state != "miss", attainment))
    assert found.state == state
    assert said in found.text


def test_nothing_measured_is_never_sure():
    done = dataclasses.replace(planned(), bands=dict.fromkeys(KNOWN, UNKNOWN))
    found = verdict(done)
    assert (found.state, found.sure) == ("unsure", ())
    assert math.isnan(found.probability)
    assert "no published measurement tells how sure" in found.text


@pytest.mark.parametrize("changes", [{"users": 2400}, {"arrivals": "closed", "concurrent_users": 600}])
def test_the_chance_at_the_plans_own_number_is_the_plans(changes):
    done = dataclasses.replace(planned(**changes), bands=KNOWN)
    assert chance(done, serving_replicas(done)) == pytest.approx(probability(done), abs=1e-6)


@pytest.mark.parametrize("changes", [{"users": 3000}, {"arrivals": "closed", "concurrent_users": 600}])
def test_more_replicas_are_never_less_sure(changes):
    done = dataclasses.replace(planned(**changes), bands=KNOWN)
    found = verdict(done)
    likelihood = [chance(done, replicas) for replicas in range(1, 20)]
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(likelihood))
    assert found.next_probability >= found.probability
    numbers = [item.num_gpus for item in found.sure]
    assert [item.share for item in found.sure] == list(SHARES)
    assert numbers == sorted(numbers)
    for item in found.sure:
        assert likelihood[item.num_gpus - 1] >= item.share
        assert item.num_gpus == 1 or likelihood[item.num_gpus - 2] < item.share


def test_one_more_replica_is_named_where_there_is_doubt():
    done = with_latencies(planned(), 0.6, 0.049, True, 1.0)
    found = verdict(done)
    assert found.next_gpus == done.num_gpus + 1
    assert 0.95 < found.next_probability < 0.995
    assert found.text.endswith(f"one more GPU: {found.next_probability:.0%}".replace("%", " %"))


def test_a_plan_that_misses_says_where_it_would_hold():
    done = planned(users=3000, num_replicas=1)
    found = verdict(done)
    assert found.state == "miss"
    assert "cannot keep up: 50 req/s arrive" in found.text
    assert f"these GPUs hold the targets up to {found.holds_to}" in found.text
    assert f"{done.replicas_for_slo} GPUs hold this traffic" in found.text
    never = planned(tpot_target_s=0.0005).verdict
    assert "no number of replicas of this kind holds them" in never.text
    assert all(item.num_gpus is None for item in never.sure)


def test_given_numbers_of_prefill_and_decode_replicas_say_nothing_of_others():
    # Two prefill and three decode replicas serve this traffic: see the search for their numbers.
    apart = {"model": "Qwen/Qwen3-32B", "deployment": "disaggregated"}
    given = planned(**apart, prefill_replicas=1, decode_replicas=1)
    assert planned(**apart).verdict.state != "miss"
    assert given.verdict.state == "miss"
    assert "no number of replicas" not in " ".join((given.verdict.text, *given.reasons))
    assert "leave their numbers empty" in " ".join(given.reasons)


def test_without_targets_clients_who_wait_have_nothing_to_miss():
    found = planned(ttft_target_s=None, tpot_target_s=None, arrivals="closed").verdict
    assert (found.state, found.targets) == ("sure", ())
    assert "serves every request; no latency target is set" in found.text
    paced = planned(ttft_target_s=None, tpot_target_s=None).verdict
    assert paced.text.startswith("keeps up with 500 users (8.33 req/s)")


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("H100 SXM", "kernels measured on H100 SXM"),
        ("H100 PCIe", "kernels measured on the architecture of H100 PCIe, not on it"),
        ("Gaudi 3", "no kernels measured on the architecture of Gaudi 3"),
    ],
)
def test_the_evidence_is_that_of_the_gpu(gpu, said):
    assert planned(gpu=gpu).verdict.evidence.startswith(said)


def test_a_safety_margin_asks_for_more_and_is_surer():
    plain, careful = planned(users=1150), planned(users=1150, safety_margin=0.5)
    assert careful.num_gpus > plain.num_gpus
    assert careful.slo_probability > plain.slo_probability
    assert [row.limit_s for row in careful.verdict.targets] == [1.0, 0.05]  # told against the targets themselves


def test_the_evidence_of_a_calibrated_plan_is_the_users_own():
    base = Scenario(num_requests=200)
    own = base.replace(calibration_runs=3, calibration_weights=1.3, calibration_of=fingerprint(base))
    assert evidence(SimpleNamespace(scenario=own, bands={})) == "calibrated to your 3 measurements"


def test_a_calibration_for_another_load_says_so_and_narrows_nothing():
    base = Scenario(num_requests=200)
    own = base.replace(
        calibration_runs=3,
        calibration_tpot_error=0.02,
        calibration_of=fingerprint(base),
        calibration_load=base.load.text,
    )
    here, busier = plan(own), plan(own.replace(users=base.users + 300))
    assert here.verdict.evidence == "calibrated to your 3 measurements" and here.bands["tpot"].is_narrowed
    assert busier.verdict.evidence == (
        "calibrated to your 3 measurements, for 8.33 req/s with prompts of 1,160 tokens and answers of 212"
    )
    assert busier.bands["tpot"] == plan(base).bands["tpot"]


def test_runs_under_loads_far_from_the_plans_are_not_its_evidence():
    base = Scenario(num_requests=200)
    far = base.replace(calibration_runs=3, calibration_tpot_error=4.0, calibration_of=fingerprint(base))
    assert plan(far).verdict.evidence == "calibrated to your 3 measurements, whose loads are far from this one"


def test_a_load_curve_does_not_say_how_many_waiting_users_hold():
    found = planned(arrivals="closed", concurrent_users=400, num_replicas=1, question="will").verdict
    assert found.state == "miss"
    assert found.holds_to == ""
    assert "hold the targets up to" not in found.text


def test_prefill_and_decode_bear_more_only_when_both_grow():
    # Three prefill and two decode replicas: four and two bear no more than three and two, four and three a third more.
    done = planned(deployment="disaggregated", demand="rate", rate_rps=80.0)
    assert (done.pools.num_prefill, done.pools.num_decode) == (3, 2)
    assert [_worth(done, count) for count in (5, 6, 7)] == pytest.approx([5.0, 5.0, 5 * 4 / 3])
    assert done.verdict.next_gpus == 7
    assert all(item.num_gpus in (None, 2, 3, 4, 5) or item.num_gpus >= 7 for item in done.verdict.sure)


@pytest.mark.parametrize(("chance", "words"), [(0.496, "49.6 % sure"), (0.504, "50 % sure"), (0.8999, "89.99 % sure")])
def test_a_chance_below_a_share_is_not_rounded_to_it(chance, words):
    assert sure_in_words(chance) == words


def test_requests_that_are_rejected_are_named_as_what_misses():
    # A context of 600 tokens turns away every prompt of 1,000 that is not far shorter than the mean.
    done = planned(lengths="lognormal", prompt_mean_tokens=1000.0, output_mean_tokens=50.0, max_model_len=600)
    assert done.verdict.text.startswith("answers too few: ")
    assert "of requests are rejected, 5.0 % may miss" in done.verdict.text


def test_gpus_that_hold_no_load_are_judged_without_load_not_at_the_traffic_that_nobody_asked_about():
    done = planned(question="take", num_replicas=1, tpot_target_s=0.0005, users=1_000_000)
    assert done.taken.load == 0
    assert done.verdict.text.startswith("misses the targets at any load: without load TPOT ")
    assert "req/s arrive" not in done.verdict.text


def test_a_target_on_the_gaps_is_named_as_in_the_headline():
    # A gap is at least one step of a model that reads 16 GB of weights at 3.35 TB/s: no GPU of it makes 1 ms.
    done = planned(itl_target_s=0.001, ttft_target_s=None, tpot_target_s=None)
    assert done.verdict.text.startswith("misses longest gap p95 ")
    assert "ITL" not in done.headline
