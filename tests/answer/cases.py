"""Plans that several tests ask for, each made once."""

from functools import cache

import pytest

from planner.answer.outcome import Plan
from planner.answer.planning import plan
from planner.answer.search import kept
from planner.answer.search.changes import Change, change_steps
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=400)


@cache
def planned(**changes: object) -> Plan:
    """Plan the default scenario with these changes."""
    return plan(SMALL.replace(**changes))


def all_changes(scenario: Scenario, **more: object) -> tuple[Change, ...]:
    """What every change of a plan does, once all of them are planned."""
    return tuple(change_steps(scenario, **more))[-1]  # type: ignore[arg-type]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next search begin from nothing."""
    for name in ("BOUNDS", "PLANS"):
        monkeypatch.setattr(kept, name, kept.Kept(1000))
