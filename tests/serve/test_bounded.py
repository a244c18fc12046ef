import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from planner.errors import InvalidInput
from planner.jobs.office import Office, TooLong
from planner.serve import bounded
from planner.serve.bounded import call_text, perform
from planner.serve.tools import call


@pytest.fixture(scope="module")
def office():
    opened = Office(num_workers=1)
    yield opened
    opened.close()


def test_the_answer_of_a_process_is_that_of_the_call(office):
    arguments = {"link": "u=60"}
    assert perform("read_link", arguments, office) == call("read_link", arguments)
    assert call_text("read_link", '{"link": "u=60"}') == call("read_link", arguments)


def test_an_error_comes_back_whole(office):
    with pytest.raises(InvalidInput) as caught:
        perform("plan", {"scenario": {"users": 0}}, office)
    assert (caught.value.field, caught.value.value) == ("users", 0)


def test_two_equal_calls_are_computed_once(office):
    before = office.num_computed
    first = perform("list", {"what": "presets", "rows": 3}, office)
    assert perform("list", {"rows": 3, "what": "presets"}, office) == first
    assert office.num_computed == before + 1


@pytest.mark.parametrize("arguments", [{"link": {1, 2}}, {"rows": float("inf")}, {"search": "\ud800"}])
def test_what_json_cannot_carry_is_refused(arguments, office):
    with pytest.raises(InvalidInput) as caught:
        perform("list", arguments, office)
    assert caught.value.field == "arguments"


def test_a_call_that_takes_too_long_is_ended(office, monkeypatch):
    class Hurried:
        cpu_s = 0.01
        spreads = False

    monkeypatch.setattr(bounded, "named", lambda name: Hurried)
    with pytest.raises(TooLong):
        perform("fits", {"gpu": "H100 SXM"}, office)


NEW = {"scenario": {"my_gpus": "L4:1", "users": 7, "num_requests": 100}}  # what was planned before takes no time
FEW = {"scenario": {"my_gpus": "L40S:1", "users": 50, "num_requests": 100}}


def test_a_search_is_done_in_parts_and_once(monkeypatch):
    opened = Office(num_workers=2)
    monkeypatch.setattr(bounded, "SEARCHES", bounded.Searches())
    try:
        first = perform("recommend", FEW, opened)
        done = opened.num_computed
        assert done > 1
        assert first == call("recommend", FEW)
        assert perform("recommend", FEW, opened) is first
        assert opened.num_computed == done
    finally:
        opened.close()


def test_a_search_takes_no_longer_than_it_may(office):
    searches = bounded.Searches()
    with pytest.raises(TooLong):
        searches.answer("recommend", json.dumps(NEW), -1.0, office)
    with pytest.raises(InvalidInput):
        searches.answer("recommend", '{"rows": 0}', 60.0, office)


def test_a_fault_of_a_search_is_one_and_not_kept(office, monkeypatch):
    searches = bounded.Searches()
    monkeypatch.setattr(bounded, "call", lambda *_: {}["no such key"])
    with pytest.raises(RuntimeError, match="recommend"):
        searches.answer("recommend", "{}", 60.0, office)
    monkeypatch.setattr(bounded, "call", lambda *_: {"answer": 1})
    assert searches.answer("recommend", "{}", 60.0, office) == {"answer": 1}


def test_searches_wait_for_their_turn(office, monkeypatch):
    under_way, most = [], []

    def counted(name, arguments, executor):
        under_way.append(name)
        most.append(len(under_way))
        time.sleep(0.05)
        under_way.pop()
        return arguments

    monkeypatch.setattr(bounded, "call", counted)
    searches = bounded.Searches(most=2)
    with ThreadPoolExecutor(6) as clients:
        texts = [json.dumps({"rows": number}) for number in range(6)]
        answers = list(clients.map(lambda text: searches.answer("recommend", text, 60.0, office), texts))
    assert answers == [{"rows": number} for number in range(6)]
    assert max(most) == 2
