"""Recordings of traffic as columns: CSV, JSON lines, engines' request logs and access logs.

Prompts and answers themselves are never kept: only times, counts of tokens and hashes of shared blocks.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput
from planner.tables import read_table
from planner.workload.trace_records import BEGINS, Record, first_record, flat_keys, records_in, value_at

NAMES = "workload/trace_columns.csv"
MAX_TOKENS = 10_000_000  # the longest context window of any published model
MAX_TIME_S = 1e19  # beyond any epoch in nanoseconds
#: an epoch in seconds stays below 1e11 until the year 5138: larger figures count milliseconds, micro- or nanoseconds
EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
ROLES = ("arrival", "prompt", "output")
BLANK = ("", "null", "none", "nan", "n/a", "na", "-")  # a cell that says nothing
DECIMAL_COMMA = re.compile(r"^(-?\d+),(\d+)$")  # in a table whose cells end in semicolons
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
HEAD_CHARS = 100_000  # in which a table's first two lines are looked for
HEAD_RECORDS = 1000  # in which the first is looked for that has all keys
MOST_CELLS = 5000  # of a row
MOST_COLUMNS = 200  # that a person could choose from
_CLOCK = re.compile(r"(?P<whole>[^.,]+?)(?:[.,](?P<fraction>\d+))?(?P<zone>Z|[+-]\d\d:?\d\d)?")
#: access logs: the common log format of Apache and nginx
_ACCESS = re.compile(r'\[(?P<time>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "(?P<verb>[A-Z]+) (?P<path>\S+)')
#: Application Load Balancer of AWS: when it answered, what was asked, and when the request came
_BALANCER = re.compile(
    r'^(?:https?|h2|grpcs|wss?) (?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) \S+ .*?"(?P<verb>[A-Z]+) \S+ [^"]*"'
    r"(?:.* (?P<came>\d{4}-\d\d-\d\dT[\d:.]+Z) )?"
)
#: SGLang --log-requests: a line for each answer; vLLM --enable-log-requests: one for each request that arrives
_SGLANG = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\].*Finish: .*?'prompt_tokens': (?P<prompt>\d+)"
    r".*?'completion_tokens': (?P<output>\d+)"
)
_VLLM = re.compile(r"INFO (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) .*Received request ")
LOG_WORDS = ("Finish: ", "Received request ", '"POST ')  # a row of a log has one of them: a quick look
_VLLM_IDS = re.compile(r"prompt_token_ids: \[(?P<ids>[\d, ]*)\]")


class Format(NamedTuple):
    """Columns of a published form of traces."""

    arrival: str
    prompt: str
    output: str


CSV_FORMATS = {
    "azure": Format("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "vidur": Format("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "burstgpt": Format("Timestamp", "Request tokens", "Response tokens"),
}
MOONCAKE = Format("timestamp", "input_length", "output_length")
FORMATS = (*CSV_FORMATS, "mooncake")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """A recording as columns, in the file's order: line numbers, times, tokens; None where it does not say.

    `chains` are the ids of each prompt's blocks, where the recording has them; `column` names the times. `left_out`
    counts the rows that say no time or no tokens.
    """

    kind: str
    line: Ints
    arrival_s: Floats
    prompt_tokens: Ints | None
    output_tokens: Ints | None
    chains: list[list[Any]] | None
    column: str
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table of requests, or the keys of its records; `known` says which of them is what."""

    names: tuple[str, ...]
    known: Mapping[str, str]


def columns_in(text: str) -> Columns | None:
    """The columns of a CSV or of JSON lines, from its first two lines; None where the text is no such table."""
    lines = [line for line in text.split("\n", 50)[:50] if line.strip()][:2]
    try:
        if BEGINS.match(text):
            names = flat_keys(first_record(text))
        else:
            names = _header(lines[0])
            cells = next(csv.reader([lines[1]], delimiter=_delimiter(lines[0])))
            if len(cells) != len(names):
                return None
            names += [f"{name}.{key}" for name, inner in _nested(names, cells).items() for key in inner]
    except (InvalidInput, ValueError, IndexError, RecursionError, csv.Error):
        return None
    names = [name for name in names if name.strip()]
    if not 2 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
        return None
    return Columns(names=tuple(names), known=_roles(names, {}))


