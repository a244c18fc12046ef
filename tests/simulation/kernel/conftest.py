"""The bench on which the parts of the step loop are tested."""

import pytest

from tests.simulation.kernel.bench import PARTS, Bench


@pytest.fixture
def bench(monkeypatch):
    """Bench, with every part of the loop replaced by the Python that it is compiled from."""
    for module in PARTS:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    return Bench
