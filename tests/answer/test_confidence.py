import math
from types import SimpleNamespace

import pytest

from planner import Scenario
from planner.answer.confidence import (
    Band,
    bands_of,
    chance_with,
    measured_of,
    memory_band,
    slo_probability,
    speed_band,
)
from planner.scenario import fingerprint
from planner.step_time import KERNELS_MEASURED, NOTHING_MEASURED, SAME_ARCHITECTURE
from planner.tables import read_table
from tests.answer.cases import planned

TEN = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=100, basis="test")
# true figures between 80 % and 130 % of the prediction in nine of ten cases, 10 % above it at the median
SKEWED = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=100, basis="test",
              levels=(0.05, 0.25, 0.5, 0.75, 0.95), ratios=(0.8, 1.0, 1.1, 1.2, 1.3))  # fmt: skip


def test_half_of_the_results_lie_in_the_band():
    # a median error of 10 %: half of the true figures lie between 100 ÷ 1.1 and 100 × 1.1
    below = TEN.probability_below(100.0, 110.0)
    above = TEN.probability_below(100.0, 100.0 / 1.1)
    assert below - above == pytest.approx(0.5, abs=1e-9)
    assert TEN.range_of(100.0, 0.5) == pytest.approx((100 / 1.1, 110))


def test_a_target_at_the_prediction_is_a_coin_toss_without_bias():
    assert TEN.probability_below(100.0, 100.0) == pytest.approx(0.5)
    assert TEN.probability_below(100.0, 200.0) > 0.999


def test_a_band_of_quantiles_keeps_its_bias_and_its_skew():
    assert SKEWED.bias_fraction == pytest.approx(0.1)
    assert SKEWED.range_of(100.0, 0.9) == pytest.approx((80, 130))
    assert SKEWED.range_of(100.0, 0.5) == pytest.approx((100, 120))
    # 25 % of the true figures are at most the prediction, 75 % at most 1.2 times it
    assert SKEWED.probability_below(100.0, 100.0) == pytest.approx(0.25)
    assert SKEWED.probability_below(100.0, 120.0) == pytest.approx(0.75)
    assert SKEWED.probability_below(100.0, 125.0) == pytest.approx(
        0.75 + 0.2 * 0.559, abs=0.02
    )  # between the two levels
    assert 0.95 < SKEWED.probability_below(100.0, 150.0) < 1


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
def test_factor_and_probability_are_each_others_inverse(level):
    for band in (TEN, SKEWED):
        assert band.probability_below(1.0, band.factor(level)) == pytest.approx(level, abs=1e-6)


def test_what_was_never_measured_is_unknown():
    unknown = memory_band("phase_of_the_moon")
    assert not unknown.known
    assert math.isnan(unknown.factor(0.5))
    assert math.isnan(unknown.probability_below(1.0, 2.0))
    assert unknown.rows == 0


def row(kind, engine, median, evidence="measured", quantity="tpot"):
    return {"quantity": quantity, "evidence": evidence, "class": kind, "engine": engine, "median_pct": median,
            "p90_pct": "50", "rows": "100", "sources": "3", "q25": "0.9", "q50": "1", "q75": "1.2"}  # fmt: skip


ROWS = (
    row("dense", "vllm", "5"),
    row("dense", "", "7"),
    row("", "", "8"),
    row("", "", "40", evidence="none"),
    row("", "", "9", quantity="ttft"),
)


# The nearest class that was measured often enough: the model's kind on its engine, on any, all together.
@pytest.mark.parametrize(
    ("quantity", "is_moe", "family", "evidence", "median"),
    [
        ("tpot", False, "vllm", "measured", 0.05),
        ("tpot", False, "sglang", "measured", 0.07),
        ("tpot", False, "tgi", "measured", 0.08),  # of the class of other engines, which has no line
        ("tpot", True, "vllm", "measured", 0.08),
        ("tpot", False, "vllm", "none", 0.4),
        ("ttft", True, "vllm", "measured", 0.09),
    ],
)
def test_the_nearest_class_counts(monkeypatch, quantity, is_moe, family, evidence, median):
    monkeypatch.setattr("planner.answer.confidence.read_table", lambda _name: ROWS)
    found = speed_band(quantity, is_moe=is_moe, engine_family=family, evidence=evidence)
    assert (found.median_fraction, found.evidence, found.p90_fraction) == (pytest.approx(median), evidence, 0.5)
    assert found.range_of(1.0, 0.5) == pytest.approx((0.9, 1.2))
    assert not speed_band(quantity, is_moe=False, engine_family="vllm", evidence="hearsay").known