def recorded_in(text: str, fmt: str | None, columns: Mapping[str, str] | None) -> Recorded:
    """Columns of a recording, recognised by its content.

    Parameters
    ----------
    text : str
        Its text, without a byte-order mark.
    fmt : str, optional
        One of azure, vidur, burstgpt, mooncake; None: recognised.
    columns : mapping, optional
        Column (or key) of "arrival", "prompt" and "output", where the names are the writer's own; "": it has none.

    Raises
    ------
    InvalidInput
        Unknown form, missing column or impossible value, with its line.
    """
    for role in columns or ():
        if role not in ROLES:
            raise InvalidInput("columns", role, "one of " + ", ".join(ROLES))
    if fmt == "mooncake" or (fmt is None and BEGINS.match(text)):
        return _jsonl(text, fmt, columns or {})
    known = columns_in(text[:HEAD_CHARS])
    if fmt is None and not columns and (known is None or "arrival" not in known.known):
        logged = _request_log(text)
        if logged is not None:
            return logged
    return _csv(text, fmt, columns or {})


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv(text: str, fmt: str | None, columns: Mapping[str, str]) -> Recorded:
    header = _header(text)
    names, kind = _csv_names([*header, *_nested_names(text, header)], fmt, columns)
    quick = _quick_csv(text, header, names) if set(names.values()) <= set(header) else None
    line, arrival, prompt, output, left_out = quick if quick is not None else _careful_csv(text, header, names)
    return Recorded(
        kind=kind,
        line=line,
        arrival_s=arrival,
        prompt_tokens=prompt,
        output_tokens=output,
        chains=None,
        column=names["arrival"],
        left_out=left_out,
    )


def _nested_names(text: str, header: list[str]) -> list[str]:
    """Keys of the JSON objects in the cells of the first row, behind the name of their column."""
    return [f"{name}.{key}" for name, inner in _nested(header, _first_row(text)).items() for key in inner]


def _first_row(text: str) -> list[str]:
    """Cells of the row below the header; empty where there is none."""
    header, *second = text.split("\n", 2)[:2]
    try:
        return next(csv.reader(second, delimiter=_delimiter(header)), [])
    except csv.Error:
        return []


def _nested(header: list[str], cells: list[str]) -> dict[str, dict[str, Any]]:
    """The JSON objects in the cells of a row, by their column."""
    found = {}
    for name, cell in zip(header, cells, strict=False):
        if cell.lstrip().startswith("{"):
            try:
                item = json.loads(cell)
            except (ValueError, RecursionError):
                continue
            if isinstance(item, dict):
                found[name] = item
    return found


