"""Drawn workloads keep the distribution that they were asked for."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from planner.errors import InvalidInput
from planner.inputs.traffic import Arrivals, Lengths, Traffic
from planner.workload.drawing import draw_requests, offered_rate_rps, with_rate

N = 40_000


def traffic(prompt=None, **arrivals) -> Traffic:
    return Traffic(
        arrivals=Arrivals(**arrivals), prompt_tokens=prompt or Lengths(mean=512), output_tokens=Lengths(mean=128)
    )


def test_lognormal_keeps_its_mean_and_spread():
    tokens = draw_requests(traffic(), N, 1).prompt_tokens
    # standard error of the mean: 512 / sqrt(N); of the spread: some times that for a heavy tail
    assert tokens.mean() == pytest.approx(512, abs=4 * 512 / math.sqrt(N))
    assert tokens.std() == pytest.approx(512, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "spread", "std"), [("constant", 1.0, 0.0), ("uniform", 0.5, 512 * 0.5 / 3**0.5), ("exponential", 1.0, 512)]
)
def test_other_lengths(kind, spread, std):
    tokens = draw_requests(traffic(Lengths(kind=kind, mean=512, spread=spread)), N, 1).prompt_tokens
    assert tokens.mean() == pytest.approx(512, abs=4 * max(std, 1) / math.sqrt(N))
    assert tokens.std() == pytest.approx(std, rel=0.03, abs=0.1)


def test_quantiles_are_interpolated():
    tokens = draw_requests(traffic(Lengths(kind="quantiles", quantiles=(10, 20, 100))), N, 1).prompt_tokens
    assert np.quantile(tokens, [0, 0.25, 0.5, 0.75, 1]).tolist() == pytest.approx([10, 15, 20, 60, 100], abs=2)


def test_same_seed_same_requests_whatever_the_rate():
    slow, fast = draw_requests(traffic(rate_rps=1), 500, 7), draw_requests(traffic(rate_rps=4), 500, 7)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens)
    np.testing.assert_allclose(slow.arrival_s, 4 * fast.arrival_s)
    np.testing.assert_allclose(with_rate(slow, 4).arrival_s, fast.arrival_s)
    assert not np.array_equal(slow.prompt_tokens, draw_requests(traffic(), 500, 8).prompt_tokens)


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gamma_arrivals_have_their_variation(cv):
    gaps = np.diff(draw_requests(traffic(kind="bursty", cv=cv, rate_rps=2), N, 3).arrival_s)
    assert gaps.mean() == pytest.approx(0.5, rel=5 * cv / math.sqrt(N))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)


def test_on_off_puts_all_arrivals_into_the_bursts():
    requests = draw_requests(traffic(kind="on_off", rate_rps=2, on_fraction=0.25, period_s=60), N, 3)
    assert (requests.arrival_s % 60 <= 15 + 1e-9).all()
    assert N / requests.arrival_s[-1] == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("peak", [1.0, 2.0, 5.0])
def test_a_day_has_its_peak(peak):
    requests = draw_requests(traffic(kind="diurnal", rate_rps=N / 40_000, period_s=1000, peak_factor=peak), N, 3)
    phase = requests.arrival_s % 1000 / 1000
    at_noon = ((phase > 0.475) & (phase < 0.525)).mean() / 0.05
    assert at_noon == pytest.approx(peak, rel=0.1)


def test_weekends_are_quieter():
    requests = draw_requests(traffic(kind="diurnal", rate_rps=N / 70_000, period_s=1000, weekend_factor=0.3), N, 3)
    day = requests.arrival_s // 1000 % 7
    weekend, weekday = (day >= 5).sum() / 2, (day < 5).sum() / 5
    assert weekend / weekday == pytest.approx(0.3, rel=4 / weekend**0.5)


def test_the_engine_ends_answers_at_the_context():
    requests = draw_requests(traffic(Lengths(kind="constant", mean=900)), 1000, 1, max_model_len=1000)
    assert (requests.prompt_tokens + requests.output_tokens).max() == 1000


def test_shared_prefixes_belong_to_groups():
    shared = dataclasses.replace(traffic(), shared_prefix_tokens=100, num_prefix_groups=3)
    requests = draw_requests(shared, 1000, 1)
    assert set(requests.prefix_group.tolist()) == {0, 1, 2}
    assert (requests.prefix_tokens == np.minimum(100, requests.prompt_tokens)).all()


def test_rates_cannot_be_set_where_there_is_none():
    once = draw_requests(traffic(kind="once"), 10, 1)
    assert offered_rate_rps(once) == math.inf
    with pytest.raises(InvalidInput, match="once"):
        with_rate(once, 2.0)
    with pytest.raises(InvalidInput, match="closed"):
        with_rate(draw_requests(traffic(kind="closed", users=3), 10, 1), 2.0)
