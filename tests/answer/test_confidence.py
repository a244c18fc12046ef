import math
from types import SimpleNamespace

import pytest

from planner.answer.confidence import Band, band, bands_of, slo_probability
from planner.scenario.scenario import Scenario

TEN = Band(quantity="x", median_fraction=0.1, p90_fraction=0.3, rows=100, basis="test")


def test_half_of_the_results_lie_in_the_band():
    # a median error of 10 %: half of the true figures lie between 100 ÷ 1.1 and 100 × 1.1
    below = TEN.probability_below(100.0, 110.0)
    above = TEN.probability_below(100.0, 100.0 / 1.1)
    assert below - above == pytest.approx(0.5, abs=1e-9)


def test_a_target_at_the_prediction_is_a_coin_toss():
    assert TEN.probability_below(100.0, 100.0) == pytest.approx(0.5)
    assert TEN.probability_below(100.0, 200.0) > 0.999


def test_what_was_never_measured_is_unknown():
    unknown = band("phase_of_the_moon", is_moe=False, engine_family="vllm")
    assert math.isnan(unknown.median_fraction)
    assert math.isnan(unknown.probability_below(1.0, 2.0))
    assert unknown.rows == 0


def row(value, group, median, predicted="100", quantity="tpot_ms_mean"):
    return {"quantity": quantity, "value": value, "group": group, "median_pct": median, "p90_pct": "50",
            "predicted": predicted}  # fmt: skip


ROWS = (
    row("dense · vLLM", "engine", "5"),
    row("dense · SGLang", "engine", "9", predicted="19"),  # too few to say anything
    row("dense", "class", "7"),
    row("all", "class", "8"),
    row("all", "class", "20", quantity="kv_tokens"),
)


# The nearest class that was measured often enough: the model's kind on its engine, on any, all together.
@pytest.mark.parametrize(
    ("quantity", "is_moe", "family", "median", "basis"),
    [
        ("tpot_ms_mean", False, "vllm", 0.05, "dense · vLLM"),
        ("tpot_ms_mean", False, "sglang", 0.07, "dense"),
        ("tpot_ms_mean", False, "tgi", 0.07, "dense"),
        ("tpot_ms_mean", True, "vllm", 0.08, "all"),
        ("kv_tokens", True, "vllm", 0.2, "all"),
    ],
)
def test_the_nearest_class_counts(monkeypatch, quantity, is_moe, family, median, basis):
    monkeypatch.setattr("planner.answer.confidence.read_table", lambda _name: ROWS)
    found = band(quantity, is_moe=is_moe, engine_family=family)
    assert (found.median_fraction, found.basis, found.p90_fraction) == (pytest.approx(median), basis, 0.5)


def served(ttft, tpot, lost=0.0):
    return SimpleNamespace(ttft_s=SimpleNamespace(at=lambda _q: ttft), tpot_s=SimpleNamespace(at=lambda _q: tpot),
                           lost_fraction=lost)  # fmt: skip


def test_the_less_likely_target_decides():
    scenario = Scenario(ttft_target_s=1.0, tpot_target_s=0.05)
    bands = {"ttft": TEN, "tpot": TEN}
    assert slo_probability(scenario, bands, served(0.01, 0.05)) == pytest.approx(0.5)
    assert slo_probability(scenario, bands, served(1.0, 0.001)) == pytest.approx(0.5)
    assert slo_probability(scenario, bands, served(0.01, 0.001, lost=0.06)) == 0  # 5 of 100 may miss
    unknown = {"ttft": band("nothing", is_moe=False, engine_family="vllm")} | {"tpot": TEN}
    assert slo_probability(scenario, unknown, served(9.0, 0.05)) == pytest.approx(0.5)


def test_every_headline_figure_was_measured():
    scenario = Scenario()
    found = bands_of(scenario.model_shape, scenario.engine_settings)
    assert all(0 < item.median_fraction < 1 and item.rows >= 20 for item in found.values())
