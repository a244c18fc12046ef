"""Recorded traffic: Azure, Vidur, Mooncake and BurstGPT files as requests; mistakes name their line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from planner.errors import InvalidInput
from planner.simulation.records import Requests

MOONCAKE_BLOCK_TOKENS = 512


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
    """Read a recorded trace.

    Parameters
    ----------
    text_or_path : str or Path
        The text itself, or where it is.
    fmt : str, optional
        azure (TIMESTAMP, ContextTokens, GeneratedTokens), vidur (arrived_at, num_prefill_tokens,
        num_decode_tokens), burstgpt (Timestamp, Request tokens, Response tokens) as CSV, or mooncake
        (JSONL: timestamp in ms, input_length, output_length, hash_ids). None: told by the header.

    Returns
    -------
    Requests
        Times start at 0, sorted; notes say what was mended or left out.

    Raises
    ------
    InvalidInput
        Unknown form, missing column or a value that cannot be, with its line.
    """
    text = _text(text_or_path).lstrip("\ufeff")
    if not text.strip():
        raise InvalidInput("trace", "empty", "at least one request")
    if fmt is not None and fmt not in _FORMATS:
        raise InvalidInput("fmt", fmt, "one of " + ", ".join(_FORMATS))
    if fmt == "mooncake" or (fmt is None and text.lstrip().startswith("{")):
        rows, chains = _jsonl_rows(text)
        return _requests(rows, chains)
    return _requests(_csv_rows(text, fmt), None)


def _text(text_or_path: str | Path) -> str:
    if isinstance(text_or_path, Path):
        return text_or_path.read_text(encoding="utf-8")
    if "\n" not in text_or_path and "{" not in text_or_path and text_or_path.strip():
        path = Path(text_or_path)
        if path.is_file():
            return path.read_text(encoding="utf-8")
        raise InvalidInput("trace", text_or_path, "a file that exists, or the text of a trace")
    return text_or_path


def _csv_rows(text: str, fmt: str | None) -> list[tuple[int, float, int, int]]:
    reader = csv.reader(io.StringIO(text))
    header = [name.strip() for name in next(reader)]
    if fmt is None:
        fits = [name for name, columns in _CSV_FORMATS.items() if set(columns) <= set(header)]
        if not fits:
            wanted = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in _CSV_FORMATS.items())
            raise InvalidInput("trace line 1", ", ".join(header), f"the columns of a known form ({wanted})")
        fmt = fits[0]
    columns = _CSV_FORMATS[fmt]
    missing = [name for name in columns if name not in header]
    if missing:
        raise InvalidInput("trace line 1", ", ".join(header), f"also the column {', '.join(missing)}")
    where = [header.index(name) for name in columns]
    rows = []
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = reader.line_num
        if len(cells) <= max(where):
            raise InvalidInput(f"trace line {line}", ",".join(cells), f"{len(header)} columns")
        arrival, prompt, output = (cells[index] for index in where)
        rows.append(
            (line, _time(line, arrival), _count(line, columns.prompt, prompt), _count(line, columns.output, output))
        )
    return rows


def _jsonl_rows(text: str) -> tuple[list[tuple[int, float, int, int]], list[list[Any]]]:
    rows, chains = [], []
    for line, content in enumerate(text.splitlines(), start=1):
        if not content.strip():
            continue
        try:
            item = json.loads(content)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"trace line {line}", content, "one JSON object per line") from error
        missing = [name for name in _MOONCAKE if not isinstance(item, dict) or name not in item]
        if missing:
            raise InvalidInput(f"trace line {line}", content, f"the key {', '.join(missing)}")
        time_s = _time(line, str(item["timestamp"])) / 1000
        prompt, output = (_count(line, name, str(item[name])) for name in _MOONCAKE[1:])
        rows.append((line, time_s, prompt, output))
        chains.append(list(item.get("hash_ids") or ()))
    return rows, chains


def _time(line: int, text: str) -> float:
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        try:
            # 7 decimals in Azure's files; Python reads 6.
            whole, _, fraction = text.partition(".")
            value = datetime.fromisoformat(whole).timestamp() + (float("0." + fraction) if fraction else 0.0)
        except ValueError as error:
            raise InvalidInput(f"trace line {line}", text, "a time in seconds or YYYY-MM-DD hh:mm:ss") from error
    if not np.isfinite(value):
        raise InvalidInput(f"trace line {line}", text, "a finite time")
    return value


def _count(line: int, column: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError as error:
        raise InvalidInput(f"trace line {line}, {column}", text, "a whole number of tokens") from error
    if not np.isfinite(value) or value < 0 or value != int(value):
        raise InvalidInput(f"trace line {line}, {column}", text, "a whole number of tokens of at least 0")
    return int(value)


def _requests(rows: Iterable[tuple[int, float, int, int]], chains: list[list[Any]] | None) -> Requests:
    table = list(rows)
    answered = [index for index, row in enumerate(table) if row[3] > 0]
    if not answered:
        raise InvalidInput("trace", "no request with an answer", "at least one request with output tokens")
    notes = []
    if len(answered) < len(table):
        notes.append(f"{len(table) - len(answered)} requests without output left out (failed in the recording)")
    arrival = np.array([table[index][1] for index in answered])
    order = np.argsort(arrival, kind="stable")
    if (np.diff(arrival) < 0).any():
        first = answered[int(np.flatnonzero(np.diff(arrival) < 0)[0]) + 1]
        notes.append(f"times were not sorted (first at line {table[first][0]}); sorted")
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


def _prefixes(chains: list[list[Any]] | None, prompt: Any) -> tuple[Any, Any]:
    # A request joins the group of the request that it shares most leading blocks with.
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
