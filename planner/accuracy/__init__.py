"""Predictions against published measurements: our own error, in numbers.

In: files of start-up logs, kernel step times and serving benchmarks. Out: each row's prediction and its error.
Loaded on first use, since it needs pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.accuracy.calibration import fit_file as fit_file
    from planner.accuracy.memory import memory_columns as memory_columns
    from planner.accuracy.memory_rows import read_case as read_case
    from planner.accuracy.names import find_engine_preset as find_engine_preset
    from planner.accuracy.names import find_gpu as find_gpu
    from planner.accuracy.names import find_model as find_model
    from planner.accuracy.papers import paper_rows as paper_rows
    from planner.accuracy.serving import serve as serve
    from planner.accuracy.serving import serving_columns as serving_columns
    from planner.accuracy.serving_rows import RowSkipped as RowSkipped
    from planner.accuracy.serving_rows import read_planned as read_planned
    from planner.accuracy.serving_rows import read_run as read_run
    from planner.accuracy.serving_traffic import arrivals_of as arrivals_of
    from planner.accuracy.serving_traffic import lengths_of as lengths_of
    from planner.accuracy.validation import format_validation as format_validation
    from planner.accuracy.validation import validate as validate

_HOME = {
    "RowSkipped": "planner.accuracy.serving_rows",
    "fit_file": "planner.accuracy.calibration",
    "find_engine_preset": "planner.accuracy.names",
    "find_gpu": "planner.accuracy.names",
    "find_model": "planner.accuracy.names",
    "format_validation": "planner.accuracy.validation",
    "memory_columns": "planner.accuracy.memory",
    "paper_rows": "planner.accuracy.papers",
    "read_case": "planner.accuracy.memory_rows",
    "read_planned": "planner.accuracy.serving_rows",
    "read_run": "planner.accuracy.serving_rows",
    "serve": "planner.accuracy.serving",
    "serving_columns": "planner.accuracy.serving",
    "arrivals_of": "planner.accuracy.serving_traffic",
    "lengths_of": "planner.accuracy.serving_traffic",
    "validate": "planner.accuracy.validation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
