from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.dashboard.shell import FAULT

APP = str(Path(__file__).parents[2] / "app.py")
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
    def start(query=None, page="plan"):
        app = AppTest.from_file(APP, default_timeout=300)  # the first ever run compiles the simulator
        for name, value in (query or {}).items():
            app.query_params[name] = value
        app.run()
        if page != "plan":
            app.switch_page(f"planner/dashboard/pages/{page}.py").run()
        return app

    return start


def clean(app):
    """No traceback, and no fault caught by the boundary."""
    assert not app.exception
    assert not [error.value for error in app.error if FAULT in error.value]
    return app
