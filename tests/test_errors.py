import math

import pytest

from planner.errors import Infeasible, InvalidInput, PlannerError, require_choice, require_int, require_number


def test_invalid_input_names_field_value_and_what_is_valid():
    error = InvalidInput("num_kv_heads", 5, "a divisor of num_attention_heads (32)")
    assert str(error) == "num_kv_heads = 5 is not valid: expected a divisor of num_attention_heads (32)."
    assert isinstance(error, PlannerError)


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e15, "1,000,000,000,000,000"), (0.25, "0.25"), (math.nan, "nan"), (math.inf, "inf"), (-1, "-1")],
)
def test_a_number_is_written_in_digits(value, said):
    assert str(InvalidInput("x", value, "less")).startswith(f"x = {said} is not valid")


def test_long_values_are_shortened():
    assert len(str(InvalidInput("title", "x" * 10_000, "less"))) < 200


def test_infeasible_offers_remedies():
    assert str(Infeasible("3.2 GiB short.", ["fp8 weights", "TP 2"])) == "3.2 GiB short. Try fp8 weights or TP 2."


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, math.nan])
def test_counts_must_be_whole_and_positive(value):
    with pytest.raises(InvalidInput, match="whole number"):
        require_int("n", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "1", None, True])
def test_numbers_must_be_finite_and_in_range(value):
    with pytest.raises(InvalidInput, match="a number of at least 0"):
        require_number("x", value, at_least=0)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"at_least": 0, "at_most": 10}, "a number from 0 to 10"),
        ({"at_least": 1, "at_most": 5}, "a number from 1 to 5"),
        ({"at_least": 0.5, "at_most": 1e6}, "a number from 0.5 to 1,000,000"),
        ({"above": 0}, "a number above 0"),
        ({"above": 0, "at_most": 1}, "a number above 0 and of at most 1"),
        ({}, "a finite number"),
    ],
)
def test_bounds_are_said_in_words(bounds, said):
    with pytest.raises(InvalidInput, match=f"expected {said}\\."):
        require_number("x", math.nan, **bounds)


def test_choices_are_listed():
    with pytest.raises(InvalidInput, match="one of a, b"):
        require_choice("x", "c", ("a", "b"))


def test_bounds_themselves_are_within_or_beyond():
    require_number("x", 5, at_least=5, at_most=5)
    require_number("x", 10**400)  # too long for a float, yet finite
    for bounds in ({"above": 5}, {"at_least": 5.1}, {"at_most": 4.9}):
        with pytest.raises(InvalidInput):
            require_number("x", 5, **bounds)
    require_int("n", 3, at_least=3, at_most=3)
    with pytest.raises(InvalidInput, match="from 1 to 2"):
        require_int("n", 3, at_most=2)
    require_choice("x", "a", ("a", "b"))
