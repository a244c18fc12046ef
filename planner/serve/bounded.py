"""A call done by a process that is ended when it takes too long; the same call by two clients is done once."""

from __future__ import annotations

import json

from planner.errors import InvalidInput
from planner.jobs import OFFICE, Office, Task
from planner.serve.calls import Answer, Arguments
from planner.serve.tools import call, named

LONG_S = 100.0  # calls that may take longer leave one process free for the others


def perform(name: str, arguments: Arguments, office: Office = OFFICE) -> Answer:
    """Answer one call within the tool's processor time.

    Raises
    ------
    PlannerError
        What `call` refuses, or TooLong.
    RuntimeError
        When Headroom has a bug, or the process ended.
    """
    tool = named(name)
    try:
        text = json.dumps(arguments, sort_keys=True, allow_nan=False, ensure_ascii=False)
        text.encode()  # half of a surrogate pair is in no text
    except (TypeError, ValueError, RecursionError) as error:
        odd = "NaN, infinity, broken Unicode or very deep nesting"
        raise InvalidInput("arguments", odd, "plain JSON values") from error
    with office.join(Task(call_text, ((name, text),), tool.cpu_s, slow=tool.cpu_s > LONG_S)) as job:
        job.done.wait()
    answer = job.result()
    assert isinstance(answer, dict)
    return answer


def call_text(name: str, arguments: str) -> Answer:
    """`call` with its arguments as JSON text, by which two tasks can be told to be the same."""
    return call(name, json.loads(arguments))
