"""Named scenarios to start from."""

from __future__ import annotations

from planner.errors import require_choice
from planner.scenario.scenario import Scenario

REFERENCE_CAPACITY_FRACTION = 0.7

_CHANGES: dict[str, dict[str, object]] = {
    "default": {},
    # The simulator's benchmark workload; its rate is 70 % of one replica's capacity.
    "reference": {
        "title": "Reference workload of the simulator",
        "lengths": "lognormal",
        "prompt_mean_tokens": 512.0,
        "output_mean_tokens": 128.0,
        "prompt_spread": 1.0,
        "output_spread": 1.0,
        "demand": "rate",
        "rate_rps": 30.0,
        "num_replicas": 1,
        "num_requests": 10_000,
    },
    "small-team": {
        "title": "A small team on one workstation GPU",
        "gpu": "RTX 4090",
        "weight_dtype": "fp8",
        "users": 20,
        "requests_per_user_hour": 20.0,
    },
    "long-context": {
        "title": "Long documents",
        "max_model_len": 131_072,
        "length_trace": "mooncake_conversation",
        "users": 200,
        "ttft_target_s": 5.0,
    },
    "large-moe": {
        "title": "A large mixture of experts",
        "model": "openai/gpt-oss-120b",
        "max_model_len": 32_768,
        "users": 2000,
    },
}


def preset_names() -> tuple[str, ...]:
    """Names of the presets."""
    return tuple(_CHANGES)


def preset(name: str) -> Scenario:
    """The scenario of a preset.

    Raises
    ------
    InvalidInput
        When no preset has that name.
    """
    require_choice("--preset", name, preset_names())
    return Scenario(**_CHANGES[name])  # type: ignore[arg-type]


def capacity_fraction(name: str | None) -> float | None:
    """Share of one replica's capacity that a preset offers; None when its rate is absolute."""
    return REFERENCE_CAPACITY_FRACTION if name == "reference" else None