def of(gpu, quantile=0.5, weights="bf16", engine="vllm"):
    s = Scenario(model="Qwen/Qwen3-32B", gpu=gpu, tensor_parallel_size=2, engine=engine)
    return bands_of(s.model_shape, s.gpu_spec, s.engine_settings, weights, quantile)


# What the kernel tables hold: H100 SXM with vLLM in 16 bits and FP8, no INT4; nothing of AMD, Intel, Huawei or Apple.
@pytest.mark.parametrize(
    ("gpu", "weights", "evidence"),
    [
        ("H100 SXM", "bf16", KERNELS_MEASURED),
        ("H100 SXM", "fp8", KERNELS_MEASURED),
        ("H100 SXM", "awq_int4", SAME_ARCHITECTURE),
        ("H100 NVL", "bf16", SAME_ARCHITECTURE),
        ("MI325X", "bf16", NOTHING_MEASURED),
        ("MI355X", "bf16", NOTHING_MEASURED),
        ("Gaudi 3", "bf16", NOTHING_MEASURED),
    ],
)
def test_a_band_says_how_near_the_evidence_is(gpu, weights, evidence):
    assert {of(gpu, weights=weights)[key].evidence for key in ("ttft", "tpot", "throughput")} == {evidence}


@pytest.mark.parametrize("gpu", ["MI325X", "MI355X", "Gaudi 3"])
def test_bands_widen_with_distance(gpu):
    def width(band):
        return math.log(band.factor(0.95) / band.factor(0.05))

    for key in ("ttft", "tpot", "throughput"):
        assert width(of(gpu)[key]) > 1.2 * width(of("H100 SXM")[key])


def test_a_percentile_has_a_wider_band_than_the_mean():
    mean, high, highest = (of("H100 SXM", quantile)["ttft"] for quantile in (0.5, 0.95, 0.99))
    assert mean.median_fraction < high.median_fraction < highest.median_fraction
    tail = speed_band("ttft_tail", is_moe=False, engine_family="vllm", evidence=KERNELS_MEASURED)
    assert highest.ratios == pytest.approx(tail.ratios)
    # half way in the normal score from the median to the 99th percentile: the geometric mean of both bands
    middle = of("H100 SXM", 0.8776)["ttft"]  # Φ(2.3263 ÷ 2)
    assert middle.factor(0.75) == pytest.approx(math.sqrt(mean.factor(0.75) * tail.factor(0.75)), rel=1e-3)


def served(ttft, tpot, lost=0.0):
    return SimpleNamespace(ttft_s=SimpleNamespace(at=lambda _q: ttft), tpot_s=SimpleNamespace(at=lambda _q: tpot),
                           lost_fraction=lost)  # fmt: skip


def test_the_less_likely_target_decides():
    scenario = Scenario(ttft_target_s=1.0, tpot_target_s=0.05)
    bands = {"ttft": TEN, "tpot": TEN}
    assert slo_probability(scenario, bands, served(0.01, 0.05)) == pytest.approx(0.5)
    assert slo_probability(scenario, bands, served(1.0, 0.001)) == pytest.approx(0.5)
    assert slo_probability(scenario, bands, served(0.01, 0.001, lost=0.06)) == 0  # 5 of 100 may miss
    unknown = {"ttft": memory_band("nothing")} | {"tpot": TEN}
    assert slo_probability(scenario, unknown, served(9.0, 0.05)) == pytest.approx(0.5)


