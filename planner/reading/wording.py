"""A `Reading` as text for a terminal, and as plain types for JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from planner.reading.printed import prints_memory, with_printed
from planner.reading.reading import Reading
from planner.reading.together import Together
from planner.scenario import to_json, to_query


def reading_text(reading: Reading) -> str:
    """What a file says, line by line: each figure with its line number, then what was not understood."""
    rows = [f"{reading.kind}{f', {reading.outcome}' if reading.outcome else ''}", "", "Understood:"]
    rows += [
        f"  {_where(item.line)}  {item.name} = {value_text(item.value)}{f' {item.unit}' if item.unit else ''}"
        for item in reading.understood
    ]
    if reading.not_understood:
        rows += ["", "Not used:"]
        rows += [f"  {_where(item.line)}  {item.text}: {item.reason}" for item in reading.not_understood]
    rows.append("")
    if reading.scenario is None:
        rows.append(f"No plan can start from it: {reading.problem}")
    else:
        rows.append(f"Plan it: {to_query(reading.scenario)}")
        if prints_memory(reading):
            rows.append(f"With the memory that it printed: {to_query(with_printed(reading))}")
    return "\n".join(rows)


def _where(line: int) -> str:
    return f"line {line:>6,}" if line else "whole file "


def value_text(value: str | float) -> str:
    """A figure with as many digits as an engine prints, or a setting as it stands."""
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return "unlimited"  # a benchmark that sends as fast as it can
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def reading_dict(reading: Reading) -> dict[str, Any]:
    """The same as plain types: kind, understood (name, value, unit, line), not_understood, runs, scenario, link."""
    scenario = reading.scenario
    return {
        "kind": reading.kind,
        "outcome": reading.outcome,
        "understood": [
            {"name": item.name, "value": item.value, "unit": item.unit, "line": item.line}
            for item in reading.understood
        ],
        "not_understood": [
            {"text": item.text, "line": item.line, "reason": item.reason} for item in reading.not_understood
        ],
        "runs": [{"tool": run.tool, **run.columns} for run in reading.runs],
        "scenario": None if scenario is None else json.loads(to_json(scenario)),
        "problem": reading.problem,
        "link": None if scenario is None else to_query(scenario),
    }


def together_text(found: Together) -> str:
    """What each of several files says, what they state differently, and the plan that they describe together."""
    rows: list[str] = []
    for item in found.files:
        rows += [f"{item.name}: {item.problem if item.reading is None else reading_text(item.reading)}", ""]
    if found.contradictions:
        rows += ["Stated differently:", *(f"  {text}" for text in found.contradictions), ""]
    told = "No plan can start from them." if found.scenario is None else f"Plan it: {to_query(found.scenario)}"
    return "\n".join([*rows, f"Together. {told}"])


def together_dict(found: Together) -> dict[str, Any]:
    """The same as plain types: files (name, problem and what `reading_dict` has), contradictions, scenario, link."""
    scenario = found.scenario
    return {
        "files": [
            {"name": item.name, "problem": item.problem} | ({} if item.reading is None else reading_dict(item.reading))
            for item in found.files
        ],
        "contradictions": list(found.contradictions),
        "scenario": None if scenario is None else json.loads(to_json(scenario)),
        "link": None if scenario is None else to_query(scenario),
    }
