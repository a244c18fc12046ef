"""What a recording looks like, and the scenario that stands for it."""

import dataclasses

import numpy as np
import pytest

from planner.scenario import LENGTH_LEVELS, Scenario, from_query, to_query
from planner.workload import Requests, draw
from planner.workload.trace_summary import fitted, summary_of


def recorded(arrival, prompt=10, output=5, group=None, prefix=None) -> Requests:
    count = len(arrival)

    def column(value):
        return np.full(count, value, dtype=np.int64) if np.isscalar(value) else np.array(value, dtype=np.int64)

    return Requests(
        arrival_s=np.asarray(arrival, dtype=float),
        prompt_tokens=column(prompt),
        output_tokens=column(output),
        output_limit_tokens=column(output),
        prefix_group=column(-1 if group is None else group),
        prefix_tokens=column(0 if prefix is None else prefix),
    )


def test_rate_and_gaps_of_a_poisson_process():
    arrival = np.cumsum(np.random.default_rng(1).exponential(0.5, 20_000))
    told = summary_of(recorded(arrival))
    assert told.mean_rps == pytest.approx(2.0, rel=0.03)  # two a second, over 20,000 requests
    assert told.gap_cv == pytest.approx(1.0, abs=0.03)
    assert told.rate_rps.sum() * told.bin_s == pytest.approx(20_000)
    assert fitted(Scenario(), recorded(arrival)).arrivals == "poisson"


def test_bursts_show_in_the_gaps():
    rng = np.random.default_rng(2)
    arrival = np.cumsum(rng.gamma(1 / 9, 9 * 0.5, 20_000))  # Gamma gaps with a spread of 3
    made = fitted(Scenario(), recorded(arrival))
    assert made.arrivals == "bursty"
    assert made.burst_cv == pytest.approx(3.0, rel=0.1)
    assert made.rate_rps == pytest.approx(2.0, rel=0.1)


def test_reuse_is_what_an_earlier_request_had_already():
    told = summary_of(recorded([0, 1, 2, 3], prompt=100, group=[0, 0, 0, -1], prefix=[0, 60, 80, 0]))
    assert told.reused_fraction == pytest.approx(140 / 400)


def test_a_day_has_its_shape():
    # one request a minute from 8 to 20 o'clock of two days, none at night; the recording begins at midnight
    minutes = [day * 1440 + minute for day in (0, 1) for minute in range(8 * 60, 20 * 60)]
    told = summary_of(recorded(np.array([0, *minutes, 2 * 1440]) * 60.0))
    assert told.by_hour_rps[12] == pytest.approx(1 / 60)
    assert told.by_hour_rps[3] == 0
    assert len(summary_of(recorded([0, 10.0])).by_hour_rps) == 0


def test_one_instant_is_a_burst():
    made = fitted(Scenario(), recorded([5.0, 5.0, 5.0]))
    assert (made.arrivals, made.num_requests) == ("once", 3)


def test_the_link_of_a_recording_draws_the_same_lengths_and_rate():
    source = Scenario(demand="rate", rate_rps=4.0, peak_factor=1.0, num_requests=20_000, max_model_len=16_384)
    sample = draw(source)
    opened = from_query(to_query(fitted(source, sample))).scenario
    again = draw(opened.replace(num_requests=20_000))
    for side in ("prompt_tokens", "output_tokens"):
        one, other = getattr(sample, side), getattr(again, side)
        assert other.mean() == pytest.approx(one.mean(), rel=0.03)
        levels = [level for level in LENGTH_LEVELS if 0.01 <= level <= 0.99]
        np.testing.assert_allclose(np.quantile(other, levels), np.quantile(one, levels), rtol=0.1, atol=3)
    assert opened.rate_rps == pytest.approx(4.0, rel=0.03)


def test_everything_but_the_traffic_stays():
    base = Scenario(model="Qwen/Qwen3-8B", gpu="L40S", ttft_target_s=1.5)
    made = fitted(base, recorded(np.arange(200.0)))
    kept = ("model", "gpu", "ttft_target_s", "engine", "max_model_len")
    assert all(getattr(made, name) == getattr(base, name) for name in kept)
    assert dataclasses.is_dataclass(made)


def test_a_week_has_its_shape():
    # one request a minute on five days, none on two; the recording begins with the first of the five
    minutes = [day * 1440 + minute for day in (0, 1, 2, 3, 4, 7) for minute in range(1440)]
    told = summary_of(recorded(np.array([*minutes, 14 * 1440 - 1]) * 60.0))
    assert told.by_day_rps[0] == pytest.approx(1 / 60)  # on both of its days
    assert told.by_day_rps[1] == pytest.approx(1 / 120)  # on the first of them alone
    assert told.by_day_rps[5] == 0
    assert len(summary_of(recorded([0, 86_400.0])).by_day_rps) == 0


def test_a_day_that_the_recording_has_half_of_has_its_rate():
    minutes = np.arange(6 * 1440 + 720 + 1) * 60.0  # a request a minute for six days and a half
    assert summary_of(recorded(minutes)).by_day_rps == pytest.approx(np.full(7, 1 / 60), rel=2e-3)
