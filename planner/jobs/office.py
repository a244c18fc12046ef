"""Work for many who ask at once: computed in a process of its own, kept, and ended when nobody waits for it.

Two sessions that ask for the same thing share one computation. Finished ones are kept up to a number of bytes
and while they are still asked for.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import PlannerError
from planner.jobs.worker import BACKGROUND, DONE, GIVE_UP, OVER_TIME, READY, REFUSED, receive, send

ROOT = Path(__file__).parents[2]
MOST_KEPT_BYTES = 128 * 2**20  # of results, as sent
LEAST_BYTES = 10_000  # of a result with its task
KEPT_S = 1800.0  # since last asked for
ABANDONED_S = 0.3  # what nobody waits for any more runs on so long: the next run of a page may ask for the same
STUBBORN_S = 5.0  # a process that has not given up its task by then is ended
NUM_WORKERS = max(2, min(4, os.cpu_count() or 2))
NUM_BACKGROUND = NUM_WORKERS  # more processes, which take only the time that the others leave
IDLE_S = 60.0  # a process of the background that has had no task so long ends
SPARE_AFTER_S = 3.0  # without a task: a spare process is then started, and not while a page is being drawn


class TooLong(PlannerError):
    """A computation that did not end within its time."""

    field = "num_requests"


@dataclass(frozen=True, slots=True)
class Task:
    """A function and its arguments; where that takes too long, the next arguments of `tries` are used.

    `cpu_s` is the processor time of one try, `rank` what goes first when several wait (0 before 1). A task
    that is `slow` leaves one worker free for the others. One in the `background` has workers of its own, which
    take only the processor time that everything else leaves; its result is not kept, nor is that of one that nobody
    else can ask for (`kept`).
    """

    function: Callable[..., Any]
    tries: tuple[tuple[Any, ...], ...]
    cpu_s: float
    rank: int = 0
    slow: bool = False
    background: bool = False
    kept: bool = True


@dataclass(slots=True, eq=False)
class Job:
    """A task under way: who waits for it, and its outcome."""

    task: Task
    waiting: int = 0
    left_s: float = 0.0
    running: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: Exception | None = None
    size_bytes: int = 0
    used_s: float = 0.0

    def result(self) -> Any:
        """The value.

        Raises
        ------
        PlannerError
            What the function refused, or TooLong.
        RuntimeError
            When the function failed, or its process ended.
        """
        if self.error is not None:
            raise self.error
        return self.value


class Office:
    """Takes tasks, has them done by its processes, at most so many at a time, and keeps the results."""

    def __init__(
        self,
        num_workers: int = NUM_WORKERS,
        most_kept_bytes: int = MOST_KEPT_BYTES,
        *,
        num_background: int = NUM_BACKGROUND,
        idle_s: float = IDLE_S,
        spare_after_s: float = SPARE_AFTER_S,
        kept_s: float = KEPT_S,
    ) -> None:
        self.num_workers, self.most_kept_bytes = num_workers, most_kept_bytes
        self.num_background, self.idle_s, self.spare_after_s = num_background, idle_s, spare_after_s
        self.kept_s = kept_s
        self.ready = False  # whether a worker has loaded the simulator
        self.num_computed = 0
        self._changed = threading.Condition()
        self._kept: OrderedDict[Task, Job] = OrderedDict()
        self._open: dict[Task, Job] = {}
        self._workers: list[_Worker] = []

    def start(self) -> None:
        """Start the first worker, which loads the simulator meanwhile."""
        with self._changed:
            self._hire()

    def close(self) -> None:
        """End all workers."""
        with self._changed:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()

    @contextmanager
    def join(self, task: Task) -> Iterator[Job]:
        """Ask for a task and wait for it within the block; leaving the block is to wait no longer."""
        with self._changed:
            job = self._kept.get(task) or self._open.get(task)
            if job is None:
                job = self._open[task] = Job(task)
                self._hire()
                self._changed.notify_all()
            elif job.done.is_set():
                self._kept.move_to_end(task)
            job.waiting += 1
            job.used_s = time.monotonic()
        try:
            yield job
        finally:
            with self._changed:
                job.waiting -= 1
                job.left_s = job.used_s = time.monotonic()
                if not job.running and not job.waiting:
                    self._open.pop(task, None)  # not begun: superseded work is never done

    @property
    def kept_bytes(self) -> int:
        """Size of the results kept."""
        with self._changed:
            return sum(job.size_bytes for job in self._kept.values())

    @property
    def num_running(self) -> int:
        """How many tasks are being computed."""
        with self._changed:
            return sum(job.running for job in self._open.values())

    def employs(self, worker: _Worker) -> bool:
        """Whether the worker has not been told to end."""
        with self._changed:
            return worker in self._workers

    def take(self, worker: _Worker) -> Job | None:
        """Give the worker its next job; None when it shall end."""
        idle_since = time.monotonic()
        with self._changed:
            while worker in self._workers:
                job = self._next(worker.background)
                if job is not None:
                    job.running = True
                    return job
                idle_s = time.monotonic() - idle_since
                if worker.background and idle_s >= self.idle_s:
                    self._workers.remove(worker)
                    return None
                if not worker.background and idle_s >= self.spare_after_s:
                    self._hire(spare=1)  # while there is time: the next who asks finds it loaded
                    self._forget()  # also while nobody asks for anything
                left_s = (self.idle_s if worker.background else self.spare_after_s) - idle_s
                self._changed.wait(left_s if left_s > 0 else self.kept_s)
        return None

    def _next(self, background: bool) -> Job | None:
        waiting = [job for job in self._open.values() if not job.running and job.task.background == background]
        slow = sum(job.running and job.task.slow for job in self._open.values())
        free = [job for job in waiting if not job.task.slow or slow < self.num_workers - 1]
        return min(free, key=lambda job: job.task.rank, default=None)

    def loaded(self) -> None:
        """A worker has loaded the simulator: others may start."""
        with self._changed:
            self.ready = True
            self._hire()

    def drop(self, job: Job) -> bool:
        """Whether the last who asked left a while ago; nobody can join the job then."""
        with self._changed:
            if job.waiting or time.monotonic() - job.left_s < ABANDONED_S:
                return False
            self._open.pop(job.task, None)
            return True

    def finish(self, job: Job) -> None:
        """Hand a result to those who wait, and keep it."""
        with self._changed:
            if self._open.get(job.task) is job:
                del self._open[job.task]
            job.running = False
            keep = job.task.kept and not job.task.background
            if keep and (job.error is None or isinstance(job.error, PlannerError)):
                self._kept[job.task] = job
                self._forget()
            self.num_computed += 1
            job.done.set()
            self._changed.notify_all()

    def _forget(self) -> None:
        stale = time.monotonic() - self.kept_s
        total = sum(job.size_bytes + LEAST_BYTES for job in self._kept.values())
        for task, job in list(self._kept.items())[:-1]:
            if job.used_s < stale or total > self.most_kept_bytes:
                total -= job.size_bytes + LEAST_BYTES
                del self._kept[task]

    def _hire(self, spare: int = 0) -> None:
        # One by one: the first may have to compile, which the next then find on disk.
        behind = sum(job.task.background for job in self._open.values())
        wanted = 1 if not self.ready else min(self.num_workers, max(1, len(self._open) - behind + spare))
        self._fill(wanted, background=False)
        if self.ready:
            self._fill(min(self.num_background, behind), background=True)

    def _fill(self, wanted: int, *, background: bool) -> None:
        for _ in range(wanted - sum(worker.background == background for worker in self._workers)):
            self._workers.append(_Worker(self, background=background))
            self._workers[-1].start()


class _Worker(threading.Thread):
    """The server's side of one process: gives it tasks, and ends it when nobody waits for the answer."""

    def __init__(self, office: Office, *, background: bool = False) -> None:
        super().__init__(name="worker", daemon=True)
        self.office, self.background = office, background
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: list[tuple[Any, int] | None] = []
        self._answered, self._loaded = threading.Event(), threading.Event()

    def run(self) -> None:
        """Work until the office closes."""
        self._load()
        while (job := self.office.take(self)) is not None:
            try:
                self._do(job)
            except Exception as error:
                job.error = RuntimeError(f"the process that computes could not be used: {error}")
                self.close()
            self.office.finish(job)
            self._load()
        self.close()

    def _load(self) -> None:
        """Have a process that has loaded the simulator; meanwhile the loaded ones take the jobs."""
        if not self.office.employs(self):
            return
        try:
            self._ensure_process()
        except OSError:  # no memory or no process left; the next job tries again, and is told if that fails too
            return
        while not self._loaded.wait(0.1):
            if self._answered.is_set():  # it ended; the same holds
                self.close()
                return

    def _do(self, job: Job) -> None:
        for arguments in job.task.tries:
            process = self._ensure_process()
            assert process.stdin is not None
            self._answered.clear()
            send(process.stdin, (job.task.function, arguments, job.task.cpu_s))
            while not self._answered.wait(0.05):
                if self._loaded.is_set() and self.office.drop(job):
                    self._stop_working(process)
                    job.error = RuntimeError("nobody waited for this any more")
                    return
            answer = self._answers.pop()
            if answer is not None:
                (kind, value), job.size_bytes = answer
                if kind == DONE:
                    job.value = value
                else:
                    job.error = value if kind == REFUSED else RuntimeError(value)
                return
            code = process.wait()
            self.close()
            if code != OVER_TIME:
                job.error = RuntimeError(f"the process that computes ended with code {code}")
                return
        job.error = TooLong(f"This takes more than {job.task.cpu_s:.0f} s of computing.")

    def _stop_working(self, process: subprocess.Popen[bytes]) -> None:
        """Have the task given up, or else the process ended: another takes seconds to load."""
        if GIVE_UP is not None:
            process.send_signal(GIVE_UP)
            if self._answered.wait(STUBBORN_S) and self._answers.pop() is not None:
                return
        self.close()

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            more = [BACKGROUND] if self.background else []
            path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
            self._process = process = subprocess.Popen(
                # -m would load the module twice
                [sys.executable, "-c", "from planner.jobs.worker import main; main()", *more],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                # Ctrl-C is for the server, which then ends the workers. The background is a session of its own, among
                # which Linux shares the processors first: only so can it stand behind the browser as well.
                start_new_session=self.background,
                process_group=None if self.background else 0,
            )
            self._answers, self._answered, self._loaded = [], threading.Event(), threading.Event()
            listen = (process, self._answers, self._answered, self._loaded)
            threading.Thread(target=self._listen, args=listen, name="answers", daemon=True).start()
        return self._process

    def _listen(
        self,
        process: subprocess.Popen[bytes],
        answers: list[tuple[Any, int] | None],
        answered: threading.Event,
        loaded: threading.Event,
    ) -> None:
        assert process.stdout is not None
        message: tuple[Any, int] | None = (None, 0)
        while message is not None:
            try:
                message = receive(process.stdout)
            except (OSError, ValueError):  # the pipe was closed from this side
                message = None
            if message is not None and message[0][0] == READY:
                loaded.set()
                self.office.loaded()
                continue
            answers.append(message)
            answered.set()

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was not yet sent
                        pipe.close()


OFFICE = Office()
atexit.register(OFFICE.close)
