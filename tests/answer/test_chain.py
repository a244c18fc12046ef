"""The chain of reasons agrees with the verdict and with Little's law."""

import math

import pytest

from planner import plan
from planner.answer.chain import chain
from planner.answer.outcome import offered_rps, serving_replicas
from planner.answer.report import plan_text
from planner.charts.cost import gpu_chain
from tests.answer.cases import SMALL, planned


def test_a_closed_loop_is_explained_by_the_rate_that_it_reaches():
    done = plan(SMALL.replace(arrivals="closed", concurrent_users=40))
    assert offered_rps(done) == done.metrics.requests_per_s
    assert not any("than the peak" in reason for reason in done.reasons)
    # Little's law: 40 users that never think are 40 requests in the system.
    kv = next(link for link in done.chain if link.reason == "KV cache")
    assert float(kv.detail.split(" ")[0]) == pytest.approx(40, rel=0.1)


def link(done, reason):
    return next(item for item in done.chain if item.reason == reason)


def test_the_cache_is_held_by_who_runs_not_by_who_waits():
    # Ollama runs one request at a time here: a replica is busy for the mean time of service, 1 ÷ its throughput.
    done = plan(SMALL.replace(engine="ollama", demand="rate", rate_rps=10.0, ttft_target_s=10.0))
    assert done.slo_met
    by_hand = 10.0 / done.curve.capacity_rps
    assert link(done, "KV cache").gpus == pytest.approx(by_hand, abs=2)
    assert link(done, "KV cache").gpus <= done.num_gpus == link(done, "Latency target").gpus
    assert done.reasons[0].startswith("Latency target sets")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_replicas": 5},
        {"arrivals": "closed", "concurrent_users": 500},
        {"arrivals": "closed", "concurrent_users": 64, "num_replicas": 4},
        {"arrivals": "once"},
        {"arrivals": "once", "num_replicas": 3},
        {"users": 3000, "num_replicas": 1},
        {"users": 3000, "spare_replicas": 1},
        {"demand": "rate", "rate_rps": 30.0, "arrivals": "bursty", "burst_cv": 8.0},
        {"demand": "rate", "rate_rps": 30.0, "arrivals": "bursty", "burst_cv": 8.0, "num_replicas": 1},
        {"engine": "ollama", "users": 20, "arrivals": "bursty", "num_replicas": 20},
        {"engine": "ollama", "users": 20, "arrivals": "bursty", "num_replicas": 1},
        {"ttft_target_s": 0.01},
        {"arrivals": "closed", "ttft_target_s": 0.01},
        {"timeout_s": 1.0},
    ],
)
def test_the_chain_agrees_with_the_verdict(changes):
    done = plan(SMALL.replace(**changes))
    needed, have = max(item.gpus for item in done.chain), done.num_gpus
    per_replica = done.scenario.parallelism.gpus_per_replica
    assert done.slo_met == (link(done, "Latency target").gpus <= serving_replicas(done) * per_replica)
    if done.slo_met:
        assert needed <= have
    title = gpu_chain(done.chain, have).title
    if needed > have:
        assert "set by" not in title
        assert "enough" not in title
        assert "sets the number" not in done.reasons[0]
    assert done.slo_met == (done.replicas_for_slo is not None and done.replicas_for_slo <= serving_replicas(done))
    told = any("Even an" in reason or "No prompt" in reason for reason in done.reasons)
    assert told == (done.replicas_for_slo is None)


def test_throughput_is_rate_over_what_one_replica_finishes():
    done = planned(demand="rate", rate_rps=60.0)
    by_reason = {item.reason: item for item in chain(done)}
    assert by_reason["Throughput"].gpus == math.ceil(60.0 / (0.97 * done.curve.capacity_rps))
    assert by_reason["Weights alone"].gpus == 1


def test_reasons_count_gpus_not_replicas():
    done = planned(demand="rate", rate_rps=60.0, tensor_parallel_size=2)
    by_reason = {item.reason: item.gpus for item in chain(done)}
    assert by_reason["Weights alone"] == 2
    assert by_reason["Throughput"] == 2 * math.ceil(60.0 / (0.97 * done.curve.capacity_rps))
    assert by_reason["Latency target"] == 2 * done.replicas_for_slo


