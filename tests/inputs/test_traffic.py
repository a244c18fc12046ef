"""Traffic refuses what cannot be asked for, by name."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.traffic import Arrivals, LengthKind, Lengths, ServiceLevel, Traffic


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (Lengths, "mean", 0.5),
        (Lengths, "mean", float("inf")),
        (Lengths, "spread", -0.1),
        (Lengths, "minimum", 0),
        (Lengths, "kind", "telepathy"),
        (Arrivals, "rate_rps", 0.0),
        (Arrivals, "cv", 0.0),
        (Arrivals, "users", 0),
        (Arrivals, "think_time_s", -1.0),
        (Arrivals, "on_fraction", 1.1),
        (Arrivals, "period_s", 0),
        (Arrivals, "peak_factor", 0.9),  # a peak below the mean
        (Arrivals, "weekend_factor", 0.0),
        (Arrivals, "kind", "never"),
        (ServiceLevel, "ttft_s", 0.0),
        (ServiceLevel, "tpot_s", -1.0),
        (ServiceLevel, "quantile", 1.0),
        (ServiceLevel, "quantile", 0.4),
    ],
)
def test_impossible_figures_name_their_field(make, field, value):
    with pytest.raises(InvalidInput) as caught:
        make(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shared_prefix_tokens", -1),
        ("num_prefix_groups", 0),
        ("output_limit_tokens", 0),
        ("num_lora_adapters", -1),
        ("lora_popularity", 11.0),
    ],
)
def test_traffic_that_cannot_be_names_its_field(field, value):
    with pytest.raises(InvalidInput) as caught:
        Traffic(arrivals=Arrivals(), prompt_tokens=Lengths(), output_tokens=Lengths(), **{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("quantiles", [(), (5.0,), (1.0, 3.0, 2.0)])
def test_quantiles_are_at_least_two_and_never_fall(quantiles):
    with pytest.raises(InvalidInput) as caught:
        Lengths(kind=LengthKind.QUANTILES, quantiles=quantiles)
    assert caught.value.field == "quantiles"
    assert Lengths(kind=LengthKind.QUANTILES, quantiles=(1.0, 1.0, 4.0)).quantiles == (1.0, 1.0, 4.0)


def test_the_longest_is_not_below_the_shortest():
    with pytest.raises(InvalidInput) as caught:
        Lengths(minimum=10, maximum=9)
    assert caught.value.field == "maximum"


def test_a_target_may_be_left_out():
    level = ServiceLevel(ttft_s=None, tpot_s=None, e2e_s=None)
    assert (level.ttft_s, level.tpot_s, level.e2e_s) == (None, None, None)
