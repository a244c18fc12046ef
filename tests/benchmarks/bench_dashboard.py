"""Measure the dashboard in a headless browser: cold start, and a change of input to new figures and charts.

    python tests/benchmarks/bench_dashboard.py

Prints the figures; asserts nothing, since they belong to a machine.
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

from playwright.sync_api import Page, sync_playwright

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


def start() -> tuple[subprocess.Popen[bytes], str, float]:
    """Start a server and wait until it is healthy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.headless", "true"],
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


def main() -> None:
    """Run the measurements and print them."""
    with sync_playwright() as playwright:
        # A user's browser is open already: it is started first, with an empty cache.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        process, url, began = start()
        try:
            page.goto(url)
            page.wait_for_selector('[data-testid="stMetricValue"]', timeout=300_000)
            page.wait_for_function(
                "document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3", timeout=300_000
            )
            print(f"cold start, server process to first full render: {time.perf_counter() - began:.2f} s")
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
            figures, charts = [], []
            for _ in range(CHANGES):
                seen, settled = page.evaluate(WATCH)
                figures.append(seen)
                charts.append(settled)
                page.wait_for_timeout(700)
            for name, times in (("figures changed", figures), ("script idle, all charts sent", charts)):
                known = [value for value in times if value is not None]
                print(f"{name}: median {statistics.median(known):.0f} ms, worst {max(known):.0f} ms of {len(known)}")
        finally:
            browser.close()
            process.terminate()
            process.wait(timeout=20)


if __name__ == "__main__":
    main()
