"""The sentences of a plan agree with its figures, and name the right culprit."""

import dataclasses
import math

import pytest

from planner import plan
from planner.answer.outcome import Taken
from planner.answer.planning import size
from planner.answer.wording import (
    clients_in_words,
    gives_first,
    headline,
    load_in_words,
    meeting,
    reasons,
    refusal_in_short,
)
from planner.memory import verdict
from tests.answer.cases import SMALL, planned


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (0.949, "94.9 %"),
        (0.9496, "94.96 %"),
        (0.95 - 1e-9, "just under 95 %"),
        (0.92, "92 %"),
        (0.95, "95 %"),
        (0.97, "97 %"),
    ],
)
def test_a_share_just_below_the_one_asked_for_does_not_read_like_it(share, says):
    done = planned()
    short = dataclasses.replace(done, metrics=dataclasses.replace(done.metrics, slo_attainment=share))
    assert meeting(short) == f"{says} of requests meet both"


NOTHING_FITS = SMALL.replace(lengths="constant", prompt_mean_tokens=9000.0)


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


REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}
OUTCOMES = [
    value for name, value in vars(verdict).items() if name.isupper() and name.startswith(("REFUSED", "OOM", "PARTLY"))
]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_a_short_reason(outcome):
    memory = dataclasses.replace(planned(**REFUSED).memory, outcome=outcome)
    said = refusal_in_short(memory)
    assert said
    assert not said.endswith(".")  # it stands inside a sentence
    assert len({refusal_in_short(dataclasses.replace(memory, outcome=other)) for other in OUTCOMES}) == len(OUTCOMES)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"users": 1200}, "1,200 users"),
        ({"arrivals": "closed", "concurrent_users": 40}, "40 concurrent users"),
        ({"arrivals": "once"}, "400 requests"),
        ({"demand": "rate", "rate_rps": 2.5}, "2.5 req/s"),
    ],
)
def test_who_is_served(changes, said):
    assert said in clients_in_words(size(SMALL.replace(**changes)))


def test_the_headline_names_gpus_and_remedies():
    done = planned(**REFUSED)
    assert headline(done) == done.headline
    assert "Llama-3.3-70B-Instruct" in done.headline and "H100" in done.headline
    assert done.memory.remedies[0] in done.headline
    served = planned()
    assert headline(served).startswith(f"{served.num_gpus} × ")
    assert reasons(served) == served.reasons


@pytest.mark.parametrize(
    "changes", [{}, {"users": 3000, "num_replicas": 1}, {"tpot_target_s": 0.001}, {"timeout_s": 1.0}]
)
def test_no_sentence_holds_a_number_that_is_none(changes):
    done = planned(**changes)
    for text in (done.headline, *done.reasons):
        assert "nan" not in text
        assert "inf" not in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1 × H100 SXM takes at most"),
        ({"arrivals": "closed", "num_replicas": 2}, "2 × H100 SXM take at most"),
        ({"tpot_target_s": 0.0005}, "1 × H100 SXM cannot hold the targets at any load: without load TPOT"),
    ],
)
def test_what_gpus_take_is_told_as_the_traffic_is_given(changes, said):
    done = planned(question="take", **changes)
    assert done.headline.startswith(said)
    if done.taken.load:
        assert load_in_words(done.scenario, done.taken.load).split(" (")[0] in done.headline
        assert gives_first(done.taken) in f"{done.reasons[0][0].lower()}{done.reasons[0][1:]}"


def test_what_gives_first_is_named_with_what_requests_wait_for():
    def said(gives, wait):
        return gives_first(Taken(load=9.0, gives_first=gives, held_up_by=wait, longest_prompt_tokens=100))

    assert said("TTFT", "kv cache") == "more load misses the TTFT target first (requests then wait for KV cache)"
    assert said("throughput", "compute") == "more load exceeds the throughput (the GPU is then busy all the time)"
    assert said("TPOT", "none") == "more load misses the TPOT target first"
    assert said("", "") == ""
