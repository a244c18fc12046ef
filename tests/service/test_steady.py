"""Warm-up, drain and intervals: against processes whose answer is known in closed form."""

import dataclasses
import math

import numpy as np
import pytest

from planner.service.steady import mean_error, quantile_error, steady_window, student_975
from planner.simulation.records import SimulationResult


def ar1(phi, n, runs):
    """x_t = phi x_(t-1) + e_t with standard normal e, begun in its steady state: a row for each run."""
    out = np.stack([np.random.default_rng(seed).standard_normal(n) for seed in range(runs)], axis=1)
    out[0] /= math.sqrt(1 - phi**2)
    for k in range(1, n):
        out[k] += phi * out[k - 1]
    return np.ascontiguousarray(out.T)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_the_error_of_a_mean_respects_correlation(phi):
    # Var(mean) -> 1 / (n (1 - phi)^2); an observation is worth (1 - phi) / (1 + phi) of an independent one.
    n = 40_000
    found = [mean_error(run) for run in ar1(phi, n, 20)]
    expected = 1.96 / (1 - phi) / math.sqrt(n)
    assert np.mean([error.half_width for error in found]) == pytest.approx(expected, rel=0.12)
    assert np.median([error.correlation for error in found]) == pytest.approx((1 + phi) / (1 - phi), rel=0.2)


def test_intervals_of_correlated_observations_hold_their_truth():
    hits = [abs(run.mean()) <= mean_error(run).half_width for run in ar1(0.9, 20_000, 200)]
    assert 0.90 <= np.mean(hits) <= 0.99  # 95 %, two standard errors of 200 draws: 3 %


def test_the_error_of_a_quantile_of_independent_draws():
    # sqrt(q (1 - q) / n) / f(x_q) with the density of an exponential at its 95 % point: 0.05
    n, q = 20_000, 0.95
    found = [quantile_error(np.random.default_rng(seed).exponential(size=n), q).half_width for seed in range(20)]
    assert np.mean(found) == pytest.approx(1.96 * math.sqrt(q * (1 - q) / n) / 0.05, rel=0.15)


def test_a_short_run_has_no_interval():
    assert math.isnan(mean_error(np.ones(99)).half_width)
    assert math.isnan(quantile_error(np.ones(99), 0.95).half_width)


def test_observations_that_never_differ_are_certain():
    assert mean_error(np.full(500, 3.0)) == (0.0, 1.0)


# Student's t, 97.5 %: 4.303 (2), 2.571 (5), 2.042 (30)
@pytest.mark.parametrize(("freedom", "point", "off"), [(2, 4.303, 0.6), (5, 2.571, 0.03), (30, 2.042, 0.001)])
def test_students_t(freedom, point, off):
    assert student_975(freedom) == pytest.approx(point, abs=off)


def run_of(arrival, e2e, users=0):
    n = len(arrival)
    zeros = np.zeros(n, dtype=np.int64)
    one = SimulationResult(
        arrival_s=np.asarray(arrival, dtype=float), first_token_s=np.asarray(arrival) + 0.1,
        finish_s=np.asarray(arrival) + np.asarray(e2e), prompt_tokens=zeros + 1, output_tokens=zeros + 2,
        status=np.zeros(n, dtype=np.int8), num_preemptions=zeros, max_itl_s=np.zeros(n), replica=zeros,
        duration_s=1.0, num_steps=1, busy_s=1.0, mean_running=1.0, mean_waiting=0.0, mean_kv_used_fraction=0.0,
        mean_kv_written_fraction=0.0, peak_running=1, prefill_tokens_computed=0, prefix_tokens_hit=0, decode_tokens=0,
        closed_loop_users=users,
    )  # fmt: skip
    return dataclasses.replace(one)


def test_a_transient_is_cut_off_whole():
    # 2,000 requests a second apart; the first 600 see times that fall from 30 s to the steady 10 s
    rng = np.random.default_rng(5)
    e2e = 10 + rng.standard_normal(2000)
    e2e[:600] += 20 * (1 - np.arange(600) / 600)
    window = steady_window(run_of(np.arange(2000.0), e2e))
    assert 500 <= window.first <= 750
    assert window.last == pytest.approx(2000 - 11, abs=3)  # nine in ten end within 11.3 s of the last arrival


def test_a_closed_loop_counts_from_when_every_user_had_an_answer():
    # ten users at time zero; the slowest of the first round takes 50 s, all others 1 s
    arrival = [0.0] * 10 + [float(k) for k in range(1, 191)]
    e2e = [50.0] + [1.0] * 199
    window = steady_window(run_of(arrival, e2e, users=10))
    assert arrival[window.first] == 50.0
    assert window.last == 190  # the last request of each user sees others leave


def test_requests_that_come_all_at_once_all_count():
    assert steady_window(run_of([0.0] * 40, [1.0] * 40)) == (0, 40)
