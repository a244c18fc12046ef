"""Tiles, badges and the verdict's line against the plan that they are made from."""

import dataclasses
import math

import pytest

from planner.answer.confidence import Band
from planner.answer.outcome import Sure
from planner.answer.planning import plan, size
from planner.dashboard import tiles
from planner.scenario import Scenario
from planner.units import format_duration
from tests.answer.cases import SMALL, planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}
KNOWN = Band(quantity="x", median_fraction=0.07, p90_fraction=0.2, rows=1234, basis="dense")
UNKNOWN = Band(quantity="x", median_fraction=math.nan, p90_fraction=math.nan, rows=0, basis="")


def test_tiles_hold_the_plans_figures():
    done = planned()
    values = {tile.label: tile.value for tile in tiles.tiles(done)}
    assert len(values) == 5
    assert values["GPUs"] == str(done.num_gpus)
    assert values["p95 TTFT"] == format_duration(done.metrics.ttft_s.p95)
    assert values["p95 TPOT"] == format_duration(done.metrics.tpot_s.p95)
    lines = {tile.label: tile.line for tile in tiles.tiles(done)}
    assert lines["p95 TTFT"].here == (SMALL.peak_rate_rps, done.metrics.ttft_s.p95)
    assert lines["GPUs"].here == (1.0, done.num_gpus)


def test_a_tile_draws_what_it_says():
    done = planned()
    shown = {tile.label: tile for tile in tiles.tiles(done)}
    busy = shown["Busy at peak"]
    assert busy.share == tiles.busy_share(done)
    assert f'alt="Busy at peak: {busy.value} of' in tiles.drawing(busy)
    first = done.curve.points[0].metrics.ttft_s.p95
    assert f"<span>{format_duration(first)}</span>" in tiles.drawing(shown["p95 TTFT"])


def test_an_engine_that_does_not_start_has_no_tiles():
    assert tiles.tiles(planned(**REFUSED)) == ()
    assert math.isnan(tiles.busy_share(planned(**REFUSED)))


def test_busy_is_rate_over_throughput():
    done = planned(num_replicas=2)
    assert tiles.busy_share(done) == pytest.approx(SMALL.peak_rate_rps / (2 * done.curve.capacity_rps))


def test_bands_in_words():
    assert "7.0 %" in tiles.band_text(KNOWN)
    assert tiles.band_text(UNKNOWN) == ""
    said = tiles.band_meaning(KNOWN)
    assert "1,234" in said and "20 %" in said
    assert "%" not in tiles.band_meaning(UNKNOWN)


def test_a_band_of_left_out_errors_says_its_range_and_its_bias():
    band = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=73, basis="dense models", sources=3,
                levels=(0.05, 0.25, 0.5, 0.75, 0.95), ratios=(0.8, 1.0, 1.1, 1.2, 1.3))  # fmt: skip
    said = tiles.band_meaning(band)
    assert "half of the true figures are 1.00 to 1.20 times the prediction, 10 % above it at the median" in said
    assert "90 % are 0.80 to 1.30 times (73 published results from 3 sources; dense models)" in said


def test_the_range_of_prices_is_that_of_the_catalog():
    done = planned()
    low, high = (float(text) for text in tiles.price_band(done))
    gpu, scale = done.gpu, done.cost.usd_per_million_tokens / done.cost.usd_per_gpu_hour
    assert low == pytest.approx(gpu.usd_per_hour_low * scale, rel=0.05)
    assert high == pytest.approx(gpu.usd_per_hour_high * scale, rel=0.05)
    assert tiles.price_band(planned(usd_per_gpu_hour=2.0)) == ("", "")
    assert tiles.price_band(planned(**REFUSED)) == ("", "")


def test_the_targets_of_the_default_are_one_second_and_fifty_milliseconds():
    assert (SMALL.ttft_target_s, SMALL.tpot_target_s, SMALL.target_quantile) == (1.0, 0.05, 0.95)


@pytest.mark.parametrize(
    ("state", "shown"), [("sure", ":green-badge["), ("unsure", ":orange-badge["), ("miss", ":red-")]
)
def test_the_verdict_is_one_line_that_no_green_check_oversells(state, shown):
    found = dataclasses.replace(planned().verdict, state=state, text="meets *TTFT*; 62 % sure")
    line = tiles.verdict_line(found)
    assert line.startswith(shown)
    assert line.endswith("] Meets \\*TTFT\\*; 62\u00a0% sure.")


def test_the_gpus_that_make_it_sure_are_offered_where_there_is_doubt():
    plan = planned()
    doubtful = dataclasses.replace(
        plan.verdict, state="unsure", sure=(Sure(share=0.5, num_gpus=1), Sure(share=0.9, num_gpus=3))
    )
    assert tiles.surer_gpus(plan) is None  # sure already
    assert tiles.surer_gpus(dataclasses.replace(plan, verdict=doubtful)) == 3
    never = dataclasses.replace(doubtful, sure=(Sure(share=0.9, num_gpus=None),))
    assert tiles.surer_gpus(dataclasses.replace(plan, verdict=never)) is None


def test_the_badge_of_the_price_names_both():
    done = planned()
    own, api = 4.5 * 730, done.cost.api_usd_per_month  # one H100 SXM on demand
    badge = tiles.badges(done)[1]
    assert badge.good == (own < api)
    assert f"{own:,.0f} USD" in badge.text
    assert f"{api:,.0f} USD" in badge.text


def test_a_plan_that_does_not_start_says_what_is_missing():
    sized = size(SMALL.replace(gpu="V100 SXM2 16GB"))
    (badge,) = tiles.badges(sized)
    assert not badge.good
    assert badge.text == f"does not start: {-sized.memory.kv_pool_bytes / 2**30:.1f} GiB short"


def test_a_plan_that_misses_its_targets_is_not_praised_for_its_price():
    done = plan(Scenario(users=5000, num_replicas=1, num_requests=300), with_policies=False)
    assert done.verdict.state == "miss" and not done.cost.api_is_cheaper
    price = tiles.badges(done)[-1]
    assert not price.good and price.text.endswith("but it misses the targets")
