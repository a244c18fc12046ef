"""Named scenarios to start from."""

from __future__ import annotations

from planner.errors import require_choice
from planner.scenario.fields import fields_by_name
from planner.scenario.link import from_params
from planner.scenario.scenario import Scenario
from planner.tables import read_table

USES, PRESETS = "catalog/uses.csv", "catalog/presets.csv"
DEFAULT = "default"
REFERENCE_CAPACITY_FRACTION = 0.7

#: what a use does not name of the traffic goes back to its default
_RESET = ("shared_prefix_tokens", "num_prefix_groups", "output_limit_tokens", "max_prompt_tokens")


def uses() -> dict[str, str]:
    """The uses of a model that fill lengths, context and targets: name → title."""
    return {row["use"]: row["title"] for row in read_table(USES)}


def _scenarios() -> dict[str, str]:
    """The presets that are whole scenarios: name → title."""
    return {row["preset"]: row["title"] for row in read_table(PRESETS)}


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
    return from_params({row["field"]: row["value"] for row in read_table(USES) if row["use"] == use}, plain).scenario


def preset_names() -> tuple[str, ...]:
    """Names of the presets: whole scenarios, then uses of the default model."""
    return (DEFAULT, *_scenarios(), *uses())


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
    base = Scenario(title=_scenarios().get(name, ""))
    fields = {row["field"]: row["value"] for row in read_table(PRESETS) if row["preset"] == name}
    return from_params(fields, base).scenario


def capacity_fraction(name: str | None) -> float | None:
    """Share of one replica's capacity that a preset offers; None when its rate is absolute."""
    return REFERENCE_CAPACITY_FRACTION if name == "reference" else None
