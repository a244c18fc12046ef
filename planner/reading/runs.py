"""One measured run of a benchmark, in the columns of a serving row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.reading.figures import Understood

UNITS = {"_ms": "ms", "e2e_s": "s", "tok_s": "tokens/s", "req_s": "req/s", "tokens": "tokens", "duration_s": "s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run: its columns as in serving_benchmarks.csv, and the lines that say them.

    `is_prediction`: another planner predicts these figures, and nobody measured them. `unused` are figures of the
    report that no column has: their line and its text.
    """

    tool: str
    columns: Mapping[str, float | str]
    understood: tuple[Understood, ...]
    is_prediction: bool = False
    unused: tuple[tuple[int, str], ...] = ()

    @property
    def tells_deployment(self) -> bool:
        """Whether the report names model and split, as trtllm-bench's does, and not only the traffic."""
        return bool(self.columns.get("model")) and bool(self.columns.get("tp"))


def item(column: str, value: float | str, line: int) -> Understood:
    """A column with its unit and the line that says it."""
    unit = next((unit for part, unit in UNITS.items() if part in column), "") if isinstance(value, float) else ""
    return Understood(name=column, value=value, unit=unit, line=line)


def run_of(tool: str, columns: Mapping[str, float | str], line: int) -> Run:
    """A run of which one line, or the whole file, says every column."""
    return Run(tool=tool, columns=columns, understood=tuple(item(name, value, line) for name, value in columns.items()))
