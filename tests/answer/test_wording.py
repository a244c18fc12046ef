"""The sentences of a plan agree with its figures, and name the right culprit."""

import math

import pytest

from planner import plan
from tests.answer.cases import SMALL

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
    assert "Even an idle replica takes" in " ".join(plan(SMALL.replace(tpot_target_s=0.001)).reasons)


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
