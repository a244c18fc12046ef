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

    monkeypatch.setattr(bounded, "named", lambda name: Hurried)
    with pytest.raises(TooLong):
        perform("fits", {"gpu": "H100 SXM"}, office)
