"""Figures of the pages against the plan that they are made from."""

import dataclasses
import math

import pytest

from planner.answer.confidence import Band
from planner.answer.outcome import Sure
from planner.answer.planning import plan, size
from planner.dashboard import headlines
from planner.scenario import Scenario
from planner.step_time.step_table import StepWork
from planner.units import format_duration, format_usd
from tests.answer.cases import SMALL, planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}
KNOWN = Band(quantity="x", median_fraction=0.07, p90_fraction=0.2, rows=1234, basis="dense")
UNKNOWN = Band(quantity="x", median_fraction=math.nan, p90_fraction=math.nan, rows=0, basis="")


def cells(rows):
    return [[cell.replace("\u00a0", " ") for cell in row.values()] for row in rows]


def test_tiles_hold_the_plans_figures():
    done = planned()
    values = {tile.label: tile.value for tile in headlines.tiles(done)}
    assert len(values) == 5
    assert values["GPUs"] == str(done.num_gpus)
    assert values["p95 TTFT"] == format_duration(done.metrics.ttft_s.p95)
    assert values["p95 TPOT"] == format_duration(done.metrics.tpot_s.p95)
    lines = {tile.label: tile.line for tile in headlines.tiles(done)}
    assert lines["p95 TTFT"].here == (SMALL.peak_rate_rps, done.metrics.ttft_s.p95)
    assert lines["GPUs"].here == (1.0, done.num_gpus)


def test_a_tile_draws_what_it_says():
    done = planned()
    tiles = {tile.label: tile for tile in headlines.tiles(done)}
    busy = tiles["Busy at peak"]
    assert busy.share == headlines.busy_share(done)
    assert f'alt="Busy at peak: {busy.value} of' in headlines.drawing(busy)
    first = done.curve.points[0].metrics.ttft_s.p95
    assert f"<span>{format_duration(first)}</span>" in headlines.drawing(tiles["p95 TTFT"])
    assert not any(headlines.drawing(tile) for tile in headlines.tiles(planned(**REFUSED)))


def test_an_engine_that_does_not_start_has_dashes():
    assert {tile.value for tile in headlines.tiles(planned(**REFUSED))} == {"—"}
    assert math.isnan(headlines.busy_share(planned(**REFUSED)))


def test_busy_is_rate_over_throughput():
    done = planned(num_replicas=2)
    assert headlines.busy_share(done) == pytest.approx(SMALL.peak_rate_rps / (2 * done.curve.capacity_rps))


def test_bands_in_words():
    assert "7.0 %" in headlines.band_text(KNOWN)
    assert headlines.band_text(UNKNOWN) == ""
    said = headlines.band_meaning(KNOWN)
    assert "1,234" in said and "20 %" in said
    assert "%" not in headlines.band_meaning(UNKNOWN)


def test_a_band_of_left_out_errors_says_its_range_and_its_bias():
    band = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=73, basis="dense models", sources=3,
                levels=(0.05, 0.25, 0.5, 0.75, 0.95), ratios=(0.8, 1.0, 1.1, 1.2, 1.3))  # fmt: skip
    said = headlines.band_meaning(band)
    assert "half of the true figures are 1.00 to 1.20 times the prediction, 10 % above it at the median" in said
    assert "90 % are 0.80 to 1.30 times (73 published results from 3 sources; dense models)" in said


def test_the_range_of_prices_is_that_of_the_catalog():
    done = planned()
    low, high = (float(text) for text in headlines.price_band(done))
    gpu, scale = done.gpu, done.cost.usd_per_million_tokens / done.cost.usd_per_gpu_hour
    assert low == pytest.approx(gpu.usd_per_hour_low * scale, rel=0.05)
    assert high == pytest.approx(gpu.usd_per_hour_high * scale, rel=0.05)
    assert headlines.price_band(planned(usd_per_gpu_hour=2.0)) == ("", "")
    assert headlines.price_band(planned(**REFUSED)) == ("", "")


@pytest.mark.parametrize(("number", "said"), [(1, "1 GPU"), (12.0, "12 GPUs"), (math.inf, "no number of GPUs")])
def test_numbers_of_gpus(number, said):
    assert headlines.gpus(number).startswith(said)


def test_cells_are_text_and_short_ones_do_not_break():
    (row,) = headlines.table(("a", "b"), [("1 GPU", "[x](y) *z* " + "long " * 5)])
    assert row["a"] == "1\u00a0GPU"
    assert "\\[x\\]" in row["b"] and "\\*z\\*" in row["b"]
    with pytest.raises(ValueError, match="zip"):
        headlines.table(("a",), [("1", "2")])


def test_percentiles_rise_along_each_row():
    done = planned()
    rows = cells(headlines.latency_table(done))
    assert len(rows) == 4
    for row, found in zip(rows, (done.metrics.ttft_s, done.metrics.tpot_s), strict=False):
        assert row[1:] == [format_duration(x) for x in (found.mean, found.p50, found.p90, found.p95, found.p99)]


