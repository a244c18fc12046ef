"""The bill dealt to prompt and output tokens."""

import math

import numpy as np
import pytest

from planner.cost.token_prices import load_price, output_weight
from planner.step_time.step_table import StepTimeTable


def price(rate, weight=4.0):
    return load_price("x", rate, usd_per_hour=3.6, prompt_tokens=1000.0, output_tokens=250.0, output_weight=weight)


def test_both_kinds_of_tokens_make_up_the_bill():
    # 3.60 USD an hour ÷ 3,600 s ÷ 2 req/s = 0.0005 USD a request: 1,000 + 4 × 250 = 2,000 parts.
    found = price(2.0)
    assert found.usd_per_request == pytest.approx(0.0005)
    assert found.usd_per_million_input_tokens == pytest.approx(0.25)
    assert found.usd_per_million_output_tokens == pytest.approx(1.0)
    assert found.usd_per_million_tokens == pytest.approx(0.4)
    together = 1000 * found.usd_per_million_input_tokens + 250 * found.usd_per_million_output_tokens
    assert together / 1e6 == pytest.approx(found.usd_per_request)


def test_tokens_that_take_the_same_time_cost_the_same():
    found = price(1.0, weight=1.0)
    assert found.usd_per_million_input_tokens == pytest.approx(found.usd_per_million_output_tokens)
    assert found.usd_per_million_input_tokens == pytest.approx(found.usd_per_million_tokens)


def test_nothing_served_has_no_price():
    assert math.isinf(price(0.0).usd_per_million_input_tokens)


def test_the_weight_is_the_ratio_of_times_by_hand():
    # A step of 8 sequences takes 16 ms, 2 ms a token; 100 prompt tokens take 50 ms, 0.5 ms a token.
    table = StepTimeTable(decode_s=np.full(200, 0.016), mixed_s=np.full(200, 0.05), head_s=np.zeros(200))
    assert output_weight(table, running=8, context_tokens=10, chunk_tokens=100) == pytest.approx(4.0)
