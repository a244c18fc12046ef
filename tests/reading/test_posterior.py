"""Factors from figures: against the closed form of a linear model, and on synthetic figures with known factors."""

import numpy as np
import pytest

from planner.reading.posterior import fit

#: a deployment in five numbers: a step alone, a sequence, a prompt token, CPU per step, CPU per request [s]
STEP, SEQUENCE, TOKEN, HOST, REQUEST = 8e-3, 0.12e-3, 20e-6, 1e-3, 10e-3
PROMPT = 1000
PRIOR = np.array([0.35, 0.35, 0.5, 0.4, 0.4])
NOISE = np.array([0.3, 0.05, 0.06] * 3)


def figures(logs):
    """TTFT, TPOT and throughput with 1, 16 and 64 sequences at once."""
    step, sequence, token, host, request = np.exp(logs)
    found = []
    for batch in (1, 16, 64):
        tpot = step * STEP + sequence * SEQUENCE * batch + host * HOST
        found += [request * REQUEST + token * TOKEN * PROMPT + step * STEP, tpot, batch / tpot]
    return np.array(found)


ALL_SOUND = 0.01  # figures that agree leave some chance that one of them is wrong


def test_a_straight_line_gives_the_closed_form():
    slopes = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.3]])
    measured, noise, prior = np.exp([0.05, -0.04, 0.02]), np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.25])
    found = fit(lambda logs: np.exp(slopes @ logs), measured, noise, prior)
    # ridge regression: (SᵀWS + P)⁻¹ SᵀW y
    normal = slopes.T @ np.diag(noise**-2.0) @ slopes + np.diag(prior**-2.0)
    expected = np.linalg.solve(normal, slopes.T @ (noise**-2.0 * np.log(measured)))
    assert found.logs == pytest.approx(expected, rel=ALL_SOUND)
    assert found.covariance == pytest.approx(np.linalg.inv(normal), rel=ALL_SOUND)


def test_a_figure_left_out_is_off_as_much_as_the_others_predict_it():
    slopes = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.3]])
    measured, noise, prior = np.exp([0.05, -0.04, 0.02]), np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.25])
    whole = fit(lambda logs: np.exp(slopes @ logs), measured, noise, prior)
    rest = fit(lambda logs: np.exp(slopes[1:] @ logs), measured[1:], noise[1:], prior)
    off = whole.left_out(np.array([0, 1, 1]))
    assert off[0] == pytest.approx(slopes[0] @ rest.logs - 0.05, rel=ALL_SOUND)


def test_an_error_that_figures_share_is_expected_where_it_is_shared():
    # no factor can explain anything: what is left is the mean of two figures with one error, sd 0.2, and noise 0.1
    shared = np.full((2, 2), 0.2**2)
    found = fit(lambda logs: np.ones(2), np.exp([-0.1, -0.1]), np.full(2, 0.1), np.array([0.5]), shared=shared)
    off, spread = found.elsewhere(np.zeros((1, 1)), np.full((1, 2), 0.2**2), np.array([0.2**2]))
    assert off[0] == pytest.approx(0.1 * 0.2**2 / (0.2**2 + 0.1**2 / 2), rel=ALL_SOUND)
    assert spread[0] ** 2 == pytest.approx(1 / (0.2**-2 + 2 * 0.1**-2), rel=ALL_SOUND)


def test_factors_stay_in_their_ranges_where_runs_share_errors():
    draw = np.random.default_rng(11)
    rest = np.tile([0.3, 0.08, 0.1], 3)
    kernel = np.kron(np.exp(-0.5 * (np.subtract.outer([0, 4, 6], [0, 4, 6]) / 2.0) ** 2), np.eye(3))
    shared, noise = kernel * np.outer(rest, rest), np.tile([0.1, 0.03, 0.04], 3)
    inside = []
    for _ in range(100):
        truth = draw.normal(0.0, PRIOR)
        measured = figures(truth) * np.exp(draw.multivariate_normal(np.zeros(9), shared) + draw.normal(0.0, noise))
        found = fit(figures, measured, noise, PRIOR, shared=shared)
        inside.append(np.abs(truth - found.logs) < 1.645 * np.minimum(found.spread, PRIOR))
    assert 0.9 <= np.mean(inside) <= 0.97


def test_nine_of_ten_true_factors_lie_in_the_stated_ranges():
    draw = np.random.default_rng(7)
    inside = []
    for _ in range(200):
        truth = draw.normal(0.0, PRIOR)
        measured = figures(truth) * np.exp(draw.normal(0.0, NOISE))
        found = fit(figures, measured, NOISE, PRIOR)
        inside.append(np.abs(truth - found.logs) < 1.645 * np.minimum(found.spread, PRIOR))
    share = np.mean(inside)
    assert 0.9 <= share <= 0.96  # and no range so wide that it says nothing
    assert np.min(np.mean(inside, axis=0)) > 0.85


def test_what_the_figures_see_is_narrowed_and_the_rest_stays_at_the_prior():
    truth = np.log([1.3, 0.8, 1.0, 1.0, 1.0])
    found = fit(figures, figures(truth), NOISE, PRIOR)
    assert np.exp(found.logs[:2]) == pytest.approx([1.3, 0.8], rel=0.05)
    assert found.spread[0] < 0.5 * PRIOR[0]
    assert found.spread[3] > 0.9 * PRIOR[3]  # 1 ms of 9: too little to tell


def test_one_figure_that_is_far_off_does_not_carry_the_others_away():
    truth = np.log([1.2, 1.0, 1.0, 1.0, 1.0])
    measured = figures(truth)
    measured[7] *= 3.0  # TPOT with 64 sequences
    found = fit(figures, measured, NOISE, PRIOR)
    assert np.exp(found.logs[0]) == pytest.approx(1.2, rel=0.1)


def test_figures_that_scatter_more_than_expected_widen_the_ranges():
    measured = figures(np.zeros(5))
    calm = fit(figures, measured, NOISE, PRIOR)
    noisy = fit(figures, measured * np.exp(4 * NOISE * np.array([1, -1, 1, -1, 1, -1, 1, -1, 1])), NOISE, PRIOR)
    assert noisy.spread[0] > 1.2 * calm.spread[0]


def test_a_run_that_is_wrong_in_all_its_figures_counts_for_little():
    truth = np.log([1.2, 1.0, 1.0, 1.0, 1.0])
    measured, runs = figures(truth), np.repeat([0, 1, 2], 3)
    measured[3:6] *= [4.0, 4.0, 0.25]  # 4 times as slow as the other two runs say
    found = fit(figures, measured, NOISE, PRIOR, runs=runs)
    assert np.exp(found.logs[0]) == pytest.approx(1.2, rel=0.05)
    off = found.left_out(runs)
    assert off[3] == pytest.approx(-np.log(4.0), abs=0.2)  # the others predict what it should have been


def test_two_of_eight_figures_that_are_wrong_are_both_found():
    slopes = np.ones((8, 1))
    measured = np.exp([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.5, -1.2])
    found = fit(lambda logs: np.exp(slopes @ logs), measured, np.full(8, 0.03), np.array([0.5]))
    assert found.logs[0] == pytest.approx(0.1, abs=0.01)