def _header(text: str) -> list[str]:
    first = text[: text.find("\n")] if "\n" in text else text
    if first.count(_delimiter(first)) > MOST_CELLS:
        raise InvalidInput("trace line 1", f"{first.count(_delimiter(first)):,} columns", f"at most {MOST_CELLS:,}")
    try:
        return [name.strip() for name in next(csv.reader([first], delimiter=_delimiter(first)))]
    except csv.Error as error:
        raise InvalidInput("trace line 1", str(error), "comma-separated values") from error


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _csv_names(header: list[str], fmt: str | None, columns: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Column of each role, and the name of the form."""
    if fmt is None and not columns:
        fits = [name for name, form in CSV_FORMATS.items() if set(form) <= set(header)]
        fmt = fits[0] if fits else None
    if fmt is not None:
        missing = [name for name in CSV_FORMATS[fmt] if name not in header]
        if missing:
            raise InvalidInput("trace line 1", ", ".join(header), f"also the column {', '.join(missing)}")
        return CSV_FORMATS[fmt]._asdict(), fmt
    found = _roles(header, columns)
    for role, name in found.items():
        if name not in header:
            raise InvalidInput(f"column of {role}", name, "one of " + ", ".join(header))
    if "arrival" not in found:
        wanted = "; ".join(f"{name}: {', '.join(form)}" for name, form in CSV_FORMATS.items())
        raise InvalidInput(
            "trace line 1", ", ".join(header), f"the columns of a known format ({wanted}), or their names"
        )
    return found, "csv"


def _roles(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Column of each role: the one that the user names, else one with a usual name."""
    return {role: name for role in ROLES if (name := columns[role] if role in columns else _known(role, names))}


def _known(role: str, header: list[str]) -> str | None:
    lower = {name.lower().replace(" ", "_"): name for name in reversed(header)}
    names = (row["name"].lower().replace(" ", "_") for row in read_table(NAMES) if row["role"] == role)
    return next((lower[name] for name in names if name in lower), None)


def _quick_csv(text: str, header: list[str], names: Mapping[str, str]) -> tuple[Any, Any, Any, Any, int] | None:
    """All rows at once; None where one of them needs a second look, which then names its line."""
    import pandas as pd  # noqa: PLC0415 - half a second that only recordings need

    delimiter = _delimiter(text[: text.find("\n")])
    if text.rstrip("\n").rpartition("\n")[2].count(delimiter) < len(header) - 1:
        return None  # the last row is cut off
    if len(_first_row(text)) > len(header):
        return None  # pandas would take the first cell of each row for its name
    try:
        frame = pd.read_csv(io.StringIO(text), sep=delimiter, skip_blank_lines=False)
    except (ValueError, pd.errors.ParserError):
        return None
    frame.columns = [str(name).strip() for name in frame.columns]
    if len(frame) == 0 or list(frame.columns) != header:
        return None
    rows = frame[~frame.isna().all(axis=1)]
    frame = rows.dropna(subset=list(names.values()))
    left_out = len(rows) - len(frame)
    if len(frame) == 0:
        return None
    times = frame[names["arrival"]]
    if pd.api.types.is_numeric_dtype(times):
        arrival = np.asarray(times, dtype=np.float64)
    else:
        try:
            moments = pd.to_datetime(times, utc=True, format="ISO8601")
        except (ValueError, OverflowError):
            return None
        arrival = np.asarray(moments.astype("datetime64[ns, UTC]").astype("int64"), dtype=np.float64) / 1e9
    if not (np.abs(arrival) <= MAX_TIME_S).all():
        return None
    counts: list[Ints | None] = []
    for role in ("prompt", "output"):
        column = frame[names[role]] if role in names else None
        if column is None:
            counts.append(None)
            continue
        if not pd.api.types.is_numeric_dtype(column):
            return None
        values = np.asarray(column, dtype=np.float64)
        if not ((values >= 0) & (values <= MAX_TOKENS) & (values == np.rint(values))).all():
            return None
        counts.append(values.astype(np.int64))
    return np.asarray(frame.index) + 2, arrival, counts[0], counts[1], left_out


def _careful_csv(text: str, header: list[str], names: Mapping[str, str]) -> tuple[Any, Any, Any, Any, int]:
    delimiter = _delimiter(text[: text.find("\n")])
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        lines = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise InvalidInput(f"trace line {reader.line_num}", str(error), "comma-separated values") from error
    # the column itself, or the one whose cells hold a JSON object with the key
    where = {role: header.index(name if name in header else name.partition(".")[0]) for role, name in names.items()}
    rows, left_out = [], 0
    for line, cells in lines[1:]:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) <= max(where.values()):
            raise InvalidInput(f"trace line {line}", delimiter.join(cells), f"{len(header)} columns")
        told = {role: cells[at] for role, at in where.items()}
        for role, name in names.items():
            if name not in header:
                told[role] = _said(value_at(_nested(header, cells), name))
        if delimiter == ";":
            told = {role: DECIMAL_COMMA.sub(r"\1.\2", cell.strip()) for role, cell in told.items()}
        if any(_is_blank(cell) for cell in told.values()):
            left_out += 1
        else:
            rows.append((line, *_values(line, names, told)))
    return (*_columns(rows), left_out)


def _said(value: Any) -> str:
    return "" if value is None else str(value)


def _is_blank(cell: str) -> bool:
    return cell.strip().lower() in BLANK


def _values(line: int, names: Mapping[str, str], told: Mapping[str, str]) -> tuple[float, int | None, int | None]:
    return (
        time_s(f"trace line {line}, {names['arrival']}", told["arrival"]),
        _count(line, names["prompt"], told["prompt"]) if "prompt" in told else None,
        _count(line, names["output"], told["output"]) if "output" in told else None,
    )


def _columns(rows: list[tuple[int, float, int | None, int | None]]) -> tuple[Ints, Floats, Ints | None, Ints | None]:
    line = np.array([row[0] for row in rows], dtype=np.int64)
    arrival = np.array([row[1] for row in rows], dtype=np.float64)
    counts = [
        None if any(row[at] is None for row in rows) else np.array([row[at] for row in rows], dtype=np.int64)
        for at in (2, 3)
    ]
    return line, arrival, counts[0], counts[1]


# -- JSON lines --------------------------------------------------------------------------------------------------------


