"""Measure the dashboard in a headless browser: cold start, and a change of input to new figures and charts.

    python tests/benchmarks/bench_dashboard.py

Prints the figures beside those of a bare Streamlit page with as many figures and charts (`bare_page.py`), measured in
the same run, and the ratios. Asserts nothing: the figures belong to a machine.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, Playwright, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or "chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
CHANGES = 8
# Times in the page: from the click to the first changed figure, and to the last chart drawn anew.
WATCH = """
() => new Promise(done => {
  const read = () => [...document.querySelectorAll('[data-testid=stMetricValue]')].map(x => x.textContent).join('|');
  const before = read(), start = performance.now();
  const idle = () => document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning';
  let figures = null;
  const look = () => {
    const now = performance.now();
    if (figures === null && read() !== before) figures = now - start;
    if ((figures !== null && idle()) || now - start > 20000) done([figures, now - start]);
    else requestAnimationFrame(look);
  };
  window.__press(); look();
})
"""


def start(script: str = "app.py") -> tuple[subprocess.Popen[bytes], str, float]:
    """Start a server and wait until it is healthy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port), "--server.headless", "true"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while True:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).read()
            return process, url, began
        except OSError:
            time.sleep(0.05)


def settle(page: Page) -> None:
    """Wait until the script has run and the charts are drawn."""
    page.wait_for_selector('[data-testid="stMetricValue"]', timeout=300_000)
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=300_000)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=300_000)


def measure(playwright: Playwright, script: str) -> dict[str, float]:
    """Cold start [s], and median and worst of the changes [ms]."""
    # A user's browser is open already: it is started first, with an empty cache.
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    process, url, began = start(script)
    try:
        page.goto(url)
        page.wait_for_selector('[data-testid="stMetricValue"]', timeout=300_000)
        page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3", timeout=300_000)
        found = {"cold start, server process to first full page, s": time.perf_counter() - began}
        settle(page)
        users = page.locator("[data-testid=stNumberInput]", has_text="Users").first
        if not users.is_visible():
            page.locator("summary", has_text=re.compile("Traffic")).click()
        users.wait_for()
        page.wait_for_timeout(500)
        page.evaluate(
            "window.__press = () => [...document.querySelectorAll('[data-testid=stNumberInput]')]"
            ".find(x => x.innerText.startsWith('Users')).querySelector('[data-testid=stNumberInputStepUp]').click()"
        )
        changes = []
        for _ in range(CHANGES):
            changes.append(page.evaluate(WATCH))
            page.wait_for_timeout(700)
        for name, times in zip(
            ("change to new figures", "change to all charts"), zip(*changes, strict=True), strict=True
        ):
            known = [value for value in times if value is not None]
            found |= {f"{name}, median ms": statistics.median(known), f"{name}, worst ms": max(known)}
        return found
    finally:
        browser.close()
        process.terminate()
        process.wait(timeout=20)


def main() -> None:
    """Run the measurements and print them."""
    with sync_playwright() as playwright:
        bare = measure(playwright, "tests/benchmarks/bare_page.py")
        ours = measure(playwright, "app.py")
    for name, value in ours.items():
        print(f"{name}: {value:,.4g}; bare page {bare[name]:,.4g}; ratio {value / bare[name]:.2f}")


if __name__ == "__main__":
    main()
