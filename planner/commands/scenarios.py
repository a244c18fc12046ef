"""The scenario and the recorded traffic that the options of a command describe."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from planner.commands.files import MAX_FILE_BYTES, decode, is_file, own_file, read_file, read_stdin
from planner.errors import InvalidInput, PlannerError
from planner.scenario import Decoded, Scenario, from_json, from_query, is_address, message, preset
from planner.service import first_requests
from planner.workload import TRACE_ROLES, Requests, draw, read_trace

MAX_ERRORS_SHOWN = 3


def read_scenario(options: argparse.Namespace) -> Scenario:
    """The scenario that the options describe; adjusted settings are warnings on stderr.

    Raises
    ------
    InvalidInput, PlannerError
        When a part of it cannot be used, since the plan would answer another question. (The dashboard opens the rest
        of such a link and says what it ignored.)
    """
    base = preset(options.preset) if options.preset else Scenario()
    decoded = Decoded(scenario=base)
    if options.scenario:
        decoded = _read(options.scenario, base)
    refused = list(decoded.errors)
    if not is_address(options.scenario or ""):  # chat and mail programs add their own parameters to addresses
        refused += decoded.unknown
    refuse(refused)
    for problem in decoded.problems:
        print(f"warning: {' '.join(problem.split())}", file=sys.stderr)
    scenario = decoded.scenario
    if options.requests is not None:
        scenario = scenario.replace(num_requests=options.requests)
    if options.seed is not None:
        scenario = scenario.replace(seed=options.seed)
    return _measured(scenario, getattr(options, "calibration", None), getattr(options, "log", None))


def refuse(errors: Sequence[PlannerError]) -> None:
    """Raise the first few errors as one; nothing without any."""
    if errors:
        raise PlannerError(" ".join(map(message, errors[:MAX_ERRORS_SHOWN])))


def trace_of(options: argparse.Namespace, scenario: Scenario) -> Requests | None:
    """The requests of `--trace`, at most `--requests` of them; None without the option.

    Raises
    ------
    InvalidInput
        When the file cannot be read as recorded traffic.
    """
    if not options.trace:
        return None
    text = read_file(Path(options.trace), "--trace", "a readable trace file", max_bytes=None)
    requests = read_trace(text, columns=columns_of(options), lengths=draw(scenario))
    return requests if options.requests is None else first_requests(requests, scenario.num_requests)


def columns_of(options: argparse.Namespace) -> dict[str, str]:
    """Role → name of the columns that `--column` names.

    Raises
    ------
    InvalidInput
        When one is not ROLE=NAME.
    """
    found = {}
    for text in options.column:
        role, given, name = text.partition("=")
        if not given or role not in TRACE_ROLES:
            raise InvalidInput("--column", text, "ROLE=NAME, where ROLE is one of " + ", ".join(TRACE_ROLES))
        found[role] = name
    return found


def _measured(scenario: Scenario, calibration: str | None, log: str | None) -> Scenario:
    """The scenario with the calibration that a file holds, and with the memory that a start-up log prints."""
    if not calibration and not log:
        return scenario
    from planner.reading import read, with_calibration, with_printed  # noqa: PLC0415 - its tables only here

    if calibration:
        text = read_file(Path(calibration), "--calibration", "a calibration that `calibrate` wrote")
        scenario = with_calibration(scenario, text, "--calibration")
    return with_printed(read(own_file(log), scenario), scenario) if log else scenario


def _read(text: str, base: Scenario) -> Decoded:
    if text == "-":
        return _read_text(decode(read_stdin(), "SCENARIO", "-", "UTF-8 text"), base)
    if is_address(text) and not _names_a_file(text):
        return from_query(text, base)
    if text.startswith("?") or ("=" in text and not is_file(text)):
        return from_query(text, base)
    return _read_text(
        read_file(Path(text), "SCENARIO", "a JSON file, '-' for stdin, or a link copied from the dashboard"), base
    )


def _names_a_file(address: str) -> bool:
    try:
        return urlsplit(address).path.endswith(".json")
    except ValueError:  # no address after all, as from_query will say
        return False


def _read_text(text: str, base: Scenario) -> Decoded:
    if len(text) > MAX_FILE_BYTES:
        raise InvalidInput("SCENARIO", f"{len(text):,} characters", f"at most {MAX_FILE_BYTES:,} characters")
    stripped = text.strip()
    is_query = is_address(stripped) or ("=" in stripped and not stripped.startswith(("{", "[")))
    return from_query(stripped, base) if is_query else from_json(stripped, base)
