"""Capacity and load curves: closed forms where every step costs one second."""

import dataclasses
import math

import numpy as np
import pytest

from planner.inputs.traffic import ServiceLevel
from planner.service.load import STEADY_SHARE, LoadCurve, load_curve, replicas_needed
from tests.service.cases import requests_of, toy


def test_no_rate_at_the_capacity_counts_as_held_however_loose_the_targets():
    outputs = np.random.default_rng(2).integers(5, 16, 400)
    level = ServiceLevel(ttft_s=1e5, tpot_s=1e5)
    curve = load_curve(toy(), requests_of(outputs), level)
    assert curve.slo_rate_rps == pytest.approx(STEADY_SHARE * curve.capacity_rps, rel=1e-3)


def test_a_replica_that_holds_its_targets_only_when_all_but_idle_is_swept_down_to_there():
    # One slot, answers of 100 steps, random arrivals: a request waits where it finds one under way, so at a share rho
    # of the capacity 1 - rho do not wait (arrivals see time averages). 99 % hold up to 1 % of the capacity.
    gaps = np.random.default_rng(3).exponential(1.0, 20_000)
    requests = dataclasses.replace(requests_of([100] * len(gaps)), arrival_s=np.cumsum(gaps))
    curve = load_curve(toy(slots=1), requests, ServiceLevel(ttft_s=2.5, tpot_s=1e5, quantile=0.99))
    assert curve.points[0].rate_rps < 0.005 * curve.capacity_rps
    assert 0.005 * curve.capacity_rps < curve.slo_rate_rps < 0.015 * curve.capacity_rps
    for point in curve.points[:3]:
        assert point.metrics.slo_attainment == pytest.approx(1 - point.rate_rps / curve.capacity_rps, abs=0.004)


def test_replicas_that_carry_a_rate():
    assert replicas_needed(10.0, 2.5) == 4
    assert replicas_needed(10.1, 2.5) == 5
    assert replicas_needed(1.0, 0.0) is None


def test_replicas_that_surely_carry_a_rate_take_the_lower_end_of_the_capacity():
    # 97 % of 10 req/s carry 9.6, 97 % of 9.5 do not.
    curve = LoadCurve(points=(), capacity_rps=10.0, capacity_half_width_rps=0.5, slo_rate_rps=8.0, binding="")
    assert (curve.replicas_to_carry(9.6), curve.replicas_to_carry(9.6, surely=True)) == (1, 2)
    assert curve.replicas_to_carry(9.2, surely=True) == 1
    unknown = dataclasses.replace(curve, capacity_half_width_rps=math.nan)
    assert unknown.replicas_to_carry(9.6, surely=True) == 1
    assert (curve.capacity_in_words(3), unknown.capacity_in_words(3)) == ("30 ± 1.5", "30")
