"""The dashboard as a process: Streamlit with the project's script and settings."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from planner.errors import InvalidInput, require_int

PACKED = Path(__file__).parent / "dashboard"  # where pyproject.toml puts both in a wheel
CHECKOUT = Path(__file__).parents[2]
EVERY = ("0.0.0.0", "::", "")  # addresses that stand for all of a machine's


def dashboard_script() -> Path:
    """`app.py` with `.streamlit/config.toml` beside it, of the installed package or of a checkout."""
    script = PACKED / "app.py"
    return script if script.exists() else CHECKOUT / "app.py"


def serve_dashboard(address: str | None = None, port: int | None = None) -> None:
    """Run the dashboard in this process until it is stopped.

    Parameters
    ----------
    address, port : optional
        Where to listen; None: as Streamlit does, on every address and 8501.

    Raises
    ------
    InvalidInput
        When the port is out of range, or the address is not one of this machine.
    """
    arguments = ["streamlit", "run", str(dashboard_script())]
    if address is not None:
        arguments += ["--server.address", address]
        if address not in EVERY:  # the address printed at the start; else that of the settings
            arguments += ["--browser.serverAddress", address]
    if port is not None:
        require_int("--port", port, at_most=65_535)
        arguments += ["--server.port", str(port)]
    sys.argv = arguments
    try:
        runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
    except OSError as error:
        raise InvalidInput("--address", address, f"an address of this machine ({error.strerror})") from error
