"""Fleets at the peak: rates of identical replicas add up, Little's law, runs that are long enough."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from planner import Scenario, plan
from planner.answer.planning import replica_of, size
from planner.service import fleet
from planner.service.fleet import fewest_sharing, fleet_size, run_fleet
from planner.service.metrics import measure
from planner.service.sampling import MAX_SIMULATED_REPLICAS
from planner.simulation.router import simulate_fleet
from planner.workload.drawing import with_rate
from planner.workload.offered import draw
from tests.service.cases import requests_of, toy

EQUAL = {"lengths": "constant", "prompt_mean_tokens": 500.0, "output_mean_tokens": 100.0, "num_requests": 600}
CLOSED_EQUAL = Scenario(arrivals="closed", **EQUAL)
BURST = Scenario(arrivals="once", **EQUAL)
CLOSED = Scenario(arrivals="closed", prompt_mean_tokens=100, output_mean_tokens=200)
#: the toy replica answers its first token after one step and each further one after another
UNHURRIED = Scenario(
    demand="rate", rate_rps=0.1, ttft_target_s=50.0, tpot_target_s=2.0, lengths="constant", prompt_mean_tokens=10,
    output_mean_tokens=10, num_requests=500,
)  # fmt: skip


def rate(users: int, replicas: int = 1) -> float:
    scenario = CLOSED_EQUAL.replace(concurrent_users=users)
    return run_fleet(scenario, replica_of(size(scenario)), draw(scenario), replicas).metrics.requests_per_s


@pytest.mark.parametrize(("users", "replicas"), [(32, 4), (8, 2), (96, 32)])
def test_equal_replicas_finish_as_often_as_one_of_them(users, replicas):
    assert rate(users, replicas) == pytest.approx(replicas * rate(users // replicas), rel=1e-6)


def test_unequal_shares_add_up():
    # Three users on two replicas: one replica has two of them, the other one.
    assert rate(3, 2) == pytest.approx(rate(2) + rate(1), rel=1e-6)
    assert rate(5, 3) == pytest.approx(2 * rate(2) + rate(1), rel=1e-6)


def test_a_burst_on_more_replicas_than_requests():
    few = BURST.replace(num_requests=50)
    done, alone = plan(few.replace(num_replicas=100)).metrics, plan(few.replace(num_replicas=50)).metrics
    assert (done.num_requests, done.requests_per_s) == (50, alone.requests_per_s)
    assert done.busy_utilization == pytest.approx(alone.busy_utilization / 2)


def test_a_burst_on_very_many_replicas_keeps_its_size():
    done = plan(BURST.replace(num_requests=1200, num_replicas=600)).metrics
    some = plan(BURST.replace(num_requests=200, num_replicas=100)).metrics  # two requests on each as well
    assert done.num_requests == done.num_finished == 1200
    assert done.requests_per_s == pytest.approx(6 * some.requests_per_s, rel=1e-6)


@pytest.mark.parametrize("lengths", ["constant", "lognormal"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize(("users", "think_s", "replicas"), [(8, 0.0, 1), (128, 2.0, 1), (512, 0.0, 1), (512, 4.0, 3)])
def test_a_closed_loop_obeys_littles_law_and_its_ceilings(engine, lengths, users, think_s, replicas):
    # 512 users with short prompts on one H100: vLLM's API server is the slower station.
    scenario = CLOSED.replace(
        engine=engine,
        lengths=lengths,
        concurrent_users=users,
        think_time_s=think_s,
        num_replicas=replicas,
        num_requests=max(2000, 12 * users),
    )
    done = plan(scenario)
    rate, e2e = done.metrics.requests_per_s, done.metrics.e2e_s
    assert rate * (e2e.mean + think_s) == pytest.approx(users, rel=0.03)
    replica = replica_of(size(scenario))
    requests, table = draw(scenario), replica.step_time
    prompt, output = float(requests.prompt_tokens.mean()), float(requests.output_tokens.mean())
    work = table.server_per_request_s + table.server_per_prompt_token_s * prompt + table.server_per_token_s * output
    assert rate <= 1.03 * replicas / work
    assert rate <= 1.03 * replicas * done.curve.capacity_rps


def test_a_server_as_slow_as_the_users_are_many_is_named():
    done = plan(CLOSED.replace(lengths="constant", concurrent_users=512, num_requests=6000, num_replicas=1))
    # 4 ms a request, 3 µs for each of 100 tokens of its prompt and 60 µs for each of 200 of its answer: 16.3 ms.
    assert done.curve.capacity_rps == pytest.approx(1 / 0.0163)
    assert done.metrics.requests_per_s == pytest.approx(1 / 0.0163, rel=0.01)
    assert done.metrics.binding == "api server"


def test_a_stable_fleet_finishes_what_is_offered_however_many_stand_for_it():
    # 40 replicas are shown by 32 of them, whose rates are scaled up.
    scenario = Scenario(demand="rate", rate_rps=40.0, **EQUAL)
    replica, requests = replica_of(size(scenario)), draw(scenario)
    for replicas in (10, 20, 40):
        _, result, metrics = run_fleet(scenario, replica, requests, replicas)
        assert metrics.requests_per_s == pytest.approx(40.0, rel=0.05)
        assert int(result.replica.max()) + 1 == min(replicas, MAX_SIMULATED_REPLICAS)


@pytest.mark.parametrize("router", ["round_robin", "random", "least_outstanding", "power_of_two"])
def test_a_sample_says_of_a_bursty_fleet_what_the_whole_fleet_does(router):
    # 100 replicas at 17 req/s each, of which 32 are shown: with bursts for 100, first tokens would wait 25 % longer.
    scenario = Scenario(demand="rate", rate_rps=1700.0, arrivals="bursty", burst_cv=6.0, router=router)
    replica = replica_of(size(scenario))
    shown = run_fleet(scenario, replica, draw(scenario), 100).metrics
    stream = with_rate(draw(scenario.replace(num_requests=100 * 2000)), 1700.0)
    whole = simulate_fleet(
        stream, replica.engine, replica.limits, replica.step_time, num_replicas=100, router=router, seed=1
    )
    true = measure(whole, scenario.service_level)
    assert shown.ttft_s.p95 == pytest.approx(true.ttft_s.p95, rel=0.08)
    assert shown.tpot_s.mean == pytest.approx(true.tpot_s.mean, rel=0.05)


def test_prefixes_that_overload_some_replicas_do_so_in_the_sample():
    # 60 prompts on 50 replicas: ten have two of them, and a third of the requests waits there without end.
    scenario = Scenario(
        demand="rate", rate_rps=1000.0, router="prefix_affinity", shared_prefix_tokens=500, num_prefix_groups=60
    )
    found = run_fleet(scenario, replica_of(size(scenario)), draw(scenario), 50).metrics
    assert found.slo_attainment == pytest.approx(2 / 3, abs=0.02)


def test_a_run_in_which_all_requests_count_is_as_long_as_was_asked_for():
    scenario = UNHURRIED.replace(measured_requests="all")
    _, result, metrics = run_fleet(scenario, toy(), draw(scenario), 2)
    assert len(result.arrival_s) == metrics.num_requests == 500


def test_a_run_grows_until_it_is_enough_or_the_most():
    asked = []

    def enough(metrics, _scenario):
        asked.append(metrics.num_requests)
        return len(asked) == 3

    run_fleet(UNHURRIED, toy(), draw(UNHURRIED), 1, enough=enough)
    assert asked == [500, 2000, 8000]
    result = run_fleet(UNHURRIED, toy(), draw(UNHURRIED), 1, most_requests=3000, enough=lambda *_: False).result
    assert len(result.arrival_s) == 2000  # four times as many would be more than 3,000


@pytest.mark.parametrize(
    ("asked", "tokens", "shown", "most", "served"),
    [
        (2000, 256, 32, 400_000, 64_000),
        (2000, 256, 32, 20_000, 64_000),  # what a replica has by default it always has
        (200_000, 256, 32, 400_000, 400_000),  # more only as far as one figure may take them
        (200_000, 256, 32, 20_000, 64_000),
        (2000, 100_000, 32, 400_000, 10_000),  # a billion tokens
        (2000, 1_000_000, 32, 400_000, 3200),  # and yet a hundred requests for each replica
        (50, 1_000_000, 32, 400_000, 1600),
    ],
)
def test_a_first_run_has_so_many_requests(asked, tokens, shown, most, served):
    assert fleet._affordable(requests_of([tokens] * asked), shown, most) == served


@pytest.mark.parametrize("changes", [{}, {"arrivals": "closed", "concurrent_users": 400}])
def test_a_large_fleet_does_not_simulate_every_request_for_each_replica(changes):
    scenario = UNHURRIED.replace(num_requests=30_000, rate_rps=20.0, demand="rate", **changes)
    run = run_fleet(scenario, toy(), draw(scenario), 10, most_requests=25_000, enough=lambda *_: True)
    served = len(run.result.arrival_s)  # of the 300,000 that ten replicas would have; a loop's last round is cut
    assert 10 * 2_000 < served <= 10 * 2_500


def test_answers_of_many_tokens_end_a_run_by_its_steps(monkeypatch):
    # Ten tokens each on eight slots: 500 requests take at least 625 steps, 2,000 four times as many.
    monkeypatch.setattr(fleet, "MOST_STEPS", 20_000)
    result = run_fleet(UNHURRIED, toy(), draw(UNHURRIED), 1, enough=lambda *_: False).result
    assert len(result.arrival_s) == 2000
    assert result.num_steps <= 20_000 < 4 * result.num_steps


@pytest.mark.parametrize(
    ("attainment", "half_width", "settled", "counted", "long_enough", "plain"),
    [
        (0.97, 0.01, True, 500, True, True),  # the target of 0.95 lies outside the interval
        (0.955, 0.01, True, 500, False, False),
        (0.951, 0.001, True, 500, True, True),  # known within 0.2 %
        (0.97, 0.01, False, 500, False, False),
        (0.5, 0.1, False, 10_000, False, True),  # 0.45 off, more than four half-widths
        (0.5, 0.1, False, 9_999, False, False),
        (0.6, 0.1, False, 10_000, False, False),
    ],
)
def test_which_runs_decide(attainment, half_width, settled, counted, long_enough, plain):
    metrics = SimpleNamespace(
        slo_attainment=attainment, slo_attainment_half_width=half_width, is_settled=settled, num_counted=counted
    )
    assert Scenario().target_quantile == 0.95
    assert fleet._settled(metrics, Scenario()) is long_enough
    assert fleet.is_plain(metrics, Scenario()) is plain


def test_the_fewest_are_those_that_carry_the_rate_when_every_number_holds():
    requests = draw(UNHURRIED)
    assert fleet_size(UNHURRIED, toy(slots=256), requests, guess=5, at_least=3) == 3
    assert fleet_size(UNHURRIED, toy(slots=256), requests, guess=1) == 1


def test_no_number_helps_a_request_that_is_too_slow_alone():
    # Even alone the first token takes one step of a second.
    hasty = UNHURRIED.replace(ttft_target_s=0.5)
    assert fleet_size(hasty, toy(), draw(hasty), guess=1) is None
    burst = BURST.replace(ttft_target_s=0.5, tpot_target_s=2.0, num_requests=20)
    assert fewest_sharing(burst, toy(), requests_of([10] * 20)) is None


@pytest.mark.parametrize(("target_s", "fewest"), [(20.5, 1), (10.5, 2), (5.5, 4), (1.5, 19)])
def test_a_burst_of_one_token_answers_waits_its_turn(target_s, fewest):
    # One slot, one step of a second each: the last of n requests on r replicas is answered after ⌈n ÷ r⌉ seconds.
    # On 19 replicas one of the 20 waits: the 95 % that are asked for are in time.
    burst = BURST.replace(ttft_target_s=target_s, tpot_target_s=2.0, num_requests=20)
    requests = dataclasses.replace(requests_of([1] * 20), arrival_s=np.zeros(20))
    assert burst.target_quantile == 0.95
    assert fewest_sharing(burst, toy(slots=1), requests) == fewest


# Of 500 requests with a replica each 94.8 % meet the target, of more of their kind 96 %: asked for are 95 %.
@pytest.mark.parametrize(("short_of_500", "misses"), [(474, False), (460, True), (490, False)])
def test_whether_an_idle_replica_misses_is_asked_of_more_requests_where_few_leave_it_open(
    monkeypatch, short_of_500, misses
):
    def with_short(count, short):
        return requests_of(np.where(np.arange(count) < short, 10, 30))

    scenario = Scenario(e2e_target_s=15.0, ttft_target_s=None, tpot_target_s=None, num_requests=500)
    monkeypatch.setattr(fleet, "drawn", lambda _: with_short(8_000, 7_680))
    assert fleet._misses_alone(scenario, toy(), with_short(500, short_of_500), None) is misses
    own = fleet._misses_alone(scenario, toy(), with_short(500, short_of_500), with_short(500, short_of_500))
    assert own is (short_of_500 < 475)  # a trace is what it is
