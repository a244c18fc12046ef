"""What undercuts the best plan, by trying each number, and tasks whose outcomes are noted in their order."""

import math

import pytest

from planner.answer.search.bounds import by_memory
from planner.answer.search.space import choices, deployments
from planner.answer.search.state import Batch, Open, State
from planner.scenario.scenario import Scenario
from tests.answer.cases import forget

from .spaces import FEW, few_requests

BASE = Scenario(num_requests=FEW, kv_cache_dtype="fp8")


def state_of(base, gpus=("H100 SXM", "L40S")):
    state = State(scenario=base, budget=few_requests, executor=None)
    found = deployments(base, choices(base, gpus)[0], ("auto",))
    for order, (item, bound) in enumerate(
        zip(found, by_memory(base, [x.changes for x in found], few_requests), strict=True)
    ):
        state.open.append(Open(deployment=item, order=order, bound=bound))
    return state


@pytest.mark.parametrize("spares", [0, 2])
@pytest.mark.parametrize("best", [(3_000.0, 2), (9_855.0, 3), (1.0, 1)])
def test_the_most_replicas_that_undercut_the_best_are_those_that_cost_less(best, spares):
    state = state_of(BASE.replace(spare_replicas=spares))
    assert all(math.isinf(state.affordable(item)) for item in state.open)
    for item in state.open:
        state.best |= dict.fromkeys(item.groups, best)
    for item in state.open:
        each = item.deployment.choice.usd_per_hour * item.deployment.gpus_per_replica * 730
        gpus = item.deployment.gpus_per_replica
        cheaper = [n for n in range(1, 200) if (round((n + spares) * each, 6), (n + spares) * gpus) < best]
        assert state.affordable(item) == (max(cheaper) if cheaper else 0)


def test_a_batch_notes_what_is_known_and_what_is_new_in_the_order_asked_for(monkeypatch):
    forget(monkeypatch)
    state = state_of(BASE)
    found = [item.deployment for item in state.open]
    fresh = by_memory(BASE, [item.changes for item in found], few_requests)
    for chunk in (found[3:6], found):  # the second knows three of them
        batch = Batch(state)
        bounds = batch.by_memory(chunk)
        batch.run()
        assert bounds == [fresh[found.index(item)] for item in chunk]
