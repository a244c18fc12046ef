"""Measure the server with many sessions: time to a page's figures, memory, and what is left when the tabs close.

    python tests/benchmarks/bench_sessions.py [sessions]

Each session speaks Streamlit's protocol as a tab would, without drawing: twenty browsers would take the same cores, and
a page takes its own some 5 s of processor time. Every session has a plan of its own; all open it at the same moment,
all change an input at the same moment, then each changes it again and again as people do, some time apart. Prints the
figures; asserts nothing: they belong to a machine.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bench_dashboard import start
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NumberInput_pb2 import NumberInput
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

SESSIONS = 20
LONGEST_S = 300.0
CHANGES, APART_S = 6, 10.0  # changes of each session, and the mean time between two
CLOSED_S = 15.0  # after the last tab has closed
LARGEST_MESSAGE_BYTES = 2**26


@dataclass
class Tab:
    """One session: what a browser's tab says to the server, and when the figures came."""

    socket: ClientConnection
    query: str
    users: NumberInput | None = None
    value: float = 0.0
    page: str = ""
    figures: float | None = None
    still: asyncio.Event = field(default_factory=asyncio.Event)
    listening: asyncio.Task[None] = field(init=False)
    polls: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listening = asyncio.create_task(self.listen())

    async def ask(self, fragment: str = "") -> None:
        """Run the script, or one fragment of it, with the number of users that the tab shows."""
        message = BackMsg()
        run = message.rerun_script
        run.query_string, run.page_script_hash, run.fragment_id = self.query, self.page, fragment
        run.is_auto_rerun = bool(fragment)
        if self.users is not None:
            state = run.widget_states.widgets.add()
            state.id, state.double_value = self.users.id, self.value
        await self.socket.send(message.SerializeToString())

    async def poll(self, fragment: str, interval_s: float) -> None:
        """Look after the search as often as the page asks for."""
        while True:
            await asyncio.sleep(interval_s)
            await self.ask(fragment)

    async def listen(self) -> None:
        """Take in what the server sends until the socket closes."""
        async for data in self.socket:
            message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.page = message.new_session.page_script_hash
                if not message.metadata.run.fragment_ids:
                    for task in self.polls.values():
                        task.cancel()
                    self.polls.clear()
            elif kind == "auto_rerun":
                asked = message.auto_rerun
                self.polls[asked.fragment_id] = asyncio.create_task(self.poll(asked.fragment_id, asked.interval))
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self.look_at(message.delta.new_element)
            elif (
                kind == "script_finished"
                and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
                and self.figures is not None
            ):
                self.still.set()

    def look_at(self, element: object) -> None:
        """Note the first figure and the field of the users."""
        kind = element.WhichOneof("type")  # type: ignore[attr-defined]
        if kind == "metric" and element.metric.body != "…":  # type: ignore[attr-defined]
            self.figures = self.figures or time.perf_counter()
        elif kind == "number_input" and element.number_input.label.startswith("Users"):  # type: ignore[attr-defined]
            self.users = element.number_input  # type: ignore[attr-defined]

    async def settle(self) -> tuple[float, float]:
        """Run the script and wait. Seconds to the first figure and to the script's end."""
        self.figures = None
        self.still.clear()
        began = time.perf_counter()
        await self.ask()
        stands_still = asyncio.create_task(self.still.wait())
        done, _ = await asyncio.wait(
            [stands_still, self.listening], timeout=LONGEST_S, return_when=asyncio.FIRST_COMPLETED
        )
        if stands_still not in done:
            raise RuntimeError(f"{self.query}: no page within {LONGEST_S:.0f} s, or the server closed the socket")
        assert self.figures is not None
        return self.figures - began, time.perf_counter() - began

    async def change(self) -> tuple[float, float]:
        """Have 37 users more, which no other session has asked for."""
        self.value += 37 * SESSIONS
        return await self.settle()

    async def go_on(self, chance: random.Random) -> list[tuple[float, float]]:
        """Change the users again and again, with pauses as people make them."""
        times = []
        for _ in range(CHANGES):
            await asyncio.sleep(chance.expovariate(1 / APART_S))
            times.append(await self.change())
        return times


def resident_gib(pid: int) -> float:
    """Memory of a process and all that it started; pages that they share count once. [GiB]"""
    parents, shares = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            shares[int(folder.name)] = int((folder / "smaps_rollup").read_text().split("Pss:")[1].split()[0])
        except (OSError, IndexError, ValueError):  # it has just ended
            continue
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(shares.get(member, 0) for member in family) / 2**20


def say(what: str, times: list[tuple[float, float]]) -> None:
    """Print median and 95th percentile of the time to the figures and to the end."""
    parts = []
    for name, values in zip(("figures", "all"), zip(*times, strict=True), strict=True):
        p50, p95 = np.quantile(values, (0.5, 0.95))
        parts.append(f"{name} median {p50:.2f} s, 95th percentile {p95:.2f} s")
    print(f"{what}: {'; '.join(parts)} (of {len(times)})", flush=True)


async def measure(url: str, pid: int, sessions: int) -> None:
    """Open the sessions, have them change, close them."""

    async def tab(number: int) -> Tab:
        socket = await connect(
            url.replace("http", "ws") + "/_stcore/stream",
            subprotocols=[Subprotocol("streamlit")],
            max_size=LARGEST_MESSAGE_BYTES,
        )
        return Tab(socket, f"v=1&u={number}", value=number)

    first = await tab(300)
    await first.settle()
    print(f"one session: {resident_gib(pid):.2f} GiB", flush=True)
    tabs = [await tab(400 + 37 * k) for k in range(sessions)]
    say(f"{sessions} sessions open a plan of their own at once", await asyncio.gather(*(x.settle() for x in tabs)))
    say("each changes an input, all at once", await asyncio.gather(*(x.change() for x in tabs)))
    runs = await asyncio.gather(*(x.go_on(random.Random(k)) for k, x in enumerate(tabs)))
    say(f"each changes an input every {APART_S:.0f} s", [times for run in runs for times in run])
    print(f"{sessions + 1} sessions: {resident_gib(pid):.2f} GiB", flush=True)
    for closing in (first, *tabs):
        for task in closing.polls.values():
            task.cancel()
        await closing.socket.close()
    await asyncio.sleep(CLOSED_S)
    print(f"{CLOSED_S:.0f} s after their tabs closed: {resident_gib(pid):.2f} GiB")


def main() -> None:
    """Run the measurements and print them."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    process, url, _ = start()
    try:
        asyncio.run(measure(url, process.pid, sessions))
    finally:
        process.terminate()
        process.wait(timeout=20)


if __name__ == "__main__":
    main()
