"""A calibration as a file: what is written is what a plan reads."""

import json
import math

import pytest

from planner import Scenario
from planner.errors import InvalidInput
from planner.reading.calibrating import Calibration, Factor, Fitted
from planner.reading.calibration_file import calibration_dict, calibration_text, factor_sd_of, with_calibration
from planner.scenario import SCALES, fingerprint

BASE = Scenario()
MADE = Calibration(
    scenario=BASE.replace(
        calibration_weights=1.25, calibration_tpot_error=0.07, calibration_runs=3, calibration_of=fingerprint(BASE)
    ),
    factors=(
        Factor(name="weights", label="Time of a step alone", value=1.25, low=1.2, high=1.3, is_seen=True),
        Factor(name="host", label="CPU time per step", value=1.0, low=0.5, high=2.0, is_seen=False),
    ),
    figures=(
        Fitted(run=1, figure="tpot", column="tpot_ms_mean", measured=10.0, before=8.0, after=9.9, left_out=9.5),
        Fitted(run=2, figure="tpot", column="tpot_ms_mean", measured=20.0, before=17.0, after=20.2, left_out=21.0),
    ),
)


def test_a_file_brings_its_calibration_to_a_plan_of_the_same_deployment():
    text = json.dumps(calibration_dict(MADE))
    assert with_calibration(BASE, text) == MADE.scenario
    assert with_calibration(BASE.replace(users=7), text) == MADE.scenario.replace(users=7)


def test_it_names_the_deployment_and_its_errors():
    body = calibration_dict(MADE)
    assert body["deployment"]["gpu"] == "H100 SXM"
    # medians of 20 and 15 %, of 1 and 1 %, of 5 and 5 %
    assert body["median_error"] == pytest.approx({"before": 0.175, "after": 0.01, "left_out": 0.05})


def test_for_another_deployment_it_is_an_error_that_names_what_differs():
    with pytest.raises(InvalidInput) as caught:
        with_calibration(BASE.replace(gpu="L4"), json.dumps(calibration_dict(MADE)), "--calibration")
    assert caught.value.field == "--calibration"
    assert "another GPU" in caught.value.valid


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "[" * 10_000, '{"kind": "x", "calibration": {}}', '{"H100 SXM": {"vllm": {"gemm": {}}}}'),
        '{"kind": "headroom calibration", "calibration": {"gpu": "L4"}}',
    ],
)
def test_another_file_is_refused_with_the_command_that_writes_one(text):
    with pytest.raises(InvalidInput) as caught:
        with_calibration(BASE, text)
    assert "calibrate BENCHMARK" in caught.value.valid


@pytest.mark.parametrize("value", ["high", -1.0, None, 1e9])
def test_a_factor_that_no_machine_has_is_refused(value):
    body = calibration_dict(MADE) | {"calibration": calibration_dict(MADE)["calibration"] | {"calibration_host": value}}
    with pytest.raises(InvalidInput) as caught:
        with_calibration(BASE, json.dumps(body))
    assert caught.value.field == "calibration_host"


def test_the_text_says_errors_ranges_and_what_the_runs_do_not_show():
    text = calibration_text(MADE)
    assert "before 17.5 %, after 1.0 %, left out 5.0 %" in text
    assert "1.2 to 1.3" in text
    assert next(line for line in text.splitlines() if "do not show it" in line).startswith("CPU time per step")
    assert "tpot: further runs within ± 7 %" in text and "ttft: the band stays" in text


def test_ranges_of_ninety_percent_give_standard_deviations():
    body = calibration_dict(MADE) | {
        "factors": [{"name": name, "low": 1.0, "high": math.exp(2 * 1.645 * 0.2)} for name in SCALES]
    }
    assert factor_sd_of(json.dumps(body)) == pytest.approx([0.2] * 5)
    with pytest.raises(InvalidInput):
        factor_sd_of("{}")


@pytest.mark.parametrize("high", [0.5, 1.0, -1.0, math.inf, math.nan, "wide"])
def test_a_range_that_is_none_is_refused(high):
    body = calibration_dict(MADE) | {"factors": [{"name": name, "low": 1.0, "high": high} for name in SCALES]}
    with pytest.raises(InvalidInput):
        factor_sd_of(json.dumps(body))
