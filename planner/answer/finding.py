"""One piece of advice on a plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from planner.errors import require_choice

SEVERITIES = ("warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One piece of advice.

    `kind` is a stable name, `severity` is "warning" or "note", `field` the input that it is about.
    """

    kind: str
    severity: str
    text: str
    field: str = ""
    change: dict[str, object] = dataclasses.field(default_factory=dict)  # fields of the scenario that would mend it

    def __post_init__(self) -> None:
        require_choice("severity", self.severity, SEVERITIES)
