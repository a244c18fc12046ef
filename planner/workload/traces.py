"""Recorded traffic: Azure, Vidur, Mooncake and BurstGPT files as requests; errors name the line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from planner.errors import InvalidInput
from planner.units import SECONDS_PER_DAY
from planner.workload.requests import Requests

MOONCAKE_BLOCK_TOKENS = 512
MAX_TOKENS = 10_000_000  # the longest context window of any published model
MAX_SPAN_S = 366 * SECONDS_PER_DAY
MAX_TIME_S = 1e14  # a float still resolves less than a step here, even for a clock in microseconds
_CLOCK = re.compile(r"(?P<whole>[^.]+?)(?:\.(?P<fraction>\d+))?(?P<zone>Z|[+-]\d\d:?\d\d)?")


class _Format(NamedTuple):
    arrival: str
    prompt: str
    output: str


_CSV_FORMATS = {
    "azure": _Format("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "vidur": _Format("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "burstgpt": _Format("Timestamp", "Request tokens", "Response tokens"),
}
_MOONCAKE = _Format("timestamp", "input_length", "output_length")
_FORMATS = (*_CSV_FORMATS, "mooncake")


def read_trace(text_or_path: str | Path, fmt: str | None = None) -> Requests:
    """The requests of a recorded trace.

    Parameters
    ----------
    text_or_path : str or Path
        The trace's text, or its file.
    fmt : str, optional
        azure (TIMESTAMP, ContextTokens, GeneratedTokens), vidur (arrived_at, num_prefill_tokens,
        num_decode_tokens), burstgpt (Timestamp, Request tokens, Response tokens) as CSV, or mooncake
        (JSONL: timestamp in ms, input_length, output_length, hash_ids). None: recognised by the header.

    Returns
    -------
    Requests
        Sorted, times from 0; notes say what was fixed or left out.

    Raises
    ------
    InvalidInput
        Unknown format, missing column or impossible value, with its line.
    """
    text = _text(text_or_path).lstrip("\ufeff")
    if not text.strip():
        raise InvalidInput("trace", "empty", "at least one request")
    if fmt is not None and fmt not in _FORMATS:
        raise InvalidInput("fmt", fmt, "one of " + ", ".join(_FORMATS))
    if fmt == "mooncake" or (fmt is None and text.lstrip().startswith("{")):
        rows, chains = _jsonl_rows(text)
        return _requests(rows, chains, _MOONCAKE.arrival)
    return _requests(*_csv_rows(text, fmt))


def _text(text_or_path: str | Path) -> str:
    path = Path(text_or_path)
    if isinstance(text_or_path, str) and ("\n" in text_or_path or "{" in text_or_path or not text_or_path.strip()):
        return text_or_path
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        raise InvalidInput(
            "trace", str(text_or_path), "a file that exists and holds text, or the text of a trace"
        ) from error


def _csv_rows(text: str, fmt: str | None) -> tuple[list[tuple[int, float, int, int]], None, str]:
    reader = csv.reader(io.StringIO(text))
    try:
        lines = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise InvalidInput(f"trace line {reader.line_num}", str(error), "comma-separated values") from error
    header = [name.strip() for name in lines[0][1]]
    if fmt is None:
        fits = [name for name, columns in _CSV_FORMATS.items() if set(columns) <= set(header)]
        if not fits:
            wanted = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in _CSV_FORMATS.items())
            raise InvalidInput("trace line 1", ", ".join(header), f"the columns of a known format ({wanted})")
        fmt = fits[0]
    columns = _CSV_FORMATS[fmt]
    missing = [name for name in columns if name not in header]
    if missing:
        raise InvalidInput("trace line 1", ", ".join(header), f"also the column {', '.join(missing)}")
    where = [header.index(name) for name in columns]
    rows = []
    for line, cells in lines[1:]:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) <= max(where):
            raise InvalidInput(f"trace line {line}", ",".join(cells), f"{len(header)} columns")
        rows.append(_row(line, columns, [cells[index] for index in where]))
    return rows, None, columns.arrival


def _row(line: int, columns: _Format, cells: list[str]) -> tuple[int, float, int, int]:
    return (
        line,
        _time(line, columns.arrival, cells[0]),
        _count(line, columns.prompt, cells[1]),
        _count(line, columns.output, cells[2]),
    )


def _jsonl_rows(text: str) -> tuple[list[tuple[int, float, int, int]], list[list[Any]]]:
    rows, chains = [], []
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            item = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"trace line {line}", content, "one JSON object per line") from error
        missing = [name for name in _MOONCAKE if not isinstance(item, dict) or name not in item]
        if missing:
            raise InvalidInput(f"trace line {line}", content, f"the key {', '.join(missing)}")
        _, time_ms, prompt, output = _row(line, _MOONCAKE, [str(item[name]) for name in _MOONCAKE])
        rows.append((line, time_ms / 1000, prompt, output))
        chains.append(_chain(line, item.get("hash_ids")))
    return rows, chains


def _chain(line: int, ids: Any) -> list[Any]:
    """The prompt's block ids; empty where the record has none."""
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(isinstance(item, (int, str)) for item in ids):
        raise InvalidInput(f"trace line {line}, hash_ids", ids, "a list of whole numbers, one per block of the prompt")
    return ids


