"""Plans that several tests ask for, each made once."""

from functools import cache

from planner.answer.outcome import Plan
from planner.answer.planning import plan
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=400)


@cache
def planned(**changes: object) -> Plan:
    """Plan the default scenario with these changes."""
    return plan(SMALL.replace(**changes))
