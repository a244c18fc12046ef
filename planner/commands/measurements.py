"""Commands about what was measured: validate, read, calibrate, and which load test to run next."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from planner.answer import plain, plan
from planner.commands.files import MAX_FILE_BYTES, is_file, own_file, read_file, write_file
from planner.commands.options import add_columns, add_json, planning
from planner.commands.scenarios import columns_of, read_scenario, trace_of
from planner.errors import InvalidInput
from planner.scenario import to_query
from planner.tables import cell_of_text

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    command = commands.add_parser("read", help="read a log, a benchmark's output or recorded traffic into a plan")
    command.add_argument(
        "file", metavar="FILE", nargs="+", help="log, benchmark, metrics or trace of one deployment; '-' for stdin"
    )
    add_columns(command)
    add_json(command)
    command.set_defaults(run=_read_report)
    command = commands.add_parser(
        "calibrate",
        help="fit a plan to your own benchmark, for `plan --calibration`; or efficiency profiles to kernel step times",
    )
    command.add_argument(
        "measurements",
        metavar="FILE",
        nargs="+",
        help="outputs or JSON of a benchmark, as `read` reads them ('-' for stdin); or one CSV of step times or kernel "
        "measurements, or the folder of published kernel tables, which give profiles for the catalog",
    )
    command.add_argument("--scenario", metavar="SCENARIO", help="the plan whose deployment was measured")
    command.add_argument("--out", default="", metavar="FILE", help="file for the calibration or the profiles")
    command.add_argument("--json", action="store_true", help="print the calibration as JSON")
    command.add_argument("--source", default="", help="of profiles: where the measurements come from; stored in them")
    command.add_argument("--date", default="", help="of profiles: date of the fit; stored in them")
    command.set_defaults(run=_calibrate)
    command = commands.add_parser("advise", parents=planning(), help="the load test that would narrow a plan most")
    command.set_defaults(run=_advise)
    command = commands.add_parser("validate", help="predict every row of a measurement file and print the errors")
    command.add_argument("file", metavar="FILE.csv")
    add_json(command)
    command.add_argument("--out", metavar="PREDICTED.csv", help="also write the predictions row by row")
    command.set_defaults(run=_validate)


def _validate(options: argparse.Namespace) -> None:
    from planner.accuracy import format_validation, validate  # noqa: PLC0415 - pandas only here

    if not is_file(options.file):  # pandas would fetch an address, and wait for a pipe
        raise InvalidInput("FILE.csv", options.file, "a CSV file on this machine")
    done = validate(options.file)
    if options.out:
        safe = done.predicted.rename(columns=cell_of_text).map(cell_of_text)
        try:
            with Path(options.out).open("w", encoding="utf-8", newline="") as file:
                safe.to_csv(file, index=False)
        except (OSError, ValueError) as error:
            raise InvalidInput("--out", options.out, "a writable file path") from error
    print(json.dumps(done.to_dict(), indent=2) if options.json else format_validation(done))


def _read_report(options: argparse.Namespace) -> None:
    from planner.reading import overlay, overlay_text, read, reading_dict, reading_text  # noqa: PLC0415 - only here

    first, *more = options.file
    if more:
        _read_together(options)
        return
    reading = read(own_file(first), columns=columns_of(options))
    beside = overlay(reading)
    if options.json:
        print(json.dumps(reading_dict(reading) | {"overlay": plain(beside)}, indent=2))
    else:
        print(reading_text(reading) + ("" if reading.traffic is not None else f"\n\n{overlay_text(beside)}"))


def _read_together(options: argparse.Namespace) -> None:
    from planner.reading import read_together, together_dict, together_text  # noqa: PLC0415 - only here

    found = read_together([(name, own_file(name)) for name in options.file], columns=columns_of(options))
    print(json.dumps(together_dict(found), indent=2) if options.json else together_text(found))


def _calibrate(options: argparse.Namespace) -> None:
    """A benchmark's output calibrates a plan; step times and kernel measurements make profiles for the catalog."""
    first, *more = options.measurements
    if _is_of_kernels(first) and not more:
        from planner.accuracy import fit_file  # noqa: PLC0415 - only this command fits

        text = fit_file(first, out=options.out, source=options.source, date=options.date)
        if not options.out:
            print(text)
        return
    from planner.reading import calibrate, calibration_dict, calibration_text, read  # noqa: PLC0415 - only here

    base = read_scenario(argparse.Namespace(scenario=options.scenario, preset=None, requests=None, seed=None))
    readings = [read(own_file(name), base) for name in options.measurements]
    every = tuple(run for reading in readings for run in reading.runs)
    made = calibrate(dataclasses.replace(readings[0], runs=every), base if options.scenario else None)
    text = json.dumps(calibration_dict(made), indent=2)
    if options.out:
        write_file(Path(options.out), text + "\n", "--out", "a writable file path")
    print(text if options.json else calibration_text(made))


def _is_of_kernels(name: str) -> bool:
    """Whether a path holds kernel tables or a CSV of step times, by its header."""
    path = Path(name)
    if path.is_dir():
        return True
    if not is_file(name):
        return False
    with path.open("rb") as file:
        header = file.readline(MAX_FILE_BYTES).decode("utf-8-sig", errors="replace")
    return bool({"kernel", "step_ms"} & {cell.strip().strip('"') for cell in header.split(",")})


def _advise(options: argparse.Namespace) -> None:
    """The load test to run next; with a calibration, by what its runs left in doubt."""
    from planner.reading import advice_text, advise, factor_sd_of  # noqa: PLC0415 - its tables only here

    scenario = read_scenario(options)
    done = plan(scenario, requests=trace_of(options, scenario), with_policies=False)
    left = None
    if options.calibration:
        left = factor_sd_of(read_file(Path(options.calibration), "--calibration", "a calibration"))
    found = advise(done, left)
    if options.json:
        body = plain(found)
        for item, test in zip(body["tests"], found.tests, strict=True):
            item["link"] = to_query(test.scenario)
        print(json.dumps(body, indent=2))
    else:
        print(advice_text(found))
