"""What a plan says of its weights' kernels."""

from planner.answer.kernels import kernel_note, native_change
from planner.answer.planning import size
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=50)


def test_weight_only_is_said_with_the_nearest_native_choice():
    note = kernel_note(SMALL.replace(gpu="A100 SXM 80GB", weight_dtype="fp8"))
    assert note.severity == "warning"
    assert "weight-only" in note.text
    assert "INT8 W8A8" in note.text
    assert note.change == {"weight_dtype": "int8"}
    found = [item for item in size(SMALL.replace(gpu="A100 SXM 80GB", weight_dtype="fp8")).findings if item.change]
    assert [item.kind for item in found] == ["kernel_support"]


def test_native_and_weight_only_by_design_say_nothing():
    assert kernel_note(SMALL) is None
    assert kernel_note(SMALL.replace(weight_dtype="fp8")) is None
    assert kernel_note(SMALL.replace(gpu="A100 SXM 80GB", weight_dtype="awq_int4")) is None


def test_what_nobody_says_is_not_verified():
    assert kernel_note(SMALL.replace(gpu="RX 7900 XTX")).text.startswith("Not verified")


def test_float16_in_the_place_of_bf16_is_said():
    note = kernel_note(SMALL.replace(gpu="T4", model="Qwen/Qwen3-4B"))
    assert (note.severity, note.change) == ("note", {})
    assert "float16" in note.text


def test_the_changed_scenario_starts():
    refused = SMALL.replace(gpu="V100 SXM2 32GB", weight_dtype="bf16")
    assert not size(refused).fits
    assert native_change(refused) == {"weight_dtype": "fp16"}
    assert size(refused.replace(**native_change(refused))).fits
