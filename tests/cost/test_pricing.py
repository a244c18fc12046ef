"""What a service gets done and what that costs, by hand."""

from types import SimpleNamespace

import pytest

from planner import plan
from planner.catalog.models import get_model
from planner.cost.pricing import (
    DEFAULT_PRICE_USD_PER_HOUR,
    PricedFleet,
    Served,
    gpu_price,
    offer_of,
    price_plan,
    served,
)
from planner.dashboard.results import use_of_fleet
from planner.scenario.scenario import Scenario
from planner.service.metrics import ServingMetrics

# 4 req/s at the peak, 2 on average.
STEADY = Scenario(demand="rate", rate_rps=4.0, peak_factor=2.0)


def fleet(*, reached=4.0, lost=0.0, idle_lost=0.0, verdict="stable", capacity=10.0, replicas=1, tokens=(1200.0, 200.0)):
    metrics = SimpleNamespace(
        requests_per_s=reached,
        lost_fraction=lost,
        verdict=verdict,
        total_tokens_per_s=reached * tokens[0],
        output_tokens_per_s=reached * tokens[1],
    )
    idle = SimpleNamespace(metrics=SimpleNamespace(lost_fraction=idle_lost))
    curve = SimpleNamespace(capacity_rps=capacity, points=(idle,))
    return SimpleNamespace(metrics=metrics, curve=curve, num_serving=replicas)


def test_a_price_by_hand_stands_before_the_catalogs():
    assert gpu_price(STEADY.replace(usd_per_gpu_hour=1.25)) == (1.25, "entered by hand")
    assert gpu_price(STEADY.replace(usd_per_gpu_hour=0.0))[0] == 0.0


def test_a_published_price_is_one_offer_of_its_kind_with_provider_and_date():
    # Nine offers of H100 SXM on demand, from 2.60 to 12.29 USD: Nebius stands in the middle. Akash's is spot.
    price, source = gpu_price(STEADY)
    assert price == 4.5
    assert source.startswith("Nebius, on demand, 2026-10-24 (the middle of 9 offers; ")
    price, source = gpu_price(STEADY.replace(price_kind="spot"))
    assert (price, source[:16]) == (2.69, "RunPod, spot, 20")


def test_another_kind_stands_in_where_nobody_offers_the_gpu_so_and_that_is_said():
    # RTX 5090: two marketplace offers and none on demand. MI355X: one contract over three years.
    price, source = gpu_price(STEADY.replace(gpu="RTX 5090"))
    assert price == 0.67
    assert source.startswith("no price on demand known; Akash, spot, 2026-09-20")
    assert gpu_price(STEADY.replace(gpu="MI355X"))[0] == 2.1
    assert offer_of(STEADY.replace(gpu="MI355X")) is None
    assert offer_of(STEADY.replace(gpu="MI355X", price_kind="reserved")).kind == "reserved"


def test_owned_gpus_cost_what_the_user_enters_or_their_power():
    power = {"power_usd_per_kwh": 0.1, "pue": 1.5, "server_power_factor": 2.0}
    # An H100 SXM at 700 W: 2.1 kW with its server and the data centre.
    assert gpu_price(STEADY.replace(price_kind="owned", **power))[0] == pytest.approx(0.21)
    assert gpu_price(STEADY.replace(price_kind="owned", usd_per_gpu_hour=0.8))[0] == 0.8


def test_without_any_price_the_assumption_is_said():
    price, source = gpu_price(STEADY.replace(gpu="custom"))
    assert price == DEFAULT_PRICE_USD_PER_HOUR
    assert "assumed" in source


def test_a_stable_fleet_finishes_what_is_asked_for():
    assert served(STEADY, fleet(), 1000.0, 200.0) == Served(
        mean_rps=2.0, peak_rps=4.0, mean_prompt_tokens=1000.0, mean_output_tokens=200.0
    )


def test_a_saturated_fleet_finishes_what_it_reaches():
    # 3 of 4 req/s are finished at the peak; the mean of 2 is below that.
    done = served(STEADY, fleet(reached=3.0, verdict="saturated", capacity=3.0), 1000.0, 200.0)
    assert (done.mean_rps, done.peak_rps) == (2.0, 3.0)
    less = served(STEADY, fleet(reached=1.5, verdict="saturated", capacity=1.5), 1000.0, 200.0)
    assert (less.mean_rps, less.peak_rps) == (1.5, 1.5)


def test_clients_that_leave_at_the_peak_come_back_in_quiet_hours():
    # Half are lost at the peak, a tenth even on an idle replica; the finished ones are shorter.
    done = served(STEADY, fleet(reached=2.0, lost=0.5, idle_lost=0.1, tokens=(500.0, 100.0)), 1000.0, 200.0)
    assert done.peak_rps == pytest.approx(2.0)
    assert done.mean_rps == pytest.approx(2 * 0.9)
    assert (done.mean_prompt_tokens, done.mean_output_tokens) == (400.0, 100.0)


def test_a_closed_loop_is_taken_at_the_rate_that_it_reaches():
    done = served(STEADY.replace(arrivals="closed"), fleet(reached=7.0), 1000.0, 200.0)
    assert (done.mean_rps, done.peak_rps) == (7.0, 7.0)


KNOWN = get_model("openai/gpt-oss-120b")
#: ten trillion parameters, which no model with a hosted price has
UNKNOWN = SimpleNamespace(name="nobody/no-such-model", num_parameters=10**13, num_active_parameters=10**13)
WORK = Served(mean_rps=2.0, peak_rps=4.0, mean_prompt_tokens=1000.0, mean_output_tokens=200.0)


