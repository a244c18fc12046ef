"""Errors that the user can cause and fix.

PlannerError
├── InvalidInput   a field has a value that cannot be used
└── Infeasible     every field is valid, but no plan exists; says what would help

Any other exception is a bug in the package.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any


class PlannerError(ValueError):
    """Base of the errors that the user can cause and fix."""


class InvalidInput(PlannerError):
    """A field has a value that cannot be used.

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
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        shown = in_digits(self.value) if is_number else repr(self.value)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        return f"{self.field} = {shown} is not valid: expected {self.valid}."


class Infeasible(PlannerError):
    """Every input is valid, but no plan exists.

    Parameters
    ----------
    reason : str
        What is in the way, with figures.
    remedies : iterable of str
        The smallest changes that would help, most likely first.
    """

    def __init__(self, reason: str, remedies: Iterable[str] = ()) -> None:
        self.reason = reason
        self.remedies = tuple(remedies)
        super().__init__(reason, self.remedies)

    def __str__(self) -> str:
        return self.reason + (f" Try {' or '.join(self.remedies)}." if self.remedies else "")


def in_digits(value: float) -> str:
    """Write a number as given: a whole one with thousands separators, 1,000,000 and not 1e+06."""
    is_whole = -1e18 < value < 1e18 and value == int(value)
    return f"{int(value):,}" if is_whole else repr(value)


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
    # compared, not math.isfinite: an int can be too large for a float
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and -math.inf < value < math.inf
    if ok:
        ok = (
            (above is None or value > above)
            and (at_least is None or value >= at_least)
            and (at_most is None or value <= at_most)
        )
    if not ok:
        if at_least is not None and at_most is not None:
            bounds = f"a number from {in_digits(at_least)} to {in_digits(at_most)}"
        else:
            rows = (("above", above), ("of at least", at_least), ("of at most", at_most))
            parts = [f"{words} {in_digits(limit)}" for words, limit in rows if limit is not None]
            bounds = f"a number {' and '.join(parts)}" if parts else "a finite number"
        raise InvalidInput(field, value, bounds)


def require_choice(field: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise InvalidInput unless `value` is one of `choices`."""
    options = tuple(choices)
    if value not in options:
        near = difflib.get_close_matches(str(value)[:100], [str(option) for option in options], n=1)
        closest = f"; the closest is {near[0]}" if near else ""
        raise InvalidInput(field, value, "one of " + ", ".join(map(str, options)) + closest)
