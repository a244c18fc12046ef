import math

import pytest

from planner.units import (
    GIB,
    KIB,
    MIB,
    counted,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_usd,
)


def test_memory_is_counted_in_powers_of_two():
    assert (KIB, MIB, GIB) == (1024, 1_048_576, 1_073_741_824)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,230,000"),
        (0.012345, "0.0123"),
        (99.96, "100"),
        (8.333, "8.33"),
        (1000.4, "1,000"),
        (-2.5, "-2.5"),
        (math.inf, "∞"),
        (math.nan, "—"),
    ],
)
def test_numbers_keep_three_digits(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (5e-5, "50 µs"), (0.0141, "14.1 ms"), (0.31, "310 ms"), (1.5, "1.5 s"), (300, "5 min"), (7200, "2 h")],
)
def test_durations_use_the_unit_a_person_would(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1 seat"),
        (1200, "1,200 seats"),
        (0.5, "0.5 seats"),
        (2.5, "2.5 seats"),
        (54.857, "55 seats"),
        (1.0, "1 seat"),
    ],
)
def test_things_are_counted_as_a_person_would(number, text):
    assert counted(number, "seat") == text


def test_money_and_shares():
    assert format_usd(0.19) == "0.19 USD"
    assert format_usd(0.0123) == "0.012 USD"
    assert format_usd(12345.6) == "12,346 USD"
    assert format_percent(0.61) == "61 %"
    assert format_percent(14.87) == "1,487 %"
    assert format_percent(0.004) == "0.4 %"
    assert (format_percent(0.0), format_percent(0.00049)) == ("0 %", "0.05 %")
    assert (format_percent(0.9944), format_percent(0.9994), format_percent(0.9997)) == ("99 %", "99.9 %", "99.97 %")
    assert (format_percent(0.99999), format_percent(1.0), format_percent(1.004)) == ("over 99.99 %", "100 %", "100 %")
    assert (format_percent(-0.0003), format_percent(1e-6)) == ("-0.03 %", "under 0.01 %")


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [(22.26, 0.4786, "22.3 ± 0.48"), (1234.0, 56.7, "1,230 ± 57"), (8.0, 0.0, "8"), (8.0, float("nan"), "8")],
)
def test_a_number_with_its_uncertainty_where_it_has_one(value, half_width, text):
    assert format_interval(value, half_width) == text
