"""Recorded traffic as requests: Azure, Vidur, Mooncake and BurstGPT files, JSON lines, request logs, access logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput
from planner.units import SECONDS_PER_DAY, counted
from planner.workload.requests import Requests
from planner.workload.trace_formats import EPOCH_UNITS, FORMATS, MAX_TOKENS, Recorded, recorded_in

__all__ = ["MAX_TOKENS", "MOONCAKE_BLOCK_TOKENS", "read_trace"]

MOONCAKE_BLOCK_TOKENS = 512
MAX_SPAN_S = 366 * SECONDS_PER_DAY


def read_trace(
    text_or_path: str | Path,
    fmt: str | None = None,
    columns: Mapping[str, str] | None = None,
    lengths: Requests | None = None,
) -> Requests:
    """The requests of a recorded trace.

    Parameters
    ----------
    text_or_path : str or Path
        The trace's text, or its file.
    fmt : str, optional
        azure (TIMESTAMP, ContextTokens, GeneratedTokens), vidur (arrived_at, num_prefill_tokens,
        num_decode_tokens), burstgpt (Timestamp, Request tokens, Response tokens) as CSV, or mooncake
        (JSONL: timestamp in ms, input_length, output_length, hash_ids). None: recognised, as are other CSV and JSON
        lines by the names in trace_columns.csv (Langfuse, LiteLLM, LangSmith, Helicone, OpenTelemetry's spans), request
        logs of vLLM and SGLang, and access logs of web servers and load balancers.
    columns : mapping, optional
        Column of "arrival", "prompt" and "output", where their names are the writer's own; "": it has none.
    lengths : Requests, optional
        Lengths for a recording that states none (access logs), taken in order and repeated.

    Returns
    -------
    Requests
        Sorted, times from 0; notes say what was fixed, filled in or left out.

    Raises
    ------
    InvalidInput
        Unknown format, missing column or impossible value, with its line.
    """
    text = _text(text_or_path).lstrip("\ufeff")
    if not text.strip():
        raise InvalidInput("trace", "empty", "at least one request")
    if fmt is not None and fmt not in FORMATS:
        raise InvalidInput("fmt", fmt, "one of " + ", ".join(FORMATS))
    return _requests(recorded_in(text, fmt, columns), lengths)


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


def _requests(told: Recorded, lengths: Requests | None) -> Requests:
    notes = [f"left out {counted(told.left_out, 'row')} without a time or tokens"] if told.left_out else []
    prompt = _filled("prompt", told.prompt_tokens, lengths, len(told.line), notes)
    output = _filled("output", told.output_tokens, lengths, len(told.line), notes)
    answered = np.flatnonzero(output > 0)
    if not len(answered):
        raise InvalidInput("trace", "no request has output tokens", "at least one request with output tokens")
    if len(answered) < len(output):
        notes.append(f"left out {len(output) - len(answered):,} requests without output (they failed in the recording)")
    line = told.line[answered]
    arrival = _in_seconds(told.arrival_s[answered], notes)
    _check_span(arrival, line, told.column)
    order = np.argsort(arrival, kind="stable")
    falls = np.flatnonzero(np.diff(arrival) < 0)
    if len(falls):
        notes.append(f"sorted the requests: times were out of order, first at line {line[falls[0] + 1]}")
    repeated = int((np.diff(arrival[order]) == 0).sum())
    if repeated:
        notes.append(f"{repeated:,} requests arrive at the same time as the one before")
    prompt, output = np.maximum(1, prompt[answered])[order], output[answered][order]
    chains = None if told.chains is None else [told.chains[answered[index]] for index in order]
    group, prefix = _prefixes(chains, prompt)
    return Requests(
        arrival_s=arrival[order] - arrival.min(),
        prompt_tokens=prompt,
        output_tokens=output,
        output_limit_tokens=output.copy(),
        prefix_group=group,
        prefix_tokens=prefix,
        notes=tuple(notes),
    )


def _filled(side: str, tokens: Ints | None, lengths: Requests | None, count: int, notes: list[str]) -> Ints:
    """Tokens of one side; where the recording has none, those of the requests that stand in."""
    if tokens is not None:
        return tokens
    if lengths is None or not len(lengths):
        raise InvalidInput("trace line 1", f"no {side} tokens", f"a column of {side} tokens, or lengths to use instead")
    notes.append(f"the recording states no {side} tokens: those of the plan stand in")
    given: Ints = getattr(lengths, f"{side}_tokens")
    return np.resize(given, count)


def _in_seconds(arrival: Floats, notes: list[str]) -> Floats:
    """Times in seconds: an epoch that lies beyond the year 5138 counts in a smaller unit."""
    least = float(arrival.min())
    for above, per_second in EPOCH_UNITS:
        if least > above:
            notes.append(f"times read as 1/{per_second:,.0f} s")
            return arrival / per_second
    return arrival


def _check_span(arrival: Floats, line: Ints, column: str) -> None:
    """Reject a trace that spans years: a wrong time, or two clocks in one file."""
    first, last = int(np.argmin(arrival)), int(np.argmax(arrival))
    if arrival[last] - arrival[first] > MAX_SPAN_S:
        days = (arrival[last] - arrival[first]) / SECONDS_PER_DAY
        between = f"{days:,.4g} days between lines {line[first]} and {line[last]}"
        valid = f"times within {MAX_SPAN_S / SECONDS_PER_DAY:.0f} days of each other"
        raise InvalidInput(f"trace line {max(line[first], line[last])}, {column}", between, valid)


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
