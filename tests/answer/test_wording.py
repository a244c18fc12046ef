"""The sentences and figures of a plan agree with each other, and name the right culprit."""

import math

import pytest

from planner import Scenario, plan
from planner.answer.outcome import serving_replicas
from planner.answer.planning import size
from planner.answer.report import memory_rows
from planner.charts.cost import gpu_chain
from planner.dashboard.results import use_of_fleet
from planner.service.metrics import ServingMetrics
from planner.units import GIB

SMALL = Scenario(num_requests=400)
RATE = SMALL.replace(demand="rate")
NOTHING_FITS = SMALL.replace(lengths="constant", prompt_mean_tokens=9000.0)


def link(done, reason):
    return next(item for item in done.chain if item.reason == reason)


def own_price(done) -> float:
    """USD per million tokens of a fleet that always makes the tokens per second of its own metrics."""
    metrics: ServingMetrics = done.metrics
    return done.cost.usd_per_hour / 3600 / metrics.total_tokens_per_s * 1e6


def test_an_overloaded_fleet_is_priced_by_what_it_finishes():
    done = plan(RATE.replace(rate_rps=2000.0, num_replicas=4))
    assert done.cost.usd_per_million_tokens == pytest.approx(own_price(done), rel=1e-9)
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=1e-9)
    # 730 hours at the rate that is finished, of those asked for: 2,000 req/s at the peak, half of it on average.
    assert done.cost.requests_per_month == pytest.approx(done.metrics.requests_per_s * 730 * 3600)
    assert done.cost.offered_requests_per_month == pytest.approx(1000 * 730 * 3600)
    assert "unserved" in {finding.kind for finding in done.findings}
    used = use_of_fleet(done)
    assert used.capacity_tokens_per_s * used.mean_fraction == pytest.approx(done.metrics.total_tokens_per_s)


def test_replicas_kept_for_failures_are_not_counted_as_throughput():
    done, spared = plan(SMALL), plan(SMALL.replace(spare_replicas=2))
    assert spared.num_replicas == done.num_replicas + 2
    assert use_of_fleet(spared).capacity_tokens_per_s == pytest.approx(use_of_fleet(done).capacity_tokens_per_s)
    assert use_of_fleet(spared).mean_fraction == pytest.approx(use_of_fleet(done).mean_fraction)


def test_a_peak_beyond_the_fleet_leaves_the_month_alone_when_the_mean_is_not():
    # Full throughput lies between the mean and the peak: the month is served, the peak is not.
    top = plan(RATE.replace(rate_rps=5.0)).curve.capacity_rps
    done = plan(RATE.replace(rate_rps=2.0 * top, peak_factor=8.0, num_replicas=1))
    assert done.cost.requests_per_month == pytest.approx(2.0 * top / 8 * 730 * 3600, rel=0.01)
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=1e-9)


def test_a_stable_plan_is_priced_by_the_rate_that_is_asked_for():
    done = plan(SMALL)
    tokens = SMALL.mean_rate_rps * 730 * 3600 * (done.mean_prompt_tokens + done.mean_output_tokens)
    assert done.cost.usd_per_million_tokens == pytest.approx(done.cost.usd_per_month / tokens * 1e6, rel=0.01)
    assert "unserved" not in {finding.kind for finding in done.findings}


def test_clients_that_leave_are_not_paid_for():
    done = plan(SMALL.replace(timeout_s=1.0, num_requests=4000))
    share = done.metrics.num_finished / done.metrics.num_requests
    peak_rps = share * SMALL.peak_rate_rps
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=0.05)
    assert done.cost.requests_per_month <= peak_rps * 730 * 3600
    assert done.cost.tokens_per_request < done.mean_prompt_tokens + done.mean_output_tokens  # the short ones


@pytest.mark.parametrize("scenario", [NOTHING_FITS, NOTHING_FITS.replace(arrivals="closed")])
def test_when_nothing_is_served_there_is_no_price_and_the_prompts_are_to_blame(scenario):
    done = plan(scenario)
    assert math.isinf(done.cost.usd_per_million_tokens)
    assert done.cost.requests_per_month == 0
    assert "cannot serve" in done.headline
    assert "100 % of requests are rejected" in done.headline
    assert "8,192" in done.reasons[1]
    for text in (done.headline, *done.reasons, *(finding.text for finding in done.findings)):
        assert "—" not in text
        assert "nan" not in text


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


def test_a_closed_loop_tells_how_many_replicas_its_users_need():
    users = SMALL.replace(arrivals="closed", concurrent_users=500)
    needed = plan(users).replicas_for_slo
    assert needed > 1
    assert plan(users.replace(num_replicas=needed)).slo_met
    assert not plan(users.replace(num_replicas=needed - 1)).slo_met


def test_a_client_timeout_is_named_when_both_targets_hold():
    done = plan(SMALL.replace(timeout_s=1.0))
    said = " ".join(done.reasons)
    assert done.slo_probability == 0  # however sure the latencies are
    assert "a timeout of 1 s" in said
    assert "% of clients leave" in done.headline
    assert "to the first token" not in said


def test_a_slow_model_is_named_when_a_target_fails():
    said = " ".join(plan(SMALL.replace(tpot_target_s=0.001)).reasons)
    assert "Even an idle replica misses the TPOT target (" in said
    assert "target 1 ms)" in said
    assert "TTFT" not in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"users": 1}, "serves 1 user ("),
        ({"arrivals": "closed", "concurrent_users": 1}, "serves 1 concurrent user of"),
        ({"arrivals": "closed", "concurrent_users": 2}, "serves 2 concurrent users of"),
    ],
)
def test_one_is_not_many(changes, said):
    assert said in plan(SMALL.replace(**changes)).headline


def test_a_few_requests_are_not_a_few_thousand():
    def told(per_day):
        done = plan(SMALL.replace(demand="daily", requests_per_day=per_day))
        return next(finding.text for finding in done.findings if finding.kind == "few_requests")

    assert told(12.0).startswith("Self-hosting for a few requests a day: 12 requests a day cost")
    assert told(2000.0).startswith("Self-hosting for a few thousand requests a day: 2,000 requests a day cost")


def test_idle_replicas_are_told():
    found = plan(SMALL.replace(arrivals="closed", concurrent_users=1, num_replicas=3)).findings
    text = next(finding.text for finding in found if finding.kind == "idle_replicas")
    assert text == "2 of 3 replicas stay idle: there is only 1 user."


def test_an_engine_that_is_short_of_memory_under_load_is_told():
    done = size(SMALL.replace(engine="tgi", model="meta-llama/Llama-3.1-70B-Instruct", gpu="H200 SXM"))
    assert done.fits
    text = next(finding.text for finding in done.findings if finding.kind == "runs_short")
    assert f"{-done.memory.free_bytes / GIB:.2f} GiB more than the GPU has" in text
    assert dict(memory_rows(done))["Short of a full step"] == f"{-done.memory.free_bytes / GIB:.2f} GiB"
    assert "runs_short" not in {finding.kind for finding in size(SMALL).findings}