def test_the_bill_of_a_scenario_by_hand():
    scenario = STEADY.replace(usd_per_gpu_hour=2.0, hours_per_month=100.0)
    cost = price_plan(scenario, UNKNOWN, 3, WORK)
    assert cost.usd_per_month == 3 * 2 * 100
    assert cost.requests_per_month == 2 * 100 * 3600
    assert cost.offered_requests_per_month == 2 * 100 * 3600
    assert cost.api_usd_per_month is None


def test_an_api_price_by_hand_stands_before_the_table():
    scenario = STEADY.replace(api_usd_per_mtok_input=1.0, api_usd_per_mtok_output=10.0)
    cost = price_plan(scenario, KNOWN, 1, WORK)
    # 1,000 × 1 + 200 × 10 USD per million requests' tokens
    assert cost.api_usd_per_month == pytest.approx(cost.requests_per_month * 3000 / 1e6)
    assert cost.api_source == "entered by hand"
    half = price_plan(STEADY.replace(api_usd_per_mtok_output=10.0), KNOWN, 1, WORK)
    known = price_plan(STEADY, KNOWN, 1, WORK)
    assert half.api_usd_per_mtok_input == known.api_usd_per_mtok_input > 0


def test_a_model_without_a_price_takes_that_of_the_nearest_size():
    near = SimpleNamespace(
        name="nobody/such-model",
        num_parameters=KNOWN.num_parameters,
        num_active_parameters=KNOWN.num_active_parameters,
    )
    cost = price_plan(STEADY, near, 1, WORK)
    assert cost.api_is_estimate
    assert "estimate" in cost.api_source
    assert cost.api_usd_per_mtok_input == price_plan(STEADY, KNOWN, 1, WORK).api_usd_per_mtok_input
    by_hand = price_plan(STEADY.replace(api_usd_per_mtok_input=1.0, api_usd_per_mtok_output=1.0), near, 1, WORK)
    assert not by_hand.api_is_estimate


def test_owned_gpus_cost_what_was_paid_for_them():
    owned = STEADY.replace(
        price_kind="owned",
        gpu_purchase_usd=35_040.0,
        depreciation_years=4.0,
        power_usd_per_kwh=0.0,
        people_usd_per_month=2190.0,
    )
    # 35,040 USD over 48 months of 730 h = 1 USD an hour; people 1 USD an hour for each of three.
    cost = price_plan(owned, KNOWN, 3, WORK)
    assert cost.usd_per_gpu_hour == pytest.approx(2.0)
    assert cost.owned.people_usd == pytest.approx(1.0)
    assert price_plan(owned.replace(usd_per_gpu_hour=5.0), KNOWN, 3, WORK).usd_per_gpu_hour == 5.0
    assert gpu_price(owned)[0] == pytest.approx(1.0)


def test_the_load_is_read_off_the_curve():
    busy = ((1.0, 0.4), (3.0, 0.8))
    pair = PricedFleet(num_serving=2, at_targets_rps=6.0, capacity_rps=4.0, output_weight=1.0, busy=busy)
    assert [pair.busy_at(rate) for rate in (0.0, 1.0, 4.0, 100.0)] == pytest.approx([0.0, 0.2, 0.6, 0.8])


SMALL = Scenario(num_requests=400)


RATE = SMALL.replace(demand="rate")


def own_price(done) -> float:
    """USD per million tokens of a fleet that always makes the tokens per second of its own metrics."""
    metrics: ServingMetrics = done.metrics
    return done.cost.usd_per_hour / 3600 / metrics.total_tokens_per_s * 1e6


def test_an_overloaded_fleet_is_priced_by_what_it_finishes():
    done = plan(RATE.replace(rate_rps=2000.0, num_replicas=4))
    assert done.cost.usd_per_million_tokens == pytest.approx(own_price(done), rel=1e-9)
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=1e-9)
    # 730 hours at the rate that is finished, of those asked for: 2,000 req/s at the peak, half of it on average.
    assert done.cost.requests_per_month == pytest.approx(done.metrics.requests_per_s * 730 * 3600)
    assert done.cost.offered_requests_per_month == pytest.approx(1000 * 730 * 3600)
    assert "unserved" in {finding.kind for finding in done.findings}
    used = use_of_fleet(done)
    assert used.capacity_tokens_per_s * used.mean_fraction == pytest.approx(done.metrics.total_tokens_per_s)


def test_a_peak_beyond_the_fleet_leaves_the_month_alone_when_the_mean_is_not():
    # Full throughput lies between the mean and the peak: the month is served, the peak is not.
    top = plan(RATE.replace(rate_rps=5.0)).curve.capacity_rps
    done = plan(RATE.replace(rate_rps=2.0 * top, peak_factor=8.0, num_replicas=1))
    assert done.cost.requests_per_month == pytest.approx(2.0 * top / 8 * 730 * 3600, rel=0.01)
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=1e-9)


def test_a_stable_plan_is_priced_by_the_rate_that_is_asked_for():
    done = plan(SMALL)
    tokens = SMALL.mean_rate_rps * 730 * 3600 * (done.mean_prompt_tokens + done.mean_output_tokens)
    assert done.cost.usd_per_million_tokens == pytest.approx(done.cost.usd_per_month / tokens * 1e6, rel=0.01)
    assert "unserved" not in {finding.kind for finding in done.findings}


def test_clients_that_leave_are_not_paid_for():
    done = plan(SMALL.replace(timeout_s=1.0, num_requests=4000))
    share = done.metrics.num_finished / done.metrics.num_requests
    peak_rps = share * SMALL.peak_rate_rps
    assert done.cost.usd_per_million_tokens_at_peak == pytest.approx(own_price(done), rel=0.05)
    assert done.cost.requests_per_month <= peak_rps * 730 * 3600
    assert done.cost.tokens_per_request < done.mean_prompt_tokens + done.mean_output_tokens  # the short ones