def test_policies_and_bill_are_those_of_the_plan():
    done = planned()
    assert [row[0] for row in cells(headlines.policy_table(done))] == [item.title for item in done.policies]
    bill = {row[0]: row[1] for row in cells(headlines.cost_table(done))}
    assert bill["USD per month"] == format_usd(done.cost.usd_per_month)
    assert bill["USD per GPU-hour"] == format_usd(done.cost.usd_per_gpu_hour)


def test_decode_steps_by_batch():
    done = planned()
    rows = cells(headlines.step_table(done, 1000))
    assert len(rows) == 9  # 1, 2, 4 … 256
    work = StepWork(num_decodes=1, kv_tokens=1000, window_kv_tokens=1000, num_logit_rows=1)
    assert rows[0][1] == format_duration(done.step_time.step_s(work))


@pytest.mark.parametrize(
    "changes",
    [{}, {"demand": "daily"}, {"demand": "rate"}, {"num_replicas": 2}, {"spare_replicas": 1}, {"arrivals": "closed"}],
)
def test_derivations_come_to_the_plans_figures(changes):
    done = planned(**changes)
    found = {row[0]: row for row in cells(headlines.derivations(done))}
    assert found["GPUs"][3] == str(done.num_gpus)
    product = math.prod(int(part) for part in found["GPUs"][2].split(" × "))
    assert product == done.num_gpus
    assert found["Replicas"][3] == str(done.num_replicas)
    gpus, price, hours = (float(part.replace(",", "")) for part in found["USD per month"][2].split(" × "))
    assert gpus * price * hours == pytest.approx(done.cost.usd_per_month, rel=0.01)
    assert len(headlines.derivations(planned(**REFUSED))) == 1


@pytest.mark.parametrize("changes", [{}, REFUSED, {"arrivals": "closed"}, {"arrivals": "once"}, {"num_replicas": 3}])
def test_every_page_has_a_first_sentence(changes):
    done = planned(**changes)
    said = [headlines.memory_sentence(done), headlines.cost_sentence(done)]
    if done.fits:
        assert f"{done.memory.kv_tokens:,}" in said[0]
        said += [headlines.latency_sentence(done), headlines.policy_sentence(done), headlines.percentiles(done)]
    assert all(said)
    assert "nan" not in " ".join(said)


def test_bytes_as_gib():
    assert headlines.memory_gib(1.5 * 2**30) == "1.50 GiB"


def test_the_targets_of_the_default_are_one_second_and_fifty_milliseconds():
    assert (SMALL.ttft_target_s, SMALL.tpot_target_s, SMALL.target_quantile) == (1.0, 0.05, 0.95)


@pytest.mark.parametrize(
    ("state", "shown"), [("sure", ":green-badge["), ("unsure", ":orange-badge["), ("miss", ":red-")]
)
def test_the_verdict_is_one_line_that_no_green_check_oversells(state, shown):
    found = dataclasses.replace(planned().verdict, state=state, text="meets *TTFT*; 62 % sure")
    line = headlines.verdict_line(found)
    assert line.startswith(shown)
    assert line.endswith("] Meets \\*TTFT\\*; 62\u00a0% sure.")


def test_the_gpus_that_make_it_sure_are_offered_where_there_is_doubt():
    plan = planned()
    doubtful = dataclasses.replace(
        plan.verdict, state="unsure", sure=(Sure(share=0.5, num_gpus=1), Sure(share=0.9, num_gpus=3))
    )
    assert headlines.surer_gpus(plan) is None  # sure already
    assert headlines.surer_gpus(dataclasses.replace(plan, verdict=doubtful)) == 3
    never = dataclasses.replace(doubtful, sure=(Sure(share=0.9, num_gpus=None),))
    assert headlines.surer_gpus(dataclasses.replace(plan, verdict=never)) is None


def test_the_badge_of_the_price_names_both():
    done = planned()
    own, api = 4.5 * 730, done.cost.api_usd_per_month  # one H100 SXM on demand
    badge = headlines.badges(done)[1]
    assert badge.good == (own < api)
    assert f"{own:,.0f} USD" in badge.text
    assert f"{api:,.0f} USD" in badge.text


def test_a_plan_that_does_not_start_says_what_is_missing():
    sized = size(SMALL.replace(gpu="V100 SXM2 16GB"))
    (badge,) = headlines.badges(sized)
    assert not badge.good
    assert badge.text == f"does not start: {-sized.memory.kv_pool_bytes / 2**30:.1f} GiB short"


def test_a_plan_that_misses_its_targets_is_not_praised_for_its_price():
    done = plan(Scenario(users=5000, num_replicas=1, num_requests=300), with_policies=False)
    assert done.verdict.state == "miss" and not done.cost.api_is_cheaper
    price = headlines.badges(done)[-1]
    assert not price.good and price.text.endswith("but it misses the targets")
