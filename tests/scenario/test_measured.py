"""A calibration is a handful of numbers in the scenario, for the deployment that it was measured on."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.scales import AS_PREDICTED, StepScales
from planner.scenario import Scenario, fingerprint, from_query, to_query
from planner.scenario.measured import ERRORS, SCALES, Measurements

BASE = Scenario(gpu="L4")
CALIBRATED = BASE.replace(
    calibration_weights=1.1,
    calibration_prefill=0.8,
    calibration_runs=3,
    calibration_tpot_error=0.06,
    calibration_of=fingerprint(BASE),
)


def test_its_factors_and_errors_apply_to_its_deployment():
    assert CALIBRATED.is_calibrated
    assert CALIBRATED.step_scales == StepScales(weights=1.1, prefill=0.8)
    assert CALIBRATED.calibrated_errors == {"tpot": 0.06}
    assert CALIBRATED.replace(users=9, max_num_seqs=16).step_scales == CALIBRATED.step_scales


@pytest.mark.parametrize(
    ("change", "part"),
    [({"gpu": "A10G"}, "GPU"), ({"tensor_parallel_size": 2}, "split"), ({"engine": "sglang"}, "engine")],
)
def test_on_another_deployment_nothing_of_it_applies(change, part):
    other = CALIBRATED.replace(**change)
    assert other.not_calibrated_for == (part,)
    assert other.step_scales == AS_PREDICTED
    assert other.calibrated_errors == {}


def test_without_runs_no_factor_applies():
    assert CALIBRATED.replace(calibration_runs=0).step_scales == AS_PREDICTED
    assert BASE.not_calibrated_for == ()


@pytest.mark.parametrize("change", [{"users": 900}, {"arrivals": "closed"}, {"shared_prefix_tokens": 512}])
def test_under_another_load_it_applies_and_is_known_to_be_of_another(change):
    here = CALIBRATED.replace(calibration_load=BASE.load.text)
    assert not here.is_calibrated_for_other_load
    other = here.replace(**change)
    assert other.is_calibrated_for_other_load
    assert other.step_scales == here.step_scales
    assert not CALIBRATED.replace(**change).is_calibrated_for_other_load  # of an older link, which does not say


def test_a_link_of_the_time_when_the_load_was_a_digest_is_of_the_same_load():
    # sha256 of {"arrivals": …, "figures": [… to three digits]}, its first four digits
    assert CALIBRATED.replace(calibration_load=BASE.load.digest).is_calibrated_for_other_load is False
    assert CALIBRATED.replace(calibration_load="0123").is_calibrated_for_other_load


def test_the_same_load_in_other_terms_is_the_same():
    rate = BASE.users * BASE.requests_per_user_hour * BASE.peak_factor / 3600
    assert BASE.replace(demand="rate", rate_rps=rate).load == BASE.load
    assert BASE.replace(max_num_seqs=16, usd_per_gpu_hour=1.0).load == BASE.load


def test_a_link_carries_it():
    assert from_query(to_query(CALIBRATED)).scenario == CALIBRATED
    assert "kw=1.1" in to_query(CALIBRATED)
    assert "&k" not in to_query(BASE)


@pytest.mark.parametrize("field", SCALES.values())
@pytest.mark.parametrize("value", [0.0, -1.0, 21.0])
def test_a_factor_has_bounds(field, value):
    with pytest.raises(InvalidInput) as caught:
        BASE.replace(**{field: value})
    assert caught.value.field == field


def test_every_factor_and_error_is_a_field():
    assert set(SCALES.values()) | set(ERRORS.values()) < set(Measurements.__dataclass_fields__)
