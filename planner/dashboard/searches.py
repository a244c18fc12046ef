"""Searches in the background: one thread each, whose work the office's processes do. No streamlit here.

A search lives as long as some page looks at it. It runs in the background: what a page waits for never waits for it,
and the newest search goes first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

from planner.answer import Change, Search, change_steps, search_steps
from planner.dashboard.tasks import most_simulated
from planner.errors import PlannerError
from planner.jobs import OfficeExecutor
from planner.scenario import Scenario

LOG = logging.getLogger("planner.dashboard")
UNSEEN_S = 15.0  # a search that no page has asked for so long ends, or for so many of its pages' intervals
UNSEEN_INTERVALS = 3
POLL_S = 1.5  # how often a page looks at its search: each look redraws its rows
LOOKS_PER_S = 2.5  # of all pages together, so that many sessions leave the server time for what they ask
VIEWER_S = 30.0  # a page that has not looked for so long is gone
MOST_KEPT = 32


@dataclass(slots=True, eq=False)
class Running:
    """A search under way or done: what it has found, the changes' outcomes, the message where it was refused."""

    scenario: Scenario
    found: Search | None = None
    changes: tuple[Change, ...] = ()
    error: Exception | None = None
    done: bool = False
    cancelled: bool = False
    unseen: bool = False  # it ended since no page looked at it
    seen_s: float = field(default_factory=time.monotonic)
    interval_s: float = POLL_S  # between the looks of its pages
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def age_s(self) -> float:
        """How long ago it began. [s]"""
        return time.monotonic() - self.begun_s

    @property
    def is_wanted(self) -> bool:
        """Whether a page still looks at it."""
        patience_s = max(UNSEEN_S, UNSEEN_INTERVALS * self.interval_s)
        return not self.cancelled and time.monotonic() - self.seen_s < patience_s


class Searches:
    """The searches of all sessions, by scenario."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._lock = threading.Lock()
        self._kept: OrderedDict[Scenario, Running] = OrderedDict()
        self._num_begun = 0
        self._viewers: dict[str, float] = {}

    def count_in(self, viewer: str) -> None:
        """Note that a page is looking, and drop those that are gone."""
        now = time.monotonic()
        with self._lock:
            self._viewers[viewer] = now
            self._viewers = {name: seen_s for name, seen_s in self._viewers.items() if now - seen_s < VIEWER_S}

    @property
    def interval_s(self) -> float:
        """How often a page may look at its search, so that all pages together leave the server time. [s]"""
        return max(POLL_S, len(self._viewers) / LOOKS_PER_S)

    def look(self, scenario: Scenario, *, start: bool, interval_s: float = POLL_S) -> Running | None:
        """The search of a scenario, started where it is not and may be; None where it is neither."""
        with self._lock:
            running = self._kept.get(scenario)
            if running is not None and running.unseen and start:
                running = None
            if running is None and start:
                running = self._kept[scenario] = Running(scenario)
                self._num_begun += 1
                threading.Thread(target=self._run, args=(running, -self._num_begun), name="search", daemon=True).start()
            if running is not None:
                running.seen_s, running.interval_s = time.monotonic(), interval_s
                self._kept.move_to_end(scenario)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)[1].cancelled = True
            return running

    def again(self, scenario: Scenario) -> None:
        """Forget a search, so that the next look starts it anew."""
        with self._lock:
            running = self._kept.pop(scenario, None)
        if running is not None:
            running.cancelled = True

    def _run(self, running: Running, rank: int) -> None:
        executor = self._executor or OfficeExecutor(rank=rank)
        try:
            self._follow(running, executor)
        except PlannerError as error:
            running.error = error
        except Exception as error:
            LOG.exception("the search failed for %s", running.scenario)
            running.error = error
        finally:
            running.done = True
            if executor is not self._executor:
                executor.shutdown(wait=False, cancel_futures=True)

    def _follow(self, running: Running, executor: Executor) -> None:
        for step in self._steps(running.scenario, executor):
            if isinstance(step, Search):
                running.found = step
            else:
                running.changes = step
            if not running.is_wanted:
                running.unseen = not running.cancelled
                return

    @staticmethod
    def _steps(scenario: Scenario, executor: Executor) -> Iterator[Search | tuple[Change, ...]]:
        # The changes first: they are few, and stand beside the answer.
        yield from change_steps(scenario, executor=executor, budget=most_simulated)
        yield from search_steps(scenario, executor=executor, budget=most_simulated)


SEARCHES = Searches()
