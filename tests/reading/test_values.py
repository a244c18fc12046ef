"""Figures in the units of their columns."""

import pytest

from planner.reading.values import duration_ms, scaled


@pytest.mark.parametrize(
    ("text", "ms"),
    [("2m27.5s", 147_500), ("204.563ms", 204.563), ("931µs", 0.931), ("1h0m2s", 3_602_000), ("12 s", None), ("", None)],
)
def test_durations_as_go_writes_them(text, ms):
    assert duration_ms(text) == (None if ms is None else pytest.approx(ms))


def test_scales():
    assert scaled("1,024.5 ms", "0.001") == pytest.approx(1.0245)
    assert scaled("1.5s", "duration_s") == 1.5
    assert scaled("40 tokens/s", "1000/") == 25.0  # 25 ms each
    assert scaled("0", "1000/") is None
    assert scaled(" FP8 ", "") == "FP8"
    assert scaled("inf", "1") == "inf"
    assert scaled("n/a", "1") is None
