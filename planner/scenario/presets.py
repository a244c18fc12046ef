"""Named scenarios to start from."""

from __future__ import annotations

from planner.errors import require_choice
from planner.scenario.fields import fields_by_name
from planner.scenario.link import from_params
from planner.scenario.scenario import Scenario
from planner.tables import read_table

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


#: what a use does not name of the traffic goes back to its default
_RESET = ("shared_prefix_tokens", "num_prefix_groups", "output_limit_tokens", "max_prompt_tokens")


def uses() -> dict[str, str]:
    """The uses of a model that fill lengths, context and targets: name → title (`catalog/uses.csv`)."""
    return {row["use"]: row["title"] for row in read_table("catalog/uses.csv")}


def for_use(scenario: Scenario, use: str) -> Scenario:
    """A scenario with the lengths, context and targets of a use; how much traffic there is stays.

    Parameters
    ----------
    scenario : Scenario
        Model, hardware and amount of traffic.
    use : str
        A name of `uses`.

    Returns
    -------
    Scenario
        Where the model's context is shorter than the use asks for, it stays as it was.

    Raises
    ------
    InvalidInput
        When no use has that name.
    """
    require_choice("use", use, tuple(uses()))
    fields = fields_by_name()
    plain = scenario.replace(**{name: fields[name].default for name in _RESET})
    return from_params(
        {row["field"]: row["value"] for row in read_table("catalog/uses.csv") if row["use"] == use}, plain
    ).scenario


def preset_names() -> tuple[str, ...]:
    """Names of the presets: whole scenarios, then uses of the default model."""
    return (*_CHANGES, *uses())


def preset(name: str) -> Scenario:
    """The scenario of a preset.

    Raises
    ------
    InvalidInput
        When no preset has that name.
    """
    require_choice("--preset", name, preset_names())
    if name in uses():
        return for_use(Scenario(title=uses()[name]), name)
    return Scenario(**_CHANGES[name])  # type: ignore[arg-type]


def capacity_fraction(name: str | None) -> float | None:
    """Share of one replica's capacity that a preset offers; None when its rate is absolute."""
    return REFERENCE_CAPACITY_FRACTION if name == "reference" else None
