"""Latencies, rates and shares from records written by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.inputs.traffic import ServiceLevel
from planner.service.metrics import distribution, measure, pooled
from planner.simulation.machine import simulate
from tests.simulation.cases import UNIT, limits, make

LEVEL = ServiceLevel(ttft_s=2.5, tpot_s=1.5)
ALL = ServiceLevel(ttft_s=2.5, tpot_s=1.5, window="all")


def test_latencies_by_definition():
    # 0-1: A's prompt | 1-2: A; B waits (one slot) | 2-3: A ends | 3-4: B's prompt, its only token
    result = simulate(make([0, 0.5], [2, 2], [3, 1]), get_engine("vllm"), limits(seqs=1), UNIT)
    metrics = measure(result, ALL)
    assert (metrics.ttft_s.p50, metrics.ttft_s.max) == ((1 + 3.5) / 2, 3.5)
    assert metrics.tpot_s.p50 == 1.0  # of A alone: one token has no time between tokens
    assert metrics.tpot_s.count == 1
    assert (metrics.e2e_s.mean, metrics.wait_s.mean) == ((3 + 3.5) / 2, 2.5 / 2)
    assert metrics.slo_attainment == 0.5  # B's first token is late
    assert metrics.output_tokens_per_s == 4 / 4
    assert metrics.total_tokens_per_s == 8 / 4
    assert metrics.goodput_rps == 0.25
    assert metrics.busy_utilization == 1.0
    assert metrics.slots_utilization == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("level", "share"),
    [
        ({"itl_s": 1.9}, 0.5),
        ({"itl_s": 2.1}, 1.0),
        ({"e2e_s": 3.9}, 0.5),
        ({"e2e_s": 4.1}, 1.0),
        ({}, 1.0),  # no target: every request that finishes is good
    ],
)
def test_only_targets_that_are_on_count(level, share):
    # A has the slot for three steps, B's prompt and only token take the fourth: 3 s and 4 s end to end.
    result = simulate(make([0, 0], [2, 2], [3, 1]), get_engine("vllm"), limits(seqs=1), UNIT)
    result = dataclasses.replace(result, max_itl_s=np.array([2.0, 0.0]))  # a stall of A; one token has no gap
    off = {"ttft_s": None, "tpot_s": None}
    assert measure(result, ServiceLevel(**{**off, **level}, window="all")).slo_attainment == share


def test_rejected_requests_miss_the_target():
    result = simulate(make([0, 0], [2, 2000], [1, 1]), get_engine("vllm"), limits(seqs=1), UNIT)
    metrics = measure(result, LEVEL)
    assert (metrics.num_finished, metrics.num_rejected) == (1, 1)
    assert metrics.slo_attainment == 0.5


def test_percentiles_interpolate_linearly():
    got = distribution(np.array([4.0, 1.0, 3.0, 2.0]))
    assert got.p50 == 2.5
    assert got.p90 == pytest.approx(3.7)
    assert got.at(0.25) == 1.75
    assert got.max == 4.0


def test_nothing_observed_is_not_a_number():
    got = distribution(np.empty(0))
    assert math.isnan(got.p99)
    assert math.isnan(got.at(0.5))


def test_batch_means_cover_the_truth():
    # 95 % intervals of white noise: of 200 of them, 190 +- 4 sigma (12.3) hold the true mean.
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        got = distribution(rng.normal(5, 1, 400))
        hits += abs(got.mean - 5) <= got.mean_half_width
    assert abs(hits - 190) <= 12.3


def test_pooled_gaps_weigh_by_their_number():
    got = pooled(np.array([1.0, 2.0, 10.0]), np.array([50.0, 49.0, 1.0]))
    assert (got.p50, got.p95, got.max) == (1.0, 2.0, 10.0)
    assert got.mean == pytest.approx(1.58)


def test_gaps_of_a_run_are_its_steps():
    # Five tokens, four gaps of one second, seen within the width of a bin (0.8 % either way).
    result = simulate(make([0], [2], [5]), get_engine("vllm"), limits(), UNIT)
    itl = measure(result, LEVEL).itl_s
    assert itl.count == 4
    assert itl.p50 == pytest.approx(1.0, rel=0.008)


def test_pooled_gaps_have_the_warm_up_cut():
    # A decodes alone from 1, one gap of 1 s per step. Twenty requests; the third arrives at 10.5, and is taken up
    # at 12, as the step 11-12 was filled at 10: of A's 29 gaps the 11 up to then are left out. The others have one
    # token and none.
    arrival = [0.0, 5.5, *[10.5 + k for k in range(18)]]
    result = simulate(make(arrival, [1] * 20, [30] + [1] * 19), get_engine("vllm"), limits(), UNIT)
    assert measure(result, ALL).itl_s.count == 29
    assert measure(result, LEVEL).itl_s.count == 18


@pytest.mark.parametrize(
    ("counted", "ttft", "tpot", "settled"),
    [
        (3000, 10.0, 1.0, True),  # 300 times the longer of the two correlations
        (2999, 10.0, 1.0, False),
        (2999, 1.0, 10.0, False),
        (300, 1.0, math.nan, True),  # answers of one token have no TPOT
    ],
)
def test_a_run_is_settled_at_three_hundred_correlation_lengths(counted, ttft, tpot, settled):
    made = measure(simulate(make([0], [2], [3]), get_engine("vllm"), limits(), UNIT), ALL)
    metrics = dataclasses.replace(
        made,
        num_counted=counted,
        ttft_s=dataclasses.replace(made.ttft_s, correlation=ttft),
        tpot_s=dataclasses.replace(made.tpot_s, correlation=tpot),
    )
    assert metrics.is_settled is settled
