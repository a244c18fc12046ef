"""The errors that a user can cause.

PlannerError
├── InvalidInput   one field holds a value that cannot be used
└── Infeasible     every field is fine, yet no plan exists; says what would help

Anything else that is raised is a fault of the package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class PlannerError(ValueError):
    """Base of the errors that a user can cause and mend."""


class InvalidInput(PlannerError):
    """A field holds a value that cannot be used.

    Parameters
    ----------
    field : str
        Name of the field, as in the value object.
    value : object
        What was given.
    valid : str
        What would be accepted, in words.
    """

    def __init__(self, field: str, value: Any, valid: str) -> None:
        self.field = field
        self.value = value
        self.valid = valid
        super().__init__(field, value, valid)

    def __str__(self) -> str:
        shown = repr(self.value)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        return f"{self.field} = {shown} is not valid: expected {self.valid}."


class Infeasible(PlannerError):
    """Every input is valid, yet the plan cannot exist.

    Parameters
    ----------
    reason : str
        What stands in the way, with figures.
    remedies : iterable of str
        The smallest changes that would help, most likely first.
    """

    def __init__(self, reason: str, remedies: Iterable[str] = ()) -> None:
        self.reason = reason
        self.remedies = tuple(remedies)
        super().__init__(reason, self.remedies)

    def __str__(self) -> str:
        return self.reason + (f" {' or '.join(self.remedies)} would do." if self.remedies else "")


def require_int(field: str, value: Any, *, at_least: int = 1, at_most: int | None = None) -> None:
    """Raise InvalidInput unless `value` is a whole number within the bounds."""
    ok = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
    if not ok or (at_most is not None and value > at_most):
        bounds = f"of at least {at_least:,}" if at_most is None else f"from {at_least:,} to {at_most:,}"
        raise InvalidInput(field, value, f"a whole number {bounds}")


def require_number(
    field: str, value: Any, *, above: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Raise InvalidInput unless `value` is a finite number within the bounds."""
    # compared, not math.isfinite: a whole number may be too long for a float
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and -math.inf < value < math.inf
    if ok:
        ok = (
            (above is None or value > above)
            and (at_least is None or value >= at_least)
            and (at_most is None or value <= at_most)
        )
    if not ok:
        parts = []
        if above is not None:
            parts.append(f"above {above:,g}")
        if at_least is not None:
            parts.append(f"of at least {at_least:,g}")
        if at_most is not None:
            parts.append(f"at most {at_most:,g}")
        raise InvalidInput(field, value, "a finite number " + " and ".join(parts) if parts else "a finite number")


def require_choice(field: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise InvalidInput unless `value` is one of `choices`."""
    options = tuple(choices)
    if value not in options:
        raise InvalidInput(field, value, "one of " + ", ".join(map(str, options)))