# 500 req/s on one replica: what was simulated does not hold, so that the means are not cut to what there is.
def test_what_an_overloaded_fleet_lacks_is_not_cut_to_what_it_has():
    done = planned(demand="rate", rate_rps=500.0, num_replicas=1)
    by_reason = {item.reason: item.gpus for item in chain(done)}
    assert by_reason["Throughput"] == math.ceil(500.0 / (0.97 * done.curve.capacity_rps)) > 1
    assert max(by_reason.values()) == done.replicas_for_slo


NO_TARGETS = {"ttft_target_s": None, "tpot_target_s": None, "demand": "rate"}


@pytest.mark.parametrize("deployment", ["aggregated", "disaggregated"])
def test_without_targets_a_replica_is_loaded_to_97_percent_and_the_throughput_says_so(deployment):
    # 98.5 % of what the fleet finishes at most: one more replica, for every reason and figure on the page.
    asked = SMALL.replace(deployment=deployment, **NO_TARGETS)
    first = plan(asked.replace(rate_rps=1.0))
    top = first.curve.capacity_rps * serving_replicas(first)
    done = plan(asked.replace(rate_rps=0.985 * top))
    assert done.num_gpus == first.num_gpus + 1
    assert max(item.gpus for item in done.chain) == link(done, "Throughput").gpus == done.num_gpus
    assert done.reasons[0].startswith("Throughput sets the number of GPUs")
    assert done.headline.endswith("no latency target is set, so throughput alone sizes it.")
    assert "the targets" not in " ".join(done.reasons) + plan_text(done).split("Link:")[0]


def test_a_number_of_gpus_that_hangs_on_the_sampling_of_the_capacity_says_how_many_are_sure():
    asked = SMALL.replace(**NO_TARGETS)
    curve = plan(asked.replace(rate_rps=1.0)).curve
    assert 0.005 < curve.capacity_half_width_rps / curve.capacity_rps < 0.05
    top, low = 0.97 * curve.capacity_rps, 0.97 * (curve.capacity_rps - curve.capacity_half_width_rps)
    straddles, clear = (plan(asked.replace(rate_rps=2 * rate)) for rate in ((top + 2 * low) / 3, 0.98 * low))
    assert straddles.num_gpus == clear.num_gpus == 2
    assert any(reason.endswith(": 3 replicas to be sure.") for reason in straddles.reasons)
    assert not any("to be sure" in reason for reason in clear.reasons)
    assert f"finishes {curve.capacity_in_words()} and" in link(straddles, "Throughput").detail


def test_clients_who_leave_size_a_fleet_without_targets_and_every_line_says_so():
    # A timeout is no latency target, but of clients who leave no more may be lost than the share asked for allows.
    done = plan(SMALL.replace(timeout_s=4.0, rate_rps=40.0, target_quantile=0.9, **NO_TARGETS))
    answered = link(done, "Share answered")
    assert answered.gpus == done.num_gpus > link(done, "Throughput").gpus
    assert done.reasons[0].startswith("Share answered sets the number of GPUs")
    assert "throughput alone" not in done.headline
    # The fleet loses almost as many as may be lost: slower by a few per cent it would lose too many.
    assert done.metrics.lost_fraction > 0.05
    assert done.slo_probability < 0.9
    assert "of clients leave, 10 % may miss" in done.verdict.text
    short = plan(done.scenario.replace(num_replicas=done.num_replicas - 1))
    assert short.verdict.text.startswith("answers too few")


def test_the_reserve_counts_all_replicas():
    done = planned(spare_replicas=2)
    last = chain(done)[-1]
    assert last.gpus == done.num_gpus == done.num_replicas
    assert len(chain(done)) == len(chain(planned())) + 1


def test_a_reserve_says_what_it_is_for():
    def reserve(**changes):
        return link(planned(spare_replicas=1, **changes), "Failure reserve").detail

    assert reserve() == "1 spare replica, so the targets hold when one fails"
    assert reserve(**NO_TARGETS, rate_rps=5.0) == "1 spare replica, so the others keep up when one fails"
    assert reserve(tpot_target_s=0.0005) == "1 spare replica"  # no target holds, whatever fails


def test_targets_that_no_number_holds_have_no_end():
    assert math.isinf(chain(planned(tpot_target_s=0.0005))[-1].gpus)


def test_an_engine_that_does_not_start_has_no_chain():
    assert chain(planned(model="meta-llama/Llama-3.3-70B-Instruct")) == ()
