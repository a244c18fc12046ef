import math

import pytest

from planner.answer.confidence import Band, band

TEN = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=100, basis="test")


def test_half_of_the_results_lie_in_the_band():
    # a median error of 10 %: half of the true figures lie between 100 ÷ 1.1 and 100 × 1.1
    below = TEN.probability_below(100.0, 110.0)
    above = TEN.probability_below(100.0, 100.0 / 1.1)
    assert below - above == pytest.approx(0.5, abs=1e-9)


def test_a_target_at_the_prediction_is_a_coin_toss():
    assert TEN.probability_below(100.0, 100.0) == pytest.approx(0.5)
    assert TEN.probability_below(100.0, 200.0) > 0.999


def test_what_was_never_measured_is_unknown():
    unknown = band("phase_of_the_moon", is_moe=False, engine_family="vllm")
    assert math.isnan(unknown.median_fraction)
    assert math.isnan(unknown.probability_below(1.0, 2.0))
    assert unknown.rows == 0
