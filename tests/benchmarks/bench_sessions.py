"""Measure the dashboard with many sessions at once: time to a page, memory, and what is left when the tabs close.

    python tests/benchmarks/bench_sessions.py [sessions]

Each session opens a plan of its own, then changes an input, all at the same moment. The browser's tabs share the
machine with the server, and a page takes its own tab some 5 s of processor time: on few cores the figures are those of
the browser. Prints the figures; asserts nothing: they belong to a machine.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench_dashboard import CHROMIUM, FLAGS, start
from playwright.sync_api import Page, sync_playwright

SESSIONS = 20
LONGEST_S = 300.0
CLOSED_S = 15.0  # after the last tab has closed
READY = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  const value = document.querySelector('[data-testid=stMetricValue]');
  const idle = !!app && app.dataset.testScriptState === 'notRunning';
  return idle && !!value && value.innerText !== '…' ? value.innerText : '';
}"""
STEP_UP = """() => [...document.querySelectorAll('[data-testid=stNumberInput]')]
  .find(x => x.innerText.startsWith('Users')).querySelector('[data-testid=stNumberInputStepUp]').click()"""


def resident_gib(pid: int) -> float:
    """Memory of a process and all that it started; pages that they share count once. [GiB]"""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if int(folder.name) == pid or parent == pid:
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.split("Pss:")[1].split()[0])
        except (OSError, IndexError, ValueError):  # it has just ended
            continue
    return total / 2**20


def settle_all(pages: list[Page], begin: Callable[[Page], object]) -> list[float]:
    """Seconds from the first page's beginning until each page stands still again."""
    began = time.perf_counter()
    for page in pages:
        begin(page)
    open_pages, times = list(pages), []
    time.sleep(0.2)
    while open_pages and time.perf_counter() - began < LONGEST_S:
        for page in list(open_pages):
            if page.evaluate(READY):
                open_pages.remove(page)
                times.append(time.perf_counter() - began)
        time.sleep(0.05)
    return times + [LONGEST_S] * len(open_pages)


def say(what: str, times: list[float]) -> None:
    """Print median and 95th percentile."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(f"{what}: median {statistics.median(times):.2f} s, 95th percentile {p95:.2f} s of {len(times)}", flush=True)


def main() -> None:
    """Run the measurements and print them."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        process, url, _ = start()
        try:
            first = browser.new_page()
            first.goto(url)
            first.wait_for_function(READY, timeout=LONGEST_S * 1000)
            print(f"one session: {resident_gib(process.pid):.2f} GiB")
            contexts = [browser.new_context(viewport={"width": 1280, "height": 900}) for _ in range(sessions)]
            pages = [context.new_page() for context in contexts]
            numbers = {page: 400 + 37 * k for k, page in enumerate(pages)}
            opened = settle_all(pages, lambda page: page.goto(f"{url}/?v=1&u={numbers[page]}", wait_until="commit"))
            say(f"{sessions} sessions open a plan of their own", opened)
            for page in pages:
                users = page.locator("[data-testid=stNumberInput]", has_text="Users").first
                if not users.is_visible():
                    page.locator("summary", has_text=re.compile("Traffic")).click()
                users.wait_for()
            say("each changes an input", settle_all(pages, lambda page: page.evaluate(STEP_UP)))
            print(f"{sessions + 1} sessions: {resident_gib(process.pid):.2f} GiB")
            for context in contexts:
                context.close()
            time.sleep(CLOSED_S)
            print(f"{CLOSED_S:.0f} s after their tabs closed: {resident_gib(process.pid):.2f} GiB")
        finally:
            browser.close()
            process.terminate()
            process.wait(timeout=20)


if __name__ == "__main__":
    main()
