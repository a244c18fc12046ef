"""Engine settings refuse what no engine takes, by name."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.engine import MAMBA_FULL_MEMORY_RATIO, EngineSettings


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_loras": -1}, "max_loras"),
        ({"max_lora_rank": 0}, "max_lora_rank"),
        ({"kv_offload_gib": -1}, "kv_offload_gib"),
    ],
)  # fmt: skip
def test_bad_settings_name_their_field(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**settings)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(("name", "value"), [("kv_unified", "no"), ("ngram_on_gpu", "yes"), ("offline", 2)])
def test_switches_take_no_words(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("family", "pytorch"),
        ("gpu_memory_utilization", 0.0),
        ("gpu_memory_utilization", 1.01),
        ("max_num_seqs", 0),
        ("max_num_batched_tokens", 1.5),
        ("block_size", 0),
        ("num_speculative_tokens", 65),
        ("speculative_acceptance", 1.1),
        ("new_token_ratio", -0.1),
        ("patience_s", 0.0),
        ("timeout_s", -1.0),
        ("batch_timeout_s", -1.0),
        ("max_queued_requests", -1),
        ("mamba_full_memory_ratio", 0.0),
    ],
)
def test_impossible_settings_name_their_field(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_setting_may_be_left_to_the_engine() -> None:
    left = EngineSettings()
    assert (left.gpu_memory_utilization, left.max_num_seqs, left.max_num_batched_tokens) == (None, None, None)
    # SGLang server_args.py: mamba_full_memory_ratio 0.9
    assert left.mamba_full_memory_ratio == MAMBA_FULL_MEMORY_RATIO == 0.9


# Waiting and running together are limited to 128 (TGI): without a queue, 128 can run.
@pytest.mark.parametrize(
    ("slots", "together", "expected"), [(None, 128, 128), (64, 128, 64), (256, 128, 128), (256, None, 256)]
)
def test_patient_clients_leave_the_limit_on_running_ones(
    slots: int | None, together: int | None, expected: int
) -> None:
    hurried = EngineSettings(
        max_num_seqs=slots, max_concurrent_requests=together, max_queued_requests=5, patience_s=1.0, timeout_s=9.0
    )
    patient = hurried.with_patient_clients()
    assert patient.max_num_seqs == expected
    assert (patient.patience_s, patient.timeout_s) == (None, None)
    assert (patient.max_queued_requests, patient.max_concurrent_requests) == (None, None)
    assert patient.with_patient_clients() == patient
