"""A call done by processes that are ended when it takes too long; the same call by two clients is done once."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from concurrent.futures import Future

from planner.errors import InvalidInput, PlannerError
from planner.jobs import OFFICE, Office, OfficeExecutor, Task, TooLong
from planner.serve.calls import Answer, Arguments
from planner.serve.tools import call, named

LONG_S = 100.0  # calls that may take longer leave one process free for the others
MOST_SEARCHES = 2  # at a time, in parts on all of the office's processes; others wait for their turn
AFTER = 1  # rank of a part: each is short, and other calls go before it
MOST_KEPT = 16  # answers of searches


class Searches:
    """Calls whose parts the office's processes do, a few at a time."""

    def __init__(self, most: int = MOST_SEARCHES) -> None:
        self._turns, self._lock = threading.BoundedSemaphore(most), threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Future[Answer]] = OrderedDict()

    def answer(self, name: str, text: str, limit_s: float, office: Office) -> Answer:
        """The answer of a call, from whoever asked first.

        Raises
        ------
        PlannerError
            What `call` refuses, or TooLong.
        RuntimeError
            When Headroom has a bug, or a process ended.
        """
        key = (name, text)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                mine = self._kept[key] = Future()
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if found is not None:
            return found.result()
        try:
            mine.set_result(self._computed(name, text, limit_s, office))
        except Exception as error:
            if isinstance(error, TooLong) or not isinstance(error, PlannerError):
                with self._lock:
                    self._kept.pop(key, None)  # another time it may be done
            known = isinstance(error, (PlannerError, RuntimeError))
            mine.set_exception(error if known else RuntimeError(f"{name} failed: {error!r}"))
        return mine.result()

    def _computed(self, name: str, text: str, limit_s: float, office: Office) -> Answer:
        with self._turns:
            executor = OfficeExecutor(office, rank=AFTER, background=False, limit_s=limit_s)
            try:
                return call(name, json.loads(text), executor)
            finally:
                executor.shutdown(cancel_futures=True)


SEARCHES = Searches()


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
    if tool.spreads:
        return SEARCHES.answer(name, text, tool.cpu_s, office)
    with office.join(Task(call_text, ((name, text),), tool.cpu_s, slow=tool.cpu_s > LONG_S)) as job:
        job.done.wait()
    answer = job.result()
    assert isinstance(answer, dict)
    return answer


def call_text(name: str, arguments: str) -> Answer:
    """`call` with its arguments as JSON text, by which two tasks can be told to be the same."""
    return call(name, json.loads(arguments))
