"""Capacity and load curves: closed forms where every step costs one second."""

import numpy as np
import pytest

from planner.inputs.traffic import ServiceLevel
from planner.service.load import STEADY_SHARE, load_curve, replicas_needed
from tests.service.cases import requests_of, toy


def test_no_rate_at_the_capacity_counts_as_held_however_loose_the_targets():
    outputs = np.random.default_rng(2).integers(5, 16, 400)
    level = ServiceLevel(ttft_s=1e5, tpot_s=1e5)
    curve = load_curve(toy(), requests_of(outputs), level)
    assert curve.slo_rate_rps == pytest.approx(STEADY_SHARE * curve.capacity_rps, rel=1e-3)


def test_replicas_that_carry_a_rate():
    assert replicas_needed(10.0, 2.5) == 4
    assert replicas_needed(10.1, 2.5) == 5
    assert replicas_needed(1.0, 0.0) is None
