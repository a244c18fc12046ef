"""Badges state target, figure and margin; equal outcomes share a line."""

import dataclasses

import pytest

from planner import Scenario, plan
from planner.answer import Change
from planner.answer.planning import size
from planner.dashboard.headlines import badges, change_lines

SMALL = Scenario(num_requests=300)


@pytest.fixture(scope="module")
def done():
    return plan(SMALL)


def with_latencies(done, ttft_s, tpot_s, met, attainment):
    """The same plan with the same latencies for every request."""
    count = len(done.metrics.ttft_s.quantiles)
    metrics = dataclasses.replace(
        done.metrics,
        ttft_s=dataclasses.replace(done.metrics.ttft_s, quantiles=(ttft_s,) * count),
        tpot_s=dataclasses.replace(done.metrics.tpot_s, quantiles=(tpot_s,) * count),
        slo_attainment=attainment,
    )
    return dataclasses.replace(done, metrics=metrics, slo_met=met)


def test_the_targets_of_the_default_are_one_second_and_fifty_milliseconds():
    assert (SMALL.ttft_target_s, SMALL.tpot_target_s, SMALL.target_quantile) == (1.0, 0.05, 0.95)


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "attainment", "said"),
    [
        # margins by hand: 1 − 0.6 ÷ 1 = 40 %, 1 − 0.04 ÷ 0.05 = 20 %: the smaller one counts
        (0.6, 0.04, 1.0, "meets the targets with 20 % to spare: TTFT 600 ms of 1 s, TPOT 40 ms of 50 ms"),
        (2.0, 0.04, 0.9, "misses the TTFT target: 2 s, target 1 s (90 % of requests meet both)"),
        (0.6, 0.097, 0.0, "misses the TPOT target: 97 ms, target 50 ms (no request meets both)"),
        (2.0, 0.1, 0.0, "misses both targets: TTFT 2 s, target 1 s; TPOT 100 ms, target 50 ms (no request meets both)"),
        (0.6, 0.04, 0.8, "misses the targets: 80 % of requests meet both, target 95 %"),
    ],
)
def test_the_badge_of_the_targets(done, ttft_s, tpot_s, attainment, said):
    met = said.startswith("meets")
    badge = badges(with_latencies(done, ttft_s, tpot_s, met, attainment))[1]
    assert (badge.good, badge.text) == (met, said)


def test_the_badge_of_the_price_names_both(done):
    own, api = 3.99 * 730, done.cost.api_usd_per_month  # one H100 SXM at its list price
    badge = badges(done)[2]
    assert badge.good == (own < api)
    assert f"{own:,.0f} USD" in badge.text
    assert f"{api:,.0f} USD" in badge.text


def test_a_plan_that_does_not_start_says_what_is_missing():
    sized = size(SMALL.replace(gpu="V100 SXM2 16GB"))
    (badge,) = badges(sized)
    assert not badge.good
    assert badge.text == f"does not start: {-sized.memory.kv_pool_bytes / 2**30:.1f} GiB short"


def test_equal_outcomes_share_a_line():
    def change(label, text):
        return Change(label=label, scenario=SMALL, num_gpus=1, usd_per_month=1.0, text=text)

    changes = (change("a", "adds 1 GPU"), change("b", "no change"), change("c", "adds 1 GPU"), change("d", "no change"))
    assert change_lines(None, changes) == ["a, c: adds 1 GPU", "No change with b, d"]
