"""What a search knows of its candidates, and the tasks of a round: each for the executor, unless it was done before."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from planner.answer.search.bounds import Bound, Budget, by_capacity, by_memory, holds_with
from planner.answer.search.kept import Recall, keep_plan, planned, recalled_plan
from planner.answer.search.outcome import MEETS, Candidate
from planner.answer.search.space import Deployment, scenario_of
from planner.catalog import Recommended
from planner.scenario import Scenario

CAPACITY_CHUNK = 4  # candidates of one task

Key = tuple[float, int]


@dataclass(slots=True, eq=False)
class Open:
    """One candidate under way. `lost` says why it is out without a plan of its own."""

    deployment: Deployment
    order: int
    bound: Bound
    row: Candidate | None = None
    lost: str = ""

    @property
    def groups(self) -> tuple[str, str]:
        """Its vendor and its evidence: the cheapest deployment of each always shows."""
        deployment = self.deployment
        return f"vendor {deployment.choice.spec.vendor}", f"evidence {deployment.evidence}"


@dataclass(slots=True, eq=False)
class State:
    """Everything that a search knows."""

    scenario: Scenario
    budget: Budget
    executor: Executor | None
    open: list[Open] = field(default_factory=list)
    best: dict[str, Key] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    planned: int = 0
    left_out: str = ""
    recommended: list[tuple[Recommended, Open]] = field(default_factory=list)
    recall: Recall = field(init=False)

    def __post_init__(self) -> None:
        self.recall = Recall(self.scenario, self.budget)

    def key(self, item: Open, replicas: int | None = None) -> Key:
        """Least cost of a candidate: USD a month, then GPUs."""
        count = item.bound.replicas if replicas is None else replicas
        count += self.scenario.spare_replicas
        gpus = count * item.deployment.gpus_per_replica
        return round(gpus * item.deployment.choice.usd_per_hour * self.scenario.hours_per_month, 6), gpus

    def ceiling(self, item: Open) -> Key:
        """What a candidate must undercut to be the cheapest of its vendor or of its evidence."""
        return max((self.best.get(group, (math.inf, 0)) for group in item.groups), default=(math.inf, 0))

    def affordable(self, item: Open) -> float:
        """Most replicas with which a candidate undercuts the best of its groups; inf where there is none yet."""
        most = self.ceiling(item)
        if math.isinf(most[0]):
            return math.inf
        per_replica = self.key(item, 1) if not self._spares else None
        low, high = 0, max(1, most[1] * 64)
        if per_replica is not None and per_replica[0] > 0:
            high = int(most[0] / per_replica[0]) + 1
        while low < high:  # the largest number whose key is below
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.key(item, middle) < most else (low, middle - 1)
        return low

    @property
    def _spares(self) -> int:
        return self.scenario.spare_replicas

    def wanted(self) -> list[Open]:
        """Candidates that may still be the cheapest of a group, the most promising first."""
        found = [item for item in self.open if self.is_open(item) and self.key(item) < self.ceiling(item)]
        return sorted(found, key=self.rank)

    def rank(self, item: Open) -> tuple[Key, int]:
        """What is tried first: the least expected cost."""
        return self.key(item, max(item.bound.replicas, item.bound.expected)), item.order

    @staticmethod
    def is_open(item: Open) -> bool:
        """Whether nothing is settled about a candidate."""
        return item.row is None and not item.bound.out and not item.lost

    def take(self, item: Open, row: Candidate) -> None:
        """Note a candidate's own plan."""
        item.row = row
        self.planned += 1
        if item.deployment.choice.most is not None and (row.num_gpus or 0) > item.deployment.choice.most:
            item.lost = "over the limit"
            return
        if self.scenario.one_node and (row.num_gpus or 0) > item.deployment.choice.spec.gpus_per_node:
            item.lost = "over the limit"
            return
        if row.status != MEETS:
            return
        for group in item.groups:
            self.best[group] = min(self.best.get(group, (math.inf, 0)), row.key)


Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Batch:
    """Tasks whose outcomes are noted in the order in which they were added; those known from before are not run."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._steps: list[tuple[Call | None, Callable[[Any], None]]] = []

    def by_memory(self, chunk: Iterable[Deployment]) -> list[Bound]:
        """Bounds by memory of a chunk of deployments, which are there once the batch has run."""
        state, bounds = self._state, list[Bound]()
        known = [(x.changes, state.recall.bound("memory", x.changes)) for x in chunk]
        new = [changes for changes, bound in known if bound is None]

        def note(found: list[Bound] | None) -> None:
            made = iter(found or ())
            bounds.extend(x or state.recall.keep(next(made), "memory", changes) for changes, x in known)

        self._steps.append(((by_memory, (state.scenario, new, state.budget)) if new else None, note))
        return bounds

    def by_capacity(self, items: Iterable[Open], most: Callable[[Open], float]) -> None:
        """Bounds by step times and capacity, where `most` are the replicas beyond which a candidate is out."""
        state, asked = self._state, [(item, most(item)) for item in items]
        recalled = [(item, limit, state.recall.capacity(item.bound, limit)) for item, limit in asked]
        new = [(item, limit) for item, limit, known in recalled if known is None]

        def note(found: None) -> None:
            for item, _, bound in recalled:
                item.bound = bound or item.bound

        self._steps.append((None, note))
        for at in range(0, len(new), CAPACITY_CHUNK):
            self._new_capacity(new[at : at + CAPACITY_CHUNK])

    def _new_capacity(self, chunk: list[tuple[Open, float]]) -> None:
        state = self._state

        def note(found: list[Bound]) -> None:
            for (item, limit), bound in zip(chunk, found, strict=True):
                item.bound = state.recall.keep_capacity(bound, item.bound, limit)

        arguments = (state.scenario, [(item.bound, limit) for item, limit in chunk], state.budget)
        self._steps.append(((by_capacity, arguments), note))

    def holds_with(self, item: Open, replicas: int) -> None:
        """Whether a candidate holds the targets with so many replicas."""
        state, asked = self._state, item.bound
        known = state.recall.bound("holds", asked.changes, asked.replicas, replicas)

        def note(found: Bound | None) -> None:
            if known is None:
                assert found is not None
                state.recall.keep(found, "holds", asked.changes, asked.replicas, replicas)
            item.bound = known or found or asked

        call = (holds_with, (state.scenario, asked, replicas, state.budget))
        self._steps.append((call if known is None else None, note))

    def plan(self, item: Open) -> None:
        """A candidate's own plan."""
        state, deployment = self._state, item.deployment
        built = scenario_of(state.scenario, item.bound.changes)
        assert built is not None
        known = recalled_plan(built, state.budget)

        def note(found: Any) -> None:
            row = known or keep_plan(found, state.budget)
            row = dataclasses.replace(row, evidence=deployment.evidence, checkpoint=deployment.checkpoint)
            state.take(item, row)

        self._steps.append(((planned, (built, state.budget)) if known is None else None, note))

    def run(self) -> None:
        """Do what is new and note all outcomes."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """`run`, with a pause after each outcome."""
        outcomes = _outcomes(self._state.executor, [call for call, _ in self._steps if call is not None])
        for call, note in self._steps:
            note(None if call is None else next(outcomes))
            yield


def _outcomes(executor: Executor | None, calls: list[Call]) -> Iterator[Any]:
    """Results of function calls in their order, computed by the executor."""
    if executor is None:
        yield from (function(*arguments) for function, arguments in calls)
        return
    futures: list[Future[Any]] = [executor.submit(function, *arguments) for function, arguments in calls]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
