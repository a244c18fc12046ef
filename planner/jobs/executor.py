"""An executor whose calls the office's processes do, so that one computation uses several."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from planner.jobs.office import OFFICE, Office, Task, TooLong

TASK_CPU_S = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A function call; each is its own, so that the office shares none of them."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def _made(call: _Call) -> Any:
    return call.function(*call.arguments)


class OfficeExecutor(Executor):
    """Runs calls in the office's processes.

    Parameters
    ----------
    office : Office
        Whose processes do the work.
    rank : int
        The calls of a lower rank go first.
    background : bool
        Whether they take only the processor time that everything else leaves.
    limit_s : float
        For all calls together, by the clock; later ones are refused.
    """

    def __init__(
        self, office: Office = OFFICE, rank: int = 0, *, background: bool = True, limit_s: float = math.inf
    ) -> None:
        self._office, self._rank, self._background = office, rank, background
        self._limit_s, self._end_s = limit_s, time.monotonic() + limit_s
        self._num_threads = office.num_background if background else office.num_workers
        self._calls: queue.SimpleQueue[tuple[Future[Any], _Call] | None] = queue.SimpleQueue()
        # Not a pool of concurrent.futures, whose threads hold up the server's end until their calls are done.
        for _ in range(self._num_threads):
            threading.Thread(target=self._work, name="search", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand a call to the office.

        Raises
        ------
        TooLong
            When the time of all calls together is over.
        """
        assert not kwargs
        if time.monotonic() > self._end_s:
            raise TooLong(f"This takes more than {self._limit_s:.0f} s.")
        future: Future[Any] = Future()
        self._calls.put((future, _Call(fn, args)))
        return future

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            task = Task(_made, ((call,),), TASK_CPU_S, rank=self._rank, background=self._background, kept=False)
            with self._office.join(task) as job:
                job.done.wait()
            if job.error is None:
                future.set_result(job.value)
            else:
                future.set_exception(job.error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads once their calls are done; those not begun can be cancelled."""
        pending = []
        while cancel_futures:
            try:
                pending.append(self._calls.get_nowait())
            except queue.Empty:
                break
        for item in pending:
            if item is not None:
                item[0].cancel()
        for _ in range(self._num_threads):
            self._calls.put(None)
