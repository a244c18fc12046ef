"""Other prices on finished candidates: the same rows as a search from nothing, and nothing simulated."""

import dataclasses

import pytest

from planner.answer.search import kept
from planner.answer.search.kept import Kept
from planner.answer.search.recommend import recommend
from planner.scenario.scenario import Scenario
from planner.simulation import machine
from tests.answer.cases import all_changes, forget

from .spaces import FEW, few_requests

SMALL = Scenario(num_requests=FEW, users=1500, kv_cache_dtype="fp8")
PRICES = [
    {"usd_per_gpu_hour": 1.25},
    {"price_kind": "spot"},
    {"api_usd_per_mtok_input": 0.01, "api_usd_per_mtok_output": 0.01, "title": "with an API"},
    {"hours_per_month": 200.0},
]


def searched(scenario, gpus=("H100 SXM",)):
    return recommend(scenario, gpus=gpus, weight_dtypes=("auto",), budget=few_requests)


def told(search):
    """All that a search says, but for its time."""
    return dataclasses.replace(search, wall_s=0.0)


def refuse(*_args, **_more):
    raise AssertionError("a simulation ran")


@pytest.mark.parametrize("arrivals", ["poisson", "closed"])
def test_other_prices_simulate_nothing_and_find_what_a_fresh_search_finds(arrivals, monkeypatch):
    asked = SMALL.replace(arrivals=arrivals, concurrent_users=60)
    forget(monkeypatch)
    first = searched(asked)
    with monkeypatch.context() as patched:
        patched.setattr(machine.kernel, "advance", refuse)
        again = [searched(asked.replace(**changes)) for changes in PRICES]
        with pytest.raises(AssertionError):
            searched(asked.replace(users=1501, concurrent_users=61))
    for changes, search in zip(PRICES, again, strict=True):
        forget(monkeypatch)
        assert told(search) == told(searched(asked.replace(**changes)))
        assert search.best.num_gpus == first.best.num_gpus
    bills = [search.best.usd_per_month / first.best.usd_per_month for search in (again[0], again[3])]
    price = first.best.usd_per_gpu_hour
    assert bills == pytest.approx([1.25 / price, 200 / 730])
    assert "hosted API is cheaper" in again[2].best.api_note
    assert "hosted API is cheaper" not in again[0].best.api_note


def test_prices_that_turn_the_order_of_gpus_reuse_what_is_finished(monkeypatch):
    gpus = ("H100 SXM", "L40S")
    dearer = SMALL.replace(usd_per_gpu_hour=40.0)  # of the H100, which then is not the cheapest
    forget(monkeypatch)
    assert searched(SMALL, gpus).best.scenario.gpu == "H100 SXM"
    turned = searched(dearer, gpus)
    number = len(kept.BOUNDS)
    with monkeypatch.context() as patched:
        patched.setattr(machine.kernel, "advance", refuse)
        assert told(searched(dearer, gpus)) == told(turned)
    assert len(kept.BOUNDS) == number
    forget(monkeypatch)
    assert told(turned) == told(searched(dearer, gpus))
    assert turned.best.scenario.gpu == "L40S"


def test_single_changes_are_priced_anew_too(monkeypatch):
    forget(monkeypatch)
    first = all_changes(SMALL, budget=few_requests)
    with monkeypatch.context() as patched:
        patched.setattr(machine.kernel, "advance", refuse)
        again = all_changes(SMALL.replace(usd_per_gpu_hour=1.0), budget=few_requests)
    for before, after in zip(first, again, strict=True):
        assert (after.label, after.num_gpus) == (before.label, before.num_gpus)
        assert after.num_gpus is None or after.usd_per_month == pytest.approx(after.num_gpus * 730.0)


def test_what_was_not_asked_for_longest_is_forgotten_first():
    store = Kept(2)
    store.put("a", 1)
    store.put("b", 2)
    assert store.get("a") == 1
    store.put("c", 3)
    assert [store.get(key) for key in "abc"] == [1, None, 3]
    assert len(store) == 2
