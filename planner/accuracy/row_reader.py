r"""Published rows → fields of a `Scenario`, by a table of patterns: a line is one way in which people write a setting.

A table (accuracy/data/*_patterns.csv) has the columns

========= ============================================================================================
columns   columns of the row that are read, joined with "; ": "other_flags+notes"
when      "column:pattern" that must match, too; several are joined with " & "; "" = always
pattern   regular expression, searched in any case
field     field of the Scenario, or a fact that the reader of such rows works fields out from
value     what the field becomes: text in which \1 is the first group; "" leaves the field as it is
source    why the words mean that: the engine's flag, or where its log or documentation says so
========= ============================================================================================

The first line that matches decides a field, so that narrow patterns stand before wide ones. Only columns that a table
names are read: a measured column that no line names cannot enter a prediction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from planner.errors import InvalidInput
from planner.scenario import fields_by_name
from planner.tables import read_table

_NUMBER = re.compile(r"~?\s*(-?\d[\d,]*(?:\.\d+)?|\.\d+)\s*([kKmM](?![a-zA-Z]))?B?\s*(-\s*\d+(?:\.\d+)?)?")
NO_FACTS: Mapping[str, str] = {}
_TIMES = {"": 1, "k": 1024, "m": 1_000_000}


def read_fields(row: Mapping[str, str], table: str, facts: Mapping[str, str] = NO_FACTS) -> dict[str, Any]:
    """Fields of the Scenario that a row states.

    Parameters
    ----------
    row : mapping
        Column to text, "" or no such column where the row is silent.
    table : str
        Table of patterns below `planner/`, such as "accuracy/data/memory_patterns.csv".
    facts : mapping
        What the table may state besides fields, name to kind: text, flag, count or number.

    Returns
    -------
    dict
        Field name to value of the field's type, for `Scenario(**fields)`; what the row leaves open is not in it.

    Raises
    ------
    InvalidInput
        When a value does not read as the field's type, or the table names a field that the Scenario has not.
    """
    found: dict[str, str] = {}
    for line in read_table(table):
        if line["field"] in found or not _holds(row, line["when"]):
            continue
        match = _compiled(line["pattern"]).search(joined(row, line["columns"]))
        if match:
            found[line["field"]] = match.expand(line["value"]).strip()
    return {field: typed(field, text, facts) for field, text in found.items() if text}


def joined(row: Mapping[str, str], columns: str) -> str:
    """Text of the columns "a+b" of a row, with "; " between them."""
    return "; ".join(row.get(name, "") or "" for name in columns.split("+"))


def typed(field: str, text: str, facts: Mapping[str, str] = NO_FACTS) -> Any:
    """Value of a field of the Scenario from text: "32k", "262,144" and "5-1" are numbers, "yes" and "true" flags."""
    declared = fields_by_name().get(field)
    if declared is None and field not in facts:
        raise InvalidInput("field", field, "a field of the Scenario")
    kind = declared.metadata["kind"] if declared is not None else facts[field]
    if kind == "text":
        return text
    if kind == "flag":
        return text.lower() in ("yes", "true", "on", "1")
    value = number_in(text)
    if value is None:
        raise InvalidInput(field, text, "a number")
    return round(value) if kind == "count" else value


def number_in(text: str) -> float | None:
    """Number at the start of a text: "8192 (default)", "~1M", "262,144", "8-1"; None where words begin it.

    Nor is one of hundreds of digits, which no float holds.
    """
    found = _NUMBER.match(text.strip())
    if not found:
        return None
    number = float(found[1].replace(",", "")) * _TIMES[(found[2] or "").lower()]
    number += float((found[3] or "0").replace(" ", ""))
    return number if math.isfinite(number) else None


def _holds(row: Mapping[str, str], condition: str) -> bool:
    conditions = (each.partition(":") for each in condition.split(" & ") if each)
    return all(_compiled(pattern).search(joined(row, column)) for column, _, pattern in conditions)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
