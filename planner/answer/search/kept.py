"""What searches of this process have found, so that other prices simulate nothing anew.

An entry is what a function of `bounds`, or a whole plan, gave for its arguments less the prices. So a search that finds
its entries here ends as one that finds none.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from planner.answer.planning import plan
from planner.answer.pricing import Work, bill, work_of
from planner.answer.search.bounds import Bound, Budget, within
from planner.answer.search.outcome import Candidate, candidate_of, costs_of
from planner.answer.search.space import Changes
from planner.scenario import Scenario, unsimulated_names

MOST_BOUNDS, MOST_PLANS = 40_000, 1_000  # of some kilobyte each; a search has thousands of bounds and tens of plans


@dataclass(frozen=True, slots=True)
class Finished:
    """A candidate's own plan as a row, and what its bill rests on (None: its engine does not start)."""

    row: Candidate
    work: Work | None


class Kept:
    """A bounded store; what was not asked for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._found: OrderedDict[object, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: object) -> Any:
        """What was kept under a key; None for nothing."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: object, value: object) -> None:
        """Keep a value."""
        with self._lock:
            self._found[key] = value
            while len(self._found) > self._most:
                self._found.popitem(last=False)


BOUNDS, PLANS = Kept(MOST_BOUNDS), Kept(MOST_PLANS)


class Recall:
    """Earlier findings for one search, whatever its prices."""

    def __init__(self, base: Scenario, budget: Budget) -> None:
        self._asked: tuple[object, ...] = (base.simulated, budget)
        self._open_loop = base.is_open_loop

    def bound(self, kind: str, changes: Changes, *more: object) -> Bound | None:
        """The bound of a candidate that was found before; None for none."""
        found: Bound | None = BOUNDS.get(self._key(kind, changes, more))
        return None if found is None else dataclasses.replace(found, changes=changes | found.changes)

    def keep(self, bound: Bound, kind: str, changes: Changes, *more: object) -> Bound:
        """Keep the bound that a candidate of these changes turned out to have."""
        added = {name: value for name, value in bound.changes.items() if changes.get(name, bound) != value}
        BOUNDS.put(self._key(kind, changes, more), dataclasses.replace(bound, changes=added))
        return bound

    def capacity(self, item: Bound, most: float) -> Bound | None:
        """What `by_capacity` would say of a candidate that is out beyond so many replicas; None where nobody tried.

        Clients who wait are tried at the share of just so many replicas, so theirs is another entry for each number.
        """
        found = self.bound("capacity", item.changes, item.replicas, None if self._open_loop else most)
        if found is None or not self._open_loop:
            return found
        if found.table_replicas > most:
            return dataclasses.replace(item, replicas=found.table_replicas, table_replicas=found.table_replicas)
        return None if found.level == 1 and not found.out else found

    def keep_capacity(self, bound: Bound, item: Bound, most: float) -> Bound:
        """Keep what `by_capacity` said."""
        return self.keep(bound, "capacity", item.changes, item.replicas, None if self._open_loop else most)

    def _key(self, kind: str, changes: Changes, more: tuple[object, ...]) -> object:
        simulated = ((name, value) for name, value in changes.items() if name not in unsimulated_names())
        return kind, self._asked, tuple(sorted(simulated)), more


def planned(built: Scenario, budget: Budget) -> Finished:
    """A candidate's own plan as a row, and what its bill rests on."""
    scenario, most_requests = within(built, budget)
    done = plan(scenario, most_requests=most_requests, with_policies=False)
    # The row has all requests, of which a page simulates as many as it can.
    row = dataclasses.replace(candidate_of(done), scenario=built)
    return Finished(row, work_of(done) if done.metrics is not None else None)


def recalled_plan(built: Scenario, budget: Budget) -> Candidate | None:
    """The row of a scenario that was planned before, at its own prices; None where it was not."""
    found: Finished | None = PLANS.get((built.simulated, budget))
    if found is None:
        return None
    costs = {} if found.work is None else costs_of(bill(built, built.model_shape, found.work))
    return dataclasses.replace(found.row, scenario=built, **costs)


def keep_plan(found: Finished, budget: Budget) -> Candidate:
    """Keep a finished plan for other prices."""
    PLANS.put((found.row.scenario.simulated, budget), found)
    return found.row