def curve(capacity=10.0):
    """A replica whose latencies are far below the targets until it saturates at 10 req/s."""
    points = tuple(SimpleNamespace(rate_rps=rate, metrics=served(ttft, 0.001)) for rate, ttft in
                   ((1.0, 0.001), (capacity * 0.99, 0.001), (capacity, 1e3)))  # fmt: skip
    return SimpleNamespace(points=points, capacity_rps=capacity)


def test_a_replica_near_saturation_may_be_too_slow():
    scenario = Scenario(demand="rate", rate_rps=9.9, peak_factor=1.0, ttft_target_s=1.0, tpot_target_s=0.05)
    bands = {"ttft": TEN, "tpot": TEN, "throughput": TEN}
    fast = served(0.001, 0.001)
    # one replica serves 9.9 of its 10 req/s: it keeps up unless it is slower than predicted at all
    one, two, four = (chance_with(scenario, bands, curve(), fast, 1, n) for n in (1, 2, 4))
    assert one == pytest.approx(0.5, abs=0.06)
    # two may each be twice as slow, which a band of ± 10 % makes all but impossible
    assert two > 0.999
    assert four >= two
    assert slo_probability(scenario, bands, fast, curve(), 1) == one
    assert math.isnan(chance_with(scenario.replace(arrivals="closed"), bands, curve(), fast, 1, 2))


def test_every_headline_figure_was_measured():
    scenario = Scenario()
    found = bands_of(scenario.model_shape, scenario.gpu_spec, scenario.engine_settings)
    assert all(0 < item.median_fraction < 1 and item.rows >= 20 for item in found.values())


def test_quantiles_of_the_table_ascend():
    for line in read_table("catalog/error_bands.csv"):
        ratios = [float(line[name]) for name in line if name[0] == "q" and name[1].isdigit()]
        assert ratios == sorted(ratios)
        assert len(ratios) == 11
        assert line["evidence"] in (KERNELS_MEASURED, SAME_ARCHITECTURE, NOTHING_MEASURED)


def calibrated(**errors):
    base = Scenario(num_requests=200)
    return base.replace(calibration_runs=3, calibration_of=fingerprint(base), **errors)


def speed_bands(scenario):
    return bands_of(
        scenario.model_shape,
        scenario.gpu_spec,
        scenario.engine_settings,
        scenario.weight_dtype,
        0.5,
        measured_of(scenario),
    )


def test_own_runs_narrow_the_band_to_what_they_leave():
    band = speed_bands(calibrated(calibration_tpot_error=0.05))["tpot"]
    # a standard deviation of 5 %: 90 % of a normal distribution lie within 1.645 of them
    assert band.range_of(1.0, 0.9) == pytest.approx((math.exp(-1.6449 * 0.05), math.exp(1.6449 * 0.05)), rel=1e-4)
    assert band.is_own
    assert band.behind == "your 3 measurements"


def test_a_calibration_worse_than_published_runs_widens_nothing():
    bands, published = speed_bands(calibrated(calibration_tpot_error=3.0)), speed_bands(Scenario(num_requests=200))
    assert bands == published


def test_a_tail_stays_wider_than_the_mean_that_was_measured():
    scenario = calibrated(calibration_tpot_error=0.05)
    tail = bands_of(
        scenario.model_shape, scenario.gpu_spec, scenario.engine_settings, "auto", 0.99, measured_of(scenario)
    )
    published = bands_of(scenario.model_shape, scenario.gpu_spec, scenario.engine_settings, "auto", 0.99)
    assert tail["tpot"].ratios == published["tpot"].ratios  # the runs measured no tail
    assert not tail["tpot"].is_own


def test_bursts_that_replicas_share_do_not_make_a_fleet_that_holds_with_room_look_hopeless():
    # One replica would have to bear a burst of cv 8 alone; four share it, and meet the targets with room to spare.
    done = planned(arrivals="bursty", burst_cv=8.0, users=3000)
    assert done.metrics.ttft_s.p95 < 0.9 * done.scenario.ttft_target_s
    assert done.slo_probability > 0.3
    assert done.verdict.sure[0].num_gpus is not None
