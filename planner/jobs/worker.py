"""The process that computes for a server: a task in, its outcome out, until the server closes the pipe.

A process can be ended at any moment, which the compiled simulator in a thread of the server cannot; and it
leaves the server's own time to drawing. `office` starts it. In and out are pickles, each after its length.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from planner.errors import PlannerError
from planner.scenario import Scenario

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

LENGTH = struct.Struct("<Q")
READY, DONE, REFUSED, FAILED, GIVEN_UP = "ready", "done", "refused", "failed", "given up"
#: asks the process to give up its task and stay; None where only ending the process helps
GIVE_UP = getattr(signal, "SIGUSR1", None)
TIMER = getattr(signal, "ITIMER_PROF", None)
#: exit code of a task that used up its time: that of the timer's signal, or our own where there is no such timer
OVER_TIME = 75 if TIMER is None else -signal.SIGPROF
UNREADABLE = 74  # exit code
BACKGROUND = "--background"  # argument of a process that takes only the time that the others leave
LEAST_PRIORITY = 19  # of `nice`
SESSION_PRIORITY = Path("/proc/self/autogroup")
MOST_BYTES = 6 * 2**30  # of address space
Message = tuple[str, Any]


def send(pipe: IO[bytes], message: Any) -> None:
    """Write one message."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(body)))
    pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Any, int] | None:
    """Read one message and its size in bytes; None when the other side has gone."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = pipe.read(size)
    return (pickle.loads(body), size) if len(body) == size else None


class GivenUp(BaseException):
    """Nobody waits for the task under way any more."""


class _Desk:
    busy = False  # with a task that may be given up


def give_up(_signal: int = 0, _frame: object = None) -> None:
    """Leave the task under way, as soon as the compiled code returns; between tasks this does nothing.

    Raises
    ------
    GivenUp
        Within a task.
    """
    if _Desk.busy:
        _Desk.busy = False
        raise GivenUp


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Message:
    """Call the function: its value, the error that the user can mend, or a fault's traceback."""
    try:
        _Desk.busy = True
        value = function(*arguments)
        _Desk.busy = False
        return DONE, value
    except GivenUp:
        return GIVEN_UP, None
    except PlannerError as error:
        _Desk.busy = False
        return REFUSED, error
    except Exception:
        _Desk.busy = False
        return FAILED, traceback.format_exc()


@contextmanager
def within(cpu_s: float) -> Iterator[None]:
    """End this process when the block takes more processor time than that, on all threads together."""
    if TIMER is not None:  # the kernel's, which no computation can hold up
        signal.setitimer(TIMER, cpu_s)
        yield
        signal.setitimer(TIMER, 0)
        return
    finished = threading.Event()
    threading.Thread(target=_end_after, args=(cpu_s, finished), daemon=True).start()
    yield
    finished.set()


def _end_after(cpu_s: float, finished: threading.Event) -> None:
    limit = time.process_time() + cpu_s
    while not finished.wait(0.05):
        if time.process_time() > limit:
            os._exit(OVER_TIME)


def _read_all(pipe: IO[bytes], tasks: queue.SimpleQueue[Any]) -> None:
    try:
        while (message := receive(pipe)) is not None:
            tasks.put(message[0])
    except Exception:  # else the server would wait for the answer for ever
        traceback.print_exc()
        os._exit(UNREADABLE)
    os._exit(0)  # the server has gone: nobody is left to read an answer


def _stand_behind() -> None:
    """Take only the processor time that others leave."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, 0, LEAST_PRIORITY)
    if SESSION_PRIORITY.exists():  # Linux, where it shares the processors among sessions
        with suppress(OSError):
            SESSION_PRIORITY.write_text(str(LEAST_PRIORITY))


def main() -> None:
    """Warm up, then serve tasks."""
    if BACKGROUND in sys.argv[1:]:
        _stand_behind()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not mix with the answers
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_all, args=(os.fdopen(os.dup(sys.stdin.fileno()), "rb"), tasks), daemon=True).start()
    from planner.answer import plan  # noqa: PLC0415 - loads the simulator, within the limit and under the reader's watch

    if GIVE_UP is not None:
        signal.signal(GIVE_UP, give_up)
    plan(Scenario(num_requests=20))  # the first use compiles, or loads what was compiled
    send(out, (READY, None))
    while True:
        function, arguments, cpu_s = tasks.get()
        with within(cpu_s):
            message = outcome(function, arguments)
        send(out, message)
