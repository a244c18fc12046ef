"""Messages between the server and the process that computes."""

import io

import pytest

from planner.errors import InvalidInput
from planner.jobs.worker import DONE, FAILED, GIVEN_UP, REFUSED, give_up, outcome, receive, send


def test_a_message_crosses_the_pipe_whole():
    pipe = io.BytesIO()
    send(pipe, ("task", {"users": 500}))
    size = len(pipe.getvalue())
    pipe.seek(0)
    message, body = receive(pipe)
    assert message == ("task", {"users": 500})
    assert body == size - 8  # after the eight bytes that tell the length


def test_a_pipe_that_ends_within_a_message_is_a_side_that_has_gone():
    pipe = io.BytesIO()
    send(pipe, "x" * 100)
    assert receive(io.BytesIO(pipe.getvalue()[:-1])) is None
    assert receive(io.BytesIO(b"")) is None


def refuse():
    raise InvalidInput("users", 0, "at least 1")


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [(sum, ((2, 3),), DONE), (refuse, (), REFUSED), (divmod, (1, 0), FAILED)],
)
def test_an_outcome_says_whether_the_user_can_mend_it(function, arguments, kind):
    assert outcome(function, arguments)[0] == kind


def test_a_task_is_given_up_within_itself_and_nothing_is_between_tasks():
    give_up()  # nothing is under way
    assert outcome(give_up, ()) == (GIVEN_UP, None)
    assert outcome(sum, ((1, 2),)) == (DONE, 3)
    give_up()
