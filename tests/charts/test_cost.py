"""Money drawn: bills meet at the break-even, the chain ends where it ends."""

import math

import numpy as np
import pytest

from planner import charts
from planner.answer.outcome import ChainLink
from planner.charts.cost import MOST_STEPS, _staircase, api_comparison, cost_against_utilisation, gpu_chain
from planner.cost.bill import FleetUse, cost_plan
from planner.cost.break_even import OwnSteps
from planner.cost.hosted_apis import ApiPrices
from tests.charts.cases import lines_at


def priced(spare=0, each=1e6, mean=0.5):
    api = ApiPrices(usd_per_mtok_input=1.0, usd_per_mtok_output=1.0, offers=(), source="test")
    steps = OwnSteps(
        usd_per_replica_month=1460.0, requests_per_replica_month=2e6 * each / 1e6, gpus_per_replica=2,
        spare_replicas=spare, mean_over_peak=mean,
    )  # fmt: skip
    use = FleetUse(
        at_targets_rps=2.0, capacity_rps=3.0, output_weight=1.0, busy=0.5, gpu_w=0.0, power_w=0.0, steps=steps
    )
    return cost_plan(
        num_gpus=2,
        usd_per_gpu_hour=1.0,
        price_source="test",
        hours_per_month=730,
        mean_rate_rps=1.0,
        peak_rate_rps=2.0,
        mean_prompt_tokens=500,
        mean_output_tokens=500,
        api=api,
        use=use,
    )


def test_bills_meet_at_the_break_even():
    chart = charts.api_comparison(priced())
    own, hosted, here = chart.figure["data"]
    # 1,460 USD a month ÷ 0.001 USD per request = 1.46 million requests
    even = np.interp(1_460_000, hosted["x"], hosted["y"])
    assert even == pytest.approx(own["y"][0])
    assert own["x"][:4] == [0.0, 2e6, 2e6, 4e6]
    assert own["y"][:4] == [1460.0, 1460.0, 2920.0, 2920.0]
    assert here["y"] == [1460.0]


def test_an_api_that_is_always_cheaper_is_said():
    # 1,460 USD buy a million requests, which the API sells for 1,000.
    cost = priced(each=0.5e6)
    assert charts.api_comparison(cost).title.endswith("the API stays cheaper at every volume")
    # Full around the clock a replica serves 2 million, which the API sells for 2,000: own GPUs pay above 73 % use.
    assert "above 74 % use" in charts.break_even_map(cost).title


def test_the_map_holds_the_plan_and_the_line_of_equal_bills():
    cost = priced()
    heat, line, here = charts.break_even_map(cost).figure["data"]
    assert (heat["text"][-1][0], np.shape(heat["text"])) == ("100\u00a0%", np.shape(heat["z"]))
    # A mean of 1 req/s where 2 hold the targets; at this volume 1,460 USD against 2,628.
    assert here["y"] == [0.5]
    nearest = np.abs(heat["x"] - 2_628_000).argmin(), np.abs(heat["y"] - 0.5).argmin()
    assert heat["customdata"][nearest[1], nearest[0]] == pytest.approx(2 * 1460 / heat["x"][nearest[0]] * 1000)
    assert (line["contours"]["start"], line["contours"]["end"]) == (0, 0)


def test_chain_without_an_end_is_drawn():
    links = (ChainLink(reason="Weights", gpus=2.0, detail=""), ChainLink(reason="Targets", gpus=math.inf, detail=""))
    assert charts.gpu_chain(links, 2).figure["data"][0]["text"] == ["2", "∞"]


def test_the_price_falls_with_use():
    # 36 USD an hour ÷ 1,000 tokens/s = 10 USD per million tokens at full use, 20 at half.
    chart = cost_against_utilisation(36.0, 1000.0, 0.5, 15.0)
    line = chart.figure["data"][0]
    assert np.interp(0.5, line["x"], line["y"]) == pytest.approx(20.0, rel=0.01)
    assert line["y"][-1] == pytest.approx(10.0)
    assert all(np.diff(line["y"]) < 0)
    assert lines_at(chart, "x") == [0.5]
    assert lines_at(chart, "y") == [15.0]
    assert "2×" in chart.title
    assert lines_at(cost_against_utilisation(36.0, 1000.0, 0.5, None), "y") == []


def test_without_an_api_price_nothing_is_compared():
    cost = cost_plan(num_gpus=1, usd_per_gpu_hour=1.0, price_source="test", hours_per_month=730, mean_rate_rps=1.0,
                     peak_rate_rps=1.0, mean_prompt_tokens=100, mean_output_tokens=100)  # fmt: skip
    assert api_comparison(cost) is None


@pytest.mark.parametrize(
    ("gpus", "have", "said"),
    [
        ((1.0, 3.0), 3, "set by R1"),
        ((2.0, 2.0), 2, "every count"),
        ((1.0, math.inf), 2, "no number"),
        ((1.0, 5.0), 2, "5"),
    ],
)
def test_the_chain_says_what_decides(gpus, have, said):
    links = tuple(ChainLink(reason=f"R{i}", gpus=number, detail="") for i, number in enumerate(gpus))
    chart = gpu_chain(links, have)
    assert said in chart.title
    assert lines_at(chart, "x") == [have]
    drawn = chart.figure["data"][0]["x"]
    assert all(math.isfinite(value) for value in drawn)
    assert len(drawn) == 2


def test_own_gpus_are_drawn_in_the_steps_of_both_kinds():
    # One prefill and two decode replicas serve 300 requests together: 2 replicas to 150, 3 to 300, 5 to 450, 6 to 600.
    own = OwnSteps(usd_per_replica_month=10.0, requests_per_replica_month=100.0, kinds=(1, 2))
    x, y = _staircase(own, 500.0)
    assert x == [0.0, 150.0, 150.0, 300.0, 300.0, 450.0, 450.0, 500.0]
    assert y == [20.0, 20.0, 30.0, 30.0, 50.0, 50.0, 60.0, 60.0]


def test_a_stair_of_a_million_steps_is_thinned():
    x, y = _staircase(OwnSteps(usd_per_replica_month=1.0, requests_per_replica_month=1.0), 1e6)
    assert len(x) <= 2 * MOST_STEPS
    assert (x[-1], y[-1]) == (1e6, 1e6)
