"""A finding is a warning or a note."""

import pytest

from planner.answer.finding import Finding
from planner.errors import InvalidInput


def test_another_severity_is_refused():
    for severity in ("warning", "note"):
        Finding(kind="x", severity=severity, text="y")
    with pytest.raises(InvalidInput, match="severity"):
        Finding(kind="x", severity="error", text="y")