def _time(line: int, column: str, text: str) -> float:
    text = text.strip()
    field = f"trace line {line}, {column}"
    try:
        value = float(text)
    except ValueError:
        value = _clock_s(field, text)
    if not abs(value) <= MAX_TIME_S:
        raise InvalidInput(field, text, f"a time from -{MAX_TIME_S:g} to {MAX_TIME_S:g}")
    return value


def _clock_s(field: str, text: str) -> float:
    """A date and time in seconds; without a zone it counts as UTC, which has no missing hour."""
    # Azure's files have 7 decimals; Python reads 6
    found = _CLOCK.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        moment = datetime.fromisoformat(found["whole"] + (found["zone"] or ""))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp() + float(f"0.{found['fraction'] or 0}")
    except (ValueError, OverflowError) as error:
        raise InvalidInput(field, text, "a time in seconds or YYYY-MM-DD hh:mm:ss") from error


def _count(line: int, column: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_TOKENS or not value.is_integer():
        raise InvalidInput(f"trace line {line}, {column}", text, f"a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return int(value)


def _requests(rows: Iterable[tuple[int, float, int, int]], chains: list[list[Any]] | None, column: str) -> Requests:
    table = list(rows)
    answered = [index for index, row in enumerate(table) if row[3] > 0]
    if not answered:
        raise InvalidInput("trace", "no request has output tokens", "at least one request with output tokens")
    notes = []
    if len(answered) < len(table):
        notes.append(f"left out {len(table) - len(answered)} requests without output (they failed in the recording)")
    arrival = np.array([table[index][1] for index in answered])
    _check_span([(table[index][1], table[index][0]) for index in answered], column)
    order = np.argsort(arrival, kind="stable")
    if (np.diff(arrival) < 0).any():
        first = answered[int(np.flatnonzero(np.diff(arrival) < 0)[0]) + 1]
        notes.append(f"sorted the requests: times were out of order, first at line {table[first][0]}")
    repeated = int((np.diff(arrival[order]) == 0).sum())
    if repeated:
        notes.append(f"{repeated} requests arrive at the same time as the one before")
    prompt = np.array([max(1, table[index][2]) for index in answered], dtype=np.int64)[order]
    output = np.array([table[index][3] for index in answered], dtype=np.int64)[order]
    group, prefix = _prefixes([chains[answered[index]] for index in order] if chains else None, prompt)
    return Requests(
        arrival_s=arrival[order] - arrival.min(),
        prompt_tokens=prompt,
        output_tokens=output,
        output_limit_tokens=output.copy(),
        prefix_group=group,
        prefix_tokens=prefix,
        notes=tuple(notes),
    )


def _check_span(times: list[tuple[float, int]], column: str) -> None:
    """Reject a trace that spans years: a wrong time, or two clocks in one file."""
    (first_s, first), (last_s, last) = min(times), max(times)
    if last_s - first_s > MAX_SPAN_S:
        between = f"{(last_s - first_s) / SECONDS_PER_DAY:,.4g} days between lines {first} and {last}"
        valid = f"times within {MAX_SPAN_S / SECONDS_PER_DAY:.0f} days of each other"
        raise InvalidInput(f"trace line {max(first, last)}, {column}", between, valid)


def _prefixes(chains: list[list[Any]] | None, prompt: Any) -> tuple[Any, Any]:
    # A request joins the group of the request with which it shares the most leading blocks.
    group = np.full(len(prompt), -1, dtype=np.int64)
    prefix = np.zeros(len(prompt), dtype=np.int64)
    seen: dict[Any, int] = {}
    for index, chain in enumerate(chains or ()):
        depth = 0
        for depth, block in enumerate(chain, start=1):
            if block not in seen:
                depth -= 1
                break
        group[index] = seen[chain[depth - 1]] if depth else index
        prefix[index] = min(depth * MOONCAKE_BLOCK_TOKENS, int(prompt[index]))
        for block in chain[depth:]:
            seen[block] = int(group[index])
    return group, prefix