def _jsonl(text: str, fmt: str | None, columns: Mapping[str, str]) -> Recorded:
    rows: list[tuple[int, float, int | None, int | None]] = []
    chains: list[list[Any]] = []
    records = list(records_in(text))
    names = _keys(records, fmt, columns)
    is_mooncake, left_out = names == MOONCAKE._asdict(), 0
    for line, content, item in records:
        told = {role: value_at(item, name) for role, name in names.items()}
        missing = [names[role] for role, value in told.items() if value is None]
        if missing and is_mooncake:
            raise InvalidInput(f"trace line {line}", content, f"the key {', '.join(missing)}")
        if any(value is None or _is_blank(str(value)) for value in told.values()):
            left_out += 1
            continue
        arrival, prompt, output = _values(line, names, {role: str(value) for role, value in told.items()})
        rows.append((line, arrival / 1000 if is_mooncake else arrival, prompt, output))
        chains.append(_chain(line, item.get("hash_ids")))
    if not rows:
        raise InvalidInput("trace line 1", "no record with a time and tokens", f"the keys {', '.join(MOONCAKE)}")
    lines, times, prompts, outputs = _columns(rows)
    return Recorded(
        kind="mooncake" if is_mooncake else "jsonl",
        line=lines,
        arrival_s=times,
        prompt_tokens=prompts,
        output_tokens=outputs,
        chains=chains if any(chains) else None,
        column=names["arrival"],
        left_out=left_out,
    )


def _keys(records: list[Record], fmt: str | None, columns: Mapping[str, str]) -> dict[str, str]:
    """Key of each role, by the first record that has all of them, else by the first."""
    if not records:
        raise InvalidInput("trace line 1", "no record of a request", f"the keys {', '.join(MOONCAKE)}")
    line, content, first = records[0]
    if fmt == "mooncake" or (not columns and set(MOONCAKE) <= set(first)):
        return MOONCAKE._asdict()
    each = (_roles(flat_keys(item), columns) for _, _, item in records[:HEAD_RECORDS])
    found = next((roles for roles in each if len(roles) == len(ROLES)), _roles(flat_keys(first), columns))
    if "arrival" not in found:
        raise InvalidInput(f"trace line {line}", content, f"the key {', '.join(MOONCAKE)}, or their names")
    return found


def _chain(line: int, ids: Any) -> list[Any]:
    """The prompt's block ids; empty where the record has none."""
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(isinstance(item, (int, str)) for item in ids):
        raise InvalidInput(f"trace line {line}, hash_ids", ids, "a list of whole numbers, one per block of the prompt")
    return ids


# -- logs --------------------------------------------------------------------------------------------------------------


def _request_log(text: str) -> Recorded | None:
    """Requests in a log of SGLang, vLLM or a web server; None where the text is no such log."""
    rows: list[tuple[int, float, int | None, int | None]] = []
    kind = ""
    for line, content in enumerate(text.split("\n"), start=1):
        told = _log_row(content) if any(word in content for word in LOG_WORDS) else None
        if told is None:
            continue
        kind = kind or told[0]
        if told[0] == kind:
            rows.append((line, *told[1:]))
    if not rows:
        return None
    lines, times, prompts, outputs = _columns(rows)
    return Recorded(
        kind=kind, line=lines, arrival_s=times, prompt_tokens=prompts, output_tokens=outputs, chains=None, column="time"
    )


def _log_row(content: str) -> tuple[str, float, int | None, int | None] | None:
    match = _SGLANG.search(content)
    if match:
        return "sglang log", _moment(match["time"], "%Y-%m-%d %H:%M:%S"), int(match["prompt"]), int(match["output"])
    match = _VLLM.search(content)
    if match:
        ids = _VLLM_IDS.search(content)
        tokens = ids["ids"].count(",") + 1 if ids and ids["ids"].strip() else None
        return "vllm log", _moment(f"2000-{match['time']}", "%Y-%m-%d %H:%M:%S"), tokens, None
    match = _ACCESS.search(content)
    if match and match["verb"] == "POST":
        return "access log", _moment(match["time"], "%d/%b/%Y:%H:%M:%S %z"), None, None
    match = _BALANCER.match(content)
    if match and match["verb"] == "POST":
        return "load balancer log", time_s("time", match["came"] or match["time"]), None, None
    return None


def _moment(text: str, form: str) -> float:
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# -- values ------------------------------------------------------------------------------------------------------------


def time_s(field: str, text: str) -> float:
    """Seconds of a time given as a number or as a date and time."""
    text = text.strip()
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
        value = float(text.replace(",", "") if _THOUSANDS.fullmatch(text.strip()) else text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_TOKENS or not value.is_integer():
        raise InvalidInput(f"trace line {line}, {column}", text, f"a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return int(value)
