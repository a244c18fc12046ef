"""What was measured on one deployment applies to no other."""

import hashlib
import json

import pytest

from planner.errors import InvalidInput
from planner.scenario import Scenario
from planner.scenario.fingerprint import MEMORY_PARTS, PARTS, Load, differing, fingerprint, load_in

BASE = Scenario()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model": "Qwen/Qwen3-32B"}, "model"),
        ({"weight_dtype": "fp8"}, "model"),
        ({"gpu": "A100 SXM 80GB"}, "GPU"),
        ({"tensor_parallel_size": 2}, "split"),
        ({"engine": "sglang"}, "engine"),
        ({"engine_version": "0.9.0"}, "engine"),
        ({"num_speculative_tokens": 2}, "engine"),
    ],
)
def test_another_deployment_is_named_by_what_differs(change, part):
    assert differing(BASE.replace(**change), fingerprint(BASE)) == (part,)


@pytest.mark.parametrize(
    "change",
    [{"users": 7}, {"num_replicas": 3}, {"ttft_target_s": 9.0}, {"max_num_seqs": 8}, {"title": "x"}, {"seed": 1}],
)
def test_traffic_targets_and_replicas_are_not_the_deployment(change):
    assert differing(BASE.replace(**change), fingerprint(BASE)) == ()


@pytest.mark.parametrize(
    ("change", "part"),
    [({"gpu_memory_utilization": 0.8}, "share of memory"), ({"max_model_len": 4096}, "limits"), ({"seed": 9}, None)],
)
def test_the_memory_of_a_start_depends_on_its_share_and_limits(change, part):
    stored = fingerprint(BASE, MEMORY_PARTS)
    assert differing(BASE.replace(**change), stored, MEMORY_PARTS) == ((part,) if part else ())


def test_hardware_entered_by_hand_counts_figure_by_figure():
    own = BASE.replace(gpu="custom", gpu_memory_gib=48.0)
    assert differing(own.replace(gpu_bandwidth_gb_s=999.0), fingerprint(own)) == ("GPU",)
    shape = BASE.replace(model="custom")
    assert differing(shape.replace(num_layers=31), fingerprint(shape)) == ("model",)
    # without it, its fields say nothing
    assert differing(BASE.replace(gpu_bandwidth_gb_s=999.0, num_layers=31), fingerprint(BASE)) == ()


@pytest.mark.parametrize("stored", ["", "zz", "1-2-3", "-" * 500])
def test_no_fingerprint_is_of_no_deployment(stored):
    assert differing(BASE, stored) == tuple(PARTS)


def test_a_fingerprint_stays_what_links_hold():
    # links carry it: another way to compute it would drop every calibration that was shared
    parts = ({}, {"gpu": "L4"}, {"tensor_parallel_size": 2}, {})
    digits = [hashlib.sha256(json.dumps(part).encode()).hexdigest()[:4] for part in parts]
    assert fingerprint(Scenario(gpu="L4", tensor_parallel_size=2)) == "-".join(digits) == "4413-f9f5-4284-4413"


@pytest.mark.parametrize("field", ["calibration_of", "printed_of"])
@pytest.mark.parametrize("text", ["https://evil.example", "00g0-0000", "123", "0000-", "ABCD"])
def test_what_is_no_fingerprint_is_refused(field, text):
    with pytest.raises(InvalidInput) as refused:
        Scenario(**{field: text})
    assert refused.value.field == field
    assert getattr(Scenario(**{field: fingerprint(Scenario())}), field) == fingerprint(Scenario())


def test_a_load_is_written_out_and_read_again():
    load = Load("poisson", 9.3333, 1020.4, 128.0, 0)
    assert load.text == "poisson_9.33_1020_128_0"
    assert load_in(load.text) == Load("poisson", 9.33, 1020.0, 128.0, 0.0)
    assert load_in(Load("closed", 1_234_567, 0.00001, 5e10, 3).text) == Load("closed", 1_230_000, 1e-5, 5e10, 3.0)
    # the same as json.dumps of its figures hashed: what links held until it was written out
    figures = {"arrivals": "poisson", "figures": ["9.33", "1.02e+03", "128", "0"]}
    assert load.digest == hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:4]


@pytest.mark.parametrize("text", ["poisson", "poisson_1_2_3", "poisson_1_2_3_x", "P_1_2_3_4", "123", "a_1_2_3_4_5"])
def test_what_is_no_load_is_refused(text):
    with pytest.raises(InvalidInput) as refused:
        Scenario(calibration_load=text)
    assert refused.value.field == "calibration_load"
