import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from planner.dashboard.form_fields import GROUPS
from planner.dashboard.shell import FAULT

APP = str(Path(__file__).parents[2] / "app.py")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
PAGES = ("plan", "memory", "latency", "batching", "fleet", "fits", "compare", "accuracy", "method")
HOSTILE = {
    "v": "99",
    "m": "<script>alert(1)</script>",
    "u": "abc",
    "rps": "nan",
    "ctx": "99999999",
    "tp": "-1",
    "n": "<b>x</b> $1$ **b** [l](javascript:alert) `c`",
    "nope": "[x](javascript:1) $a$",
}
SHARED = {"v": "2", "m": "Qwen/Qwen3-8B", "u": "800", "o": "64", "l": "constant", "p": "512", "s": "11"}


@pytest.fixture
def open_app():
    def start(query=None, page="plan", opened=()):
        app = AppTest.from_file(APP, default_timeout=300)  # the first ever run compiles the simulator
        for name, value in (query or {}).items():
            app.query_params[name] = value
        for name in opened:  # a group of the form with its fold, or a menu: what is closed draws nothing
            for key in (f"group_{name}", f"more_{name}") if name in GROUPS else (name,):
                app.session_state[key] = True
        app.run()
        if page != "plan":
            app.switch_page(f"planner/dashboard/pages/{page}.py").run()
        return app

    return start


def clean(app):
    """No traceback, and no fault caught by the boundary."""
    assert not app.exception
    assert not [error.value for error in app.error if FAULT in error.value]
    for chart in app.get("plotly_chart"):
        go.Figure(json.loads(chart.proto.spec))  # an attribute that Plotly does not know is an error
    return app


@pytest.fixture(scope="package")
def server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
    process = subprocess.Popen(command, cwd=Path(APP).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url):
    for _ in range(150):
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.2)
    pytest.fail("the dashboard did not start")


@pytest.fixture(scope="package")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def serious(message):
    # A deep link to a page first asks for the health of a path that does not exist: Streamlit's own, harmless.
    return message.type == "error" and "/_stcore/" not in (message.location or {}).get("url", "")
