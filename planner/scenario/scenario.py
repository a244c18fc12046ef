"""The Scenario: everything that a user can set, in one frozen value object.

Every page, the command line and the library start from a Scenario. `fields` and the modules that it builds on declare
its inputs once, for the link, the form and the error messages; `derived` holds the model, GPU, engine and traffic that
they describe; `checks` rejects inputs that do not work together.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from planner.scenario.advanced import ROUTERS as ROUTERS
from planner.scenario.checks import check_names, check_together
from planner.scenario.derived import DerivedInputs
from planner.scenario.fields import PLAN_FREE_GROUPS
from planner.scenario.settings import MAX_CONFIG_TEXT as MAX_CONFIG_TEXT
from planner.scenario.settings import check_setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(DerivedInputs):
    """All inputs of a plan. Construction validates each field and the combination.

    Raises
    ------
    InvalidInput
        Names the field, the value and what would be valid.
    """

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not item.default:  # a search makes thousands of scenarios, nearly all fields at their default
                check_setting(item, value)
        check_names(self)
        check_together(self)

    def without(self, *groups: str) -> Scenario:
        """The Scenario with the default in every field of these groups, and without its name."""
        fields = [item for item in dataclasses.fields(self) if item.metadata["group"] in groups or item.name == "title"]
        return self.replace(**{item.name: item.default for item in fields})

    @property
    def simulated(self) -> Scenario:
        """The Scenario less what no simulation depends on: prices, time, what a search may choose from, its name."""
        return self.without(*PLAN_FREE_GROUPS)

    def replace(self, **changes: Any) -> Scenario:
        """A Scenario that differs in the named fields, validated again."""
        return dataclasses.replace(self, **changes)
