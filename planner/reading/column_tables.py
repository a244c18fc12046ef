"""Results as tables with a run a row and a figure a column: CSV or `|` tables, by the names of `result_columns.csv`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping

from planner.reading.runs import Run, item
from planner.reading.text import Line
from planner.reading.values import lines_of, scaled

NAMES = "reading/result_columns.csv"
MOST_ROWS = 1000
LOCUST, BATCHED, TGI = "Locust", "llama-batched-bench", "TGI benchmark"
#: columns of a tool that no other table has together
MARKS = {
    LOCUST: frozenset({"type", "name", "request count", "failure count", "average response time"}),
    BATCHED: frozenset({"pp", "tg", "b", "n_kv", "t_pp s", "t_tg s"}),
    TGI: frozenset({"step", "batch size", "average", "lowest", "highest", "p50"}),
    "saved results": frozenset({"output_throughput", "request_throughput", "mean_ttft_ms"}),
}
#: what all runs of a tool have in common: its batches begin together
COMMON: Mapping[str, Mapping[str, float | str]] = {
    BATCHED: {"engine": "llama.cpp", "arrival": "offline"},
    TGI: {"engine": "tgi", "arrival": "offline"},
}
HEADS = ("Request Count", "N_KV", "Batch Size", "mean_ttft_ms")  # a header has one of them: a quick look
TOTAL = "Aggregated"  # Locust's row of all requests
Columns = dict[str, float | str]


def column_tables(lines: tuple[Line, ...]) -> Iterable[Run]:
    """Runs in tables with a run a row, at most 1,000 rows.

    Parameters
    ----------
    lines : tuple of Line
        Whole output.
    """
    tool, header, rows = "", list[str](), list[tuple[int, dict[str, str]]]()
    for line in lines:
        if not header and not any(word in line.text for word in HEADS):
            continue
        cells = _cells(line.text)
        lower = [cell.lower() for cell in cells]
        found = next((name for name, marks in MARKS.items() if marks <= set(lower)), "")
        if found:
            yield from _runs(tool, rows, lines)
            tool, header, rows = found, lower, []
        elif len(cells) == len(header) and len(rows) < MOST_ROWS:
            rows.append((line.number, dict(zip(header, cells, strict=True))))
        else:
            header = []
    yield from _runs(tool, rows, lines)


def _cells(text: str) -> list[str]:
    """Cells of a row; of a line that is none, the line."""
    text = text.strip()
    if text.startswith("|"):
        return [cell.strip() for cell in text.strip("|").split("|")]
    if "," not in text:
        return [text]
    try:
        return [cell.strip() for cell in next(csv.reader([text]))]
    except (csv.Error, StopIteration):
        return [text]


def _runs(tool: str, rows: list[tuple[int, dict[str, str]]], lines: tuple[Line, ...]) -> Iterable[Run]:
    if tool == TGI:
        yield from _tgi(rows, lines)
        return
    if tool == LOCUST:
        rows = [row for row in rows if row[1]["name"] == TOTAL] or rows
    for number, row in rows:
        columns = _figures(tool, row)
        if tool == BATCHED and columns:
            columns = _batched(columns, row)
        if columns:
            yield _run(tool, columns, number)


def _run(tool: str, columns: Columns, number: int) -> Run:
    told = tuple(item(name, value, number) for name, value in columns.items())
    return Run(tool=tool, columns={**COMMON.get(tool, {}), **columns}, understood=told)


def _figures(tool: str, row: Mapping[str, str]) -> Columns:
    found: Columns = {}
    for name in lines_of(NAMES, tool):
        value = scaled(row.get(name["name"], ""), name["scale"]) if row.get(name["name"]) else None
        if value is not None:
            found.setdefault(name["column"], value)
    return found


def _batched(columns: Columns, row: Mapping[str, str]) -> Columns:
    """Figures of a batch that decodes together once all of its prompts are read."""
    told = {name: value for name, value in columns.items() if isinstance(value, float)}
    batch, prompt, answer = (told.get(name, 0.0) for name in ("n_requests", "isl", "osl"))
    whole, decoding = scaled(row.get("t s", ""), "1"), scaled(row.get("t_tg s", ""), "1")
    if not (batch and prompt and answer):
        return {}
    if told.get("n_kv", 0.0) < batch * (prompt + answer):  # -pps: one prompt that all share, read once
        columns.pop("ttft_ms_mean", None)
    elif isinstance(whole, float) and whole > 0:
        columns |= {"output_tok_s_total": batch * answer / whole, "e2e_s_mean": whole}
    if isinstance(decoding, float):
        columns["tpot_ms_mean"] = 1e3 * decoding / answer
    columns.pop("n_kv", None)
    return columns


def _tgi(rows: list[tuple[int, dict[str, str]]], lines: tuple[Line, ...]) -> Iterable[Run]:
    """A run for each batch size: its prefill, and a token of its decoding."""
    lengths = _tgi_lengths(lines)
    found: dict[str, tuple[int, Columns]] = {}
    step = batch = ""
    for number, row in rows:
        step, batch = row["step"] or step, row["batch size"] or batch
        column = {"Prefill": "ttft_ms_mean", "Decode (token)": "tpot_ms_mean"}.get(step)
        value = scaled(row["average"], "1")
        if column and batch.isdigit() and isinstance(value, float):
            found.setdefault(batch, (number, {}))[1][column] = value
    for batch, (number, columns) in found.items():
        yield _run(TGI, {"n_requests": float(batch)} | lengths | columns, number)


def _tgi_lengths(lines: Iterable[Line]) -> Columns:
    """The tokens of a prompt and of an answer, from the table of parameters or the command."""
    found: Columns = {}
    for line in lines:
        for words, column in (("sequence", "isl"), ("decode", "osl")):
            match = re.search(rf"(?:{words.capitalize()} Length\s*\|\s*|--{words}-length[ =])(\d+)", line.text)
            if match:
                found.setdefault(column, float(match[1]))
    return found
