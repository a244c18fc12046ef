"""Searches in the background: started by a look, shared, ended when nobody looks."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from planner.answer import recommend
from planner.dashboard import searches
from planner.dashboard.searches import Searches
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=200, my_gpus="L40S")
PATIENCE_S = 240.0


@pytest.fixture
def found():
    with ThreadPoolExecutor(2) as executor:
        yield Searches(executor)


def finished(registry, scenario):
    end = time.monotonic() + PATIENCE_S
    while not (running := registry.look(scenario, start=True)).done:
        assert time.monotonic() < end
        time.sleep(0.05)
    return running


def test_a_look_starts_a_search_only_where_it_may(found):
    assert found.look(SMALL, start=False) is None
    running = finished(found, SMALL)
    assert running.error is None
    assert running.found.finished
    assert running.found.candidates == recommend(SMALL, budget=searches.most_simulated).candidates
    assert {change.label for change in running.changes} >= {"50 % more traffic"}
    assert found.look(SMALL, start=False) is running


def test_what_leaves_no_gpu_is_the_searchs_error_and_no_other(found):
    running = finished(found, SMALL.replace(my_gpus="L4", measured_only=True))
    assert running.error.field == "measured_only"
    assert running.found is None


def test_a_cancelled_search_ends_and_can_begin_again(found):
    running = found.look(SMALL, start=True)
    running.cancelled = True
    assert finished(found, SMALL) is running
    found.again(SMALL)
    assert found.look(SMALL, start=False) is None


def test_nobody_looks_nobody_searches(found, monkeypatch):
    monkeypatch.setattr(searches, "UNSEEN_S", -1.0)
    monkeypatch.setattr(searches, "UNSEEN_INTERVALS", -1.0)
    running = found.look(SMALL, start=True)
    end = time.monotonic() + PATIENCE_S
    while not running.done:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert running.unseen
    assert running.found is None or not running.found.finished
    monkeypatch.undo()
    assert found.look(SMALL, start=True) is not running


def test_many_pages_look_less_often_each(found, monkeypatch):

    def interval_with(viewer):
        found.count_in(viewer)
        return found.interval_s

    intervals = [interval_with(f"viewer {number}") for number in range(20)]
    assert intervals[0] == searches.POLL_S
    assert intervals[-1] == 20 / searches.LOOKS_PER_S
    assert interval_with("viewer 3") == intervals[-1]  # who looks again is counted once
    monkeypatch.setattr(searches, "VIEWER_S", 0.0)
    assert interval_with("the last") == searches.POLL_S
