"""Command line: `headroom COMMAND`, or `python -m planner COMMAND` in a checkout.

Exit code 0 on success, 1 where `check` finds another verdict; 2 and one line on stderr on bad input.
"""

from __future__ import annotations

import argparse
import codecs
import dataclasses
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from planner.answer import (
    Fit,
    changed_verdict,
    dask_executor,
    fits,
    fits_text,
    over_time,
    plain,
    plan,
    plan_dict,
    plan_html,
    plan_text,
    recommend,
    replica_of,
    search_text,
    size,
    time_text,
)
from planner.catalog import catalog_date, findings_of, findings_text, hub_ids, model_names, write_findings
from planner.deploy import Artifact, artifact, artifacts, formats
from planner.errors import InvalidInput, PlannerError
from planner.scenario import (
    Decoded,
    Scenario,
    capacity_fraction,
    field_rows,
    from_json,
    from_query,
    is_address,
    message,
    preset,
    preset_names,
    to_query,
)
from planner.serve import serve_dashboard, serve_mcp, serve_rest
from planner.service import Replica, capacity_rps, first_requests, measure
from planner.simulation import format_seed_table
from planner.tables import cell_of_text
from planner.workload import TRACE_ROLES, Requests, draw, fitted, hours_of_trace, read_trace, with_rate

MAX_FILE_BYTES = 5_000_000
MAX_ERRORS_SHOWN = 3


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program name; None: those of the process.

    Returns
    -------
    int
        0 on success, 1 where `check` finds another verdict, 2 on bad input.
    """
    try:
        options = _parser().parse_args(argv)
        code = options.run(options) or 0
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
    except PlannerError as error:
        print(f"error: {' '.join(message(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _discard_output()  # the reader has gone (`| head`): nothing is left to say
        return 0
    except OSError as error:
        _discard_output()
        what = error.filename or "the output could not be written"
        print(f"error: {what}: {error.strerror or error}", file=sys.stderr)
        return 2
    return code


def _discard_output() -> None:
    # Python must not try to flush again when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Wrong arguments end like any bad input: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise PlannerError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    called = Path(sys.argv[0]).stem  # the command of the installed package, or `python -m planner`
    prog = called if called == "headroom" else "python -m planner"
    parser = _Parser(prog=prog, description="Capacity planning for LLM serving.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = _Parser(add_help=False)
    shared.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="JSON file, '-' for stdin, a link or its query string"
    )
    shared.add_argument("--preset", metavar="NAME", help="scenario to start from: " + ", ".join(preset_names()))
    shared.add_argument("--requests", type=int, metavar="N", help="number of simulated requests")
    shared.add_argument("--seed", type=int, metavar="N", help="seed of the random draws")
    shared.add_argument("--json", action="store_true", help="write JSON")
    replay = _Parser(add_help=False)
    replay.add_argument(
        "--trace",
        metavar="FILE",
        help="trace to replay: Azure, Vidur, BurstGPT or other CSV, Mooncake or OpenAI JSONL, request or access log",
    )
    _add_columns(replay)
    replay.add_argument(
        "--calibration",
        metavar="FILE",
        help="what `calibrate` wrote: the plan follows your own runs",
    )
    replay.add_argument(
        "--log", metavar="FILE", help="start-up log of this deployment: its memory replaces the estimate"
    )

    command = commands.add_parser("plan", parents=[shared, replay], help="the whole plan")
    command.add_argument("--html", metavar="FILE", help="also write the plan as a printable page")
    command.set_defaults(run=_plan)
    command = commands.add_parser(
        "time", parents=[shared, replay], help="24 hours, a failure and 24 months of the plan"
    )
    command.set_defaults(run=_time)
    command = commands.add_parser("simulate", parents=[shared, replay], help="the simulation alone")
    command.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="engine preset to simulate instead of the scenario's; repeat it to compare several",
    )
    command.set_defaults(run=_simulate)
    command = commands.add_parser("recommend", parents=[shared, replay], help="search for the cheapest deployment")
    command.add_argument("--gpus", metavar="LIST", help="only these GPUs, with how many: 'H100 SXM:8, L40S'")
    command.add_argument("--vendor", metavar="NAME", help="only GPUs of this vendor")
    command.add_argument("--max-gpus", type=int, metavar="N", help="at most N GPUs, all replicas together")
    command.add_argument("--one-server", action="store_true", help="all GPUs in one server")
    command.add_argument("--measured", action="store_true", help="only GPUs whose kernels were measured")
    command.add_argument("--price", metavar="KIND", help="ondemand, reserved, spot or owned")
    command.add_argument("--dask", metavar="ADDRESS", help="search on the Dask cluster of this scheduler")
    command.set_defaults(run=_recommend)
    command = commands.add_parser("fits", help="every model of the catalog that starts on a GPU")
    command.add_argument("gpu", metavar="GPU", help="a GPU of the catalog, such as 'RTX 4090'")
    command.add_argument("--count", type=int, default=1, metavar="N", help="GPUs that one copy of a model may use")
    command.add_argument("--context", type=int, default=8192, metavar="TOKENS", help="context of one session")
    command.add_argument("--engine", action="append", metavar="NAME", help="engine to try; repeat it for several")
    command.add_argument("--json", action="store_true", help="write JSON")
    command.set_defaults(run=_fits)
    command = commands.add_parser("deploy", parents=[shared, replay], help="the commands and files that run the plan")
    command.add_argument("--format", metavar="NAME", help="only this form: " + ", ".join(formats()))
    command.add_argument("--out", metavar="FOLDER", help="also write each form to a file in this folder")
    command.set_defaults(run=_deploy)
    command = commands.add_parser("validate", help="predict every row of a measurement file and print the errors")
    command.add_argument("file", metavar="FILE.csv")
    command.add_argument("--json", action="store_true", help="write JSON")
    command.add_argument("--out", metavar="PREDICTED.csv", help="also write the predictions row by row")
    command.set_defaults(run=_validate)
    command = commands.add_parser("check", help="plan a saved plan again; exit code 1 when its verdict has changed")
    command.add_argument("file", metavar="PLAN.json", help="a plan as `plan --json` writes it")
    command.set_defaults(run=_check)
    command = commands.add_parser("fields", help="the fields of a scenario: link name, unit, default, what is valid")
    command.add_argument("--json", action="store_true", help="write JSON")
    command.set_defaults(run=_fields)
    command = commands.add_parser("read", help="read a log, a benchmark's output or recorded traffic into a plan")
    command.add_argument("file", metavar="FILE", help="log, benchmark, metrics or trace; '-' for stdin")
    _add_columns(command)
    command.add_argument("--json", action="store_true", help="write JSON")
    command.set_defaults(run=_read_report)
    command = commands.add_parser("seed", help="the scheduling comparison of the seed article")
    command.set_defaults(run=lambda options: print(format_seed_table()))
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
    command = commands.add_parser(
        "advise", parents=[shared, replay], help="the load test that would narrow a plan most"
    )
    command.set_defaults(run=_advise)
    command = commands.add_parser(
        "catalog", help="the models that are known; refresh: compare config.json files with them"
    )
    command.add_argument(
        "action", nargs="?", choices=("refresh",), metavar="refresh", help="compare, and say what changed"
    )
    command.add_argument(
        "sources", nargs="*", metavar="FOLDER_OR_ID", help="folders with config.json, or ids on the hub"
    )
    command.add_argument("--write", action="store_true", help="put what is new or changed into the catalog")
    command.add_argument("--json", action="store_true", help="write JSON")
    command.set_defaults(run=_catalog)
    command = commands.add_parser("serve", help="the dashboard")
    command.add_argument("--address", metavar="ADDRESS", help="address to listen on; every address without it")
    command.add_argument("--port", type=int, metavar="PORT", help="port to listen on; 8501 without it")
    command.set_defaults(run=lambda options: serve_dashboard(options.address, options.port))
    command = commands.add_parser("mcp", help="an MCP server on standard input and output, for assistants")
    command.set_defaults(run=lambda options: serve_mcp())
    command = commands.add_parser("rest", help="the same tools over HTTP, JSON in and out")
    command.add_argument("--address", default="127.0.0.1", metavar="ADDRESS", help="address to listen on")
    command.add_argument("--port", type=int, default=8502, metavar="PORT", help="port to listen on; 0: any free one")
    command.set_defaults(run=lambda options: serve_rest(options.address, options.port))
    return parser


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="column of a trace with names of its own; ROLE: " + ", ".join(TRACE_ROLES) + "; repeat it for each",
    )


def _columns(options: argparse.Namespace) -> dict[str, str]:
    found = {}
    for text in options.column:
        role, given, name = text.partition("=")
        if not given or role not in TRACE_ROLES:
            raise InvalidInput("--column", text, "ROLE=NAME, where ROLE is one of " + ", ".join(TRACE_ROLES))
        found[role] = name
    return found


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
    refused = decoded.errors
    if not is_address(options.scenario or ""):  # chat and mail programs add their own parameters to addresses
        refused += decoded.unknown
    if refused:
        raise PlannerError(" ".join(map(message, refused[:MAX_ERRORS_SHOWN])))
    for problem in decoded.problems:
        print(f"warning: {' '.join(problem.split())}", file=sys.stderr)
    scenario = decoded.scenario
    if options.requests is not None:
        scenario = scenario.replace(num_requests=options.requests)
    if options.seed is not None:
        scenario = scenario.replace(seed=options.seed)
    return _measured(scenario, getattr(options, "calibration", None), getattr(options, "log", None))


def _measured(scenario: Scenario, calibration: str | None, log: str | None) -> Scenario:
    """The scenario with the calibration that a file holds, and with the memory that a start-up log prints."""
    if not calibration and not log:
        return scenario
    from planner.reading import read, with_calibration, with_printed  # noqa: PLC0415 - its tables only here

    if calibration:
        text = read_file(Path(calibration), "--calibration", "a calibration that `calibrate` wrote")
        scenario = with_calibration(scenario, text, "--calibration")
    return with_printed(read(_own_file(log), scenario), scenario) if log else scenario


def _read(text: str, base: Scenario) -> Decoded:
    if text == "-":
        return _read_text(_decode(_read_stdin(), "SCENARIO", "-", "UTF-8 text"), base)
    if is_address(text) and not _names_a_file(text):
        return from_query(text, base)
    if text.startswith("?") or ("=" in text and not _is_file(text)):
        return from_query(text, base)
    return _read_text(
        read_file(Path(text), "SCENARIO", "a JSON file, '-' for stdin, or a link copied from the dashboard"), base
    )


def _read_stdin(field: str = "SCENARIO", max_bytes: int = MAX_FILE_BYTES) -> bytes:
    try:
        return sys.stdin.buffer.read(max_bytes + 1)
    except (AttributeError, OSError, ValueError) as error:  # closed: None, or a file that cannot be read
        raise InvalidInput(field, "-", "text on standard input, which is closed") from error


def _names_a_file(address: str) -> bool:
    try:
        return urlsplit(address).path.endswith(".json")
    except ValueError:  # no address after all, as from_query will say
        return False


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a file name, or with invalid characters
        return False


def _read_text(text: str, base: Scenario) -> Decoded:
    if len(text) > MAX_FILE_BYTES:
        raise InvalidInput("SCENARIO", f"{len(text):,} characters", f"at most {MAX_FILE_BYTES:,} characters")
    stripped = text.strip()
    is_query = is_address(stripped) or ("=" in stripped and not stripped.startswith(("{", "[")))
    return from_query(stripped, base) if is_query else from_json(stripped, base)


def read_file(path: Path, field: str, valid: str, *, max_bytes: int | None = MAX_FILE_BYTES) -> str:
    """The text of a file of at most `max_bytes` (None: any size, for traces).

    Raises
    ------
    InvalidInput
        When it does not exist, is too large or is not text.
    """
    try:
        if path.is_char_device():  # such as /dev/zero, which never ends
            raise InvalidInput(field, str(path), valid)
        with path.open("rb") as file:
            data = file.read() if max_bytes is None else file.read(max_bytes + 1)
        if max_bytes is not None and len(data) > max_bytes:
            raise InvalidInput(field, str(path), f"a file of at most {max_bytes:,} bytes")
        return _decode(data, field, str(path), valid)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, str(path), valid) from error


def _decode(data: bytes, field: str, value: str, valid: str) -> str:
    """Text from UTF-8, or from UTF-16 with a byte-order mark, which some shells write."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(field, value, valid) from error


def _plan(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    done = plan(scenario, requests=_trace(options, scenario))
    if options.html:
        try:
            Path(options.html).write_text(plan_html(done), encoding="utf-8")
        except OSError as error:
            raise InvalidInput("--html", options.html, "a writable file path") from error
    if options.json:
        print(json.dumps(plan_dict(done), indent=2))
    else:
        print(plan_text(done))


def _fits(options: argparse.Namespace) -> None:
    found = fits(options.gpu, count=options.count, context_tokens=options.context, engines=options.engine)
    if options.json:
        fields = [item.name for item in dataclasses.fields(Fit) if item.name != "scenario"]
        rows = [
            {name: plain(getattr(item, name)) for name in fields} | {"link": to_query(item.scenario)} for item in found
        ]
        print(json.dumps(rows, indent=2))
    else:
        print(fits_text(found))


def _deploy(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    done = plan(scenario, requests=_trace(options, scenario))
    found = (artifact(done, options.format),) if options.format else artifacts(done)
    if options.out:
        _write_artifacts(Path(options.out), found)
    if options.json:
        print(json.dumps([plain(item) for item in found], indent=2))
    elif options.format:
        if found[0].problem:
            raise PlannerError(found[0].problem)
        print(found[0].text, end="")
    else:
        for item in found:
            print(f"### {item.title} ({item.format}): {item.filename}\n{item.text or '# ' + item.problem}\n")


def _write_artifacts(folder: Path, found: tuple[Artifact, ...]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item in found:
            if item.text:
                (folder / item.filename).write_text(item.text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput("--out", str(folder), "a folder that can be written to") from error


def _time(options: argparse.Namespace) -> None:
    """The day of a trace is that of its hours; its rate stays the scenario's."""
    scenario = read_scenario(options)
    trace = _trace(options, scenario)
    if trace is not None:
        scenario = scenario.replace(day_shape="drawn", day_hours=hours_of_trace(trace))
    done = plan(scenario)
    found = over_time(done)
    if options.json:
        print(json.dumps({**plain(found), "link": to_query(scenario)}, indent=2))
    else:
        print(time_text(done, found))


def _trace(options: argparse.Namespace, scenario: Scenario) -> Requests | None:
    if not options.trace:
        return None
    text = read_file(Path(options.trace), "--trace", "a readable trace file", max_bytes=None)
    requests = read_trace(text, columns=_columns(options), lengths=draw(scenario))
    return requests if options.requests is None else first_requests(requests, scenario.num_requests)


def _simulate(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    names = options.policy or [scenario.engine]
    trace = _trace(options, scenario)
    out = []
    for name in names:
        lane = scenario.replace(engine=name)
        sized = size(lane)
        replica = replica_of(sized)
        requests = trace if trace is not None else offered(lane, replica, options.preset)
        replica.run(first_requests(requests, 50))  # compiles outside the timed run
        started = time.perf_counter()
        result = replica.run(requests)
        wall_s = time.perf_counter() - started
        metrics = measure(result, lane.service_level)
        out.append(
            {
                "policy": name,
                "requests": len(requests),
                "wall_s": wall_s,
                "simulated_requests_per_s": len(requests) / wall_s if wall_s > 0 else math.inf,
                "duration_s": result.duration_s,
                "num_steps": result.num_steps,
                "verdict": result.verdict,
                "metrics": plain(metrics),
            }
        )
    if options.json:
        print(json.dumps(out[0] if len(out) == 1 else {"policies": out}, indent=2))
        return
    for item in out:
        print(_simulation_line(item))


def offered(scenario: Scenario, replica: Replica, preset: str | None) -> Requests:
    """The scenario's requests at the rate that reaches one replica.

    The reference preset gives its rate as a share of capacity, which only the replica knows.
    """
    requests = draw(scenario)
    share = capacity_fraction(preset)
    if share is not None:
        probe = first_requests(requests, 4000)
        return with_rate(requests, share * capacity_rps(replica, probe))
    if scenario.is_open_loop:
        return with_rate(requests, scenario.peak_rate_rps / (scenario.num_replicas or 1))
    return requests


def _simulation_line(item: dict[str, Any]) -> str:
    metrics = item["metrics"]
    return (
        f"{item['policy']}: {item['requests']:,} requests in {item['duration_s']:.1f} s of simulated time "
        f"({item['verdict']}), {metrics['output_tokens_per_s']:,.1f} output tokens/s, "
        f"TTFT p50/p95/p99 {_ms(metrics['ttft_s'])} ms, TPOT {_ms(metrics['tpot_s'])} ms, "
        f"goodput {metrics['goodput_rps']:.2f} req/s; simulated in {item['wall_s'] * 1e3:.1f} ms "
        f"({item['simulated_requests_per_s']:,.0f} requests/s)"
    )


def _ms(summary: dict[str, float | None]) -> str:
    return " / ".join("—" if summary[q] is None else f"{1e3 * (summary[q] or 0):.1f}" for q in ("p50", "p95", "p99"))


def _recommend(options: argparse.Namespace) -> None:
    scenario = restricted(read_scenario(options), options)
    trace = _trace(options, scenario)
    if trace is not None:  # each candidate draws from what the recording looks like, at rates of its own
        scenario = fitted(scenario, trace)
    with _workers(options.dask) as executor:
        found = recommend(scenario, executor=executor)
    if options.json:
        body = plain(found)
        for item, candidate in zip(body["candidates"], found.candidates, strict=True):
            item["link"] = to_query(candidate.scenario)
        print(json.dumps(body, indent=2))
        return
    print(search_text(found, scenario))


def restricted(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """The scenario with the restrictions that the options name."""
    changes = {
        "my_gpus": options.gpus,
        "gpu_vendor": options.vendor,
        "most_gpus": options.max_gpus,
        "price_kind": options.price,
        "one_node": options.one_server or None,
        "measured_only": options.measured or None,
    }
    return scenario.replace(**{name: value for name, value in changes.items() if value is not None})


@contextmanager
def _workers(address: str | None) -> Iterator[Executor]:
    """Where the search computes: this machine's cores, or the Dask cluster at an address."""
    if address is not None:
        with dask_executor(address) as executor:
            yield executor
        return
    plan(Scenario(num_requests=20))  # compiles, or loads what was compiled: the forked workers inherit it
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as pool:
        yield pool


def _validate(options: argparse.Namespace) -> None:
    from planner.accuracy import format_validation, validate  # noqa: PLC0415 - pandas only here

    if not _is_file(options.file):  # pandas would fetch an address, and wait for a pipe
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


def _check(options: argparse.Namespace) -> int:
    text = read_file(Path(options.file), "PLAN.json", "a plan as `python -m planner plan --json` writes it")
    decoded = from_json(text)
    if decoded.errors:
        raise PlannerError(" ".join(map(message, decoded.errors[:MAX_ERRORS_SHOWN])))
    done = plan(decoded.scenario)
    changes = changed_verdict(json.loads(text), done)
    print(done.headline)
    for sentence in changes:
        print(f"changed: {sentence}")
    if not changes:
        print("The verdict stands.")
    return 1 if changes else 0


def _fields(options: argparse.Namespace) -> None:
    rows = field_rows()
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        unit = f" [{row['unit']}]" if row["unit"] else ""
        print(f"{row['link']:>6}  {row['name']}{unit} = {json.dumps(row['default'])}; {row['valid']}")
        print(f"        {row['label']}: {row['help']}" if row["help"] else f"        {row['label']}")


def _read_report(options: argparse.Namespace) -> None:
    from planner.reading import overlay, overlay_text, read, reading_dict, reading_text  # noqa: PLC0415 - only here

    reading = read(_own_file(options.file), columns=_columns(options))
    beside = overlay(reading)
    if options.json:
        print(json.dumps(reading_dict(reading) | {"overlay": plain(beside)}, indent=2))
    else:
        print(reading_text(reading) + ("" if reading.traffic is not None else f"\n\n{overlay_text(beside)}"))


def _own_file(name: str) -> bytes:
    """What an engine or a benchmark printed, from a file or from standard input."""
    from planner.reading import MAX_BYTES  # noqa: PLC0415 - its tables only here

    if name == "-":
        return _read_stdin("FILE", MAX_BYTES)
    if not _is_file(name):
        raise InvalidInput("FILE", name, "a file on this machine")
    with Path(name).open("rb") as file:
        return file.read(MAX_BYTES + 1)


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
    readings = [read(_own_file(name), base) for name in options.measurements]
    every = tuple(run for reading in readings for run in reading.runs)
    made = calibrate(dataclasses.replace(readings[0], runs=every), base if options.scenario else None)
    text = json.dumps(calibration_dict(made), indent=2)
    if options.out:
        try:
            Path(options.out).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidInput("--out", options.out, "a file that can be written") from error
    print(text if options.json else calibration_text(made))


def _advise(options: argparse.Namespace) -> None:
    """The load test to run next; with a calibration, by what its runs left in doubt."""
    from planner.reading import advice_text, advise, factor_sd_of  # noqa: PLC0415 - its tables only here

    scenario = read_scenario(options)
    done = plan(scenario, requests=_trace(options, scenario), with_policies=False)
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


def _catalog(options: argparse.Namespace) -> None:
    """How many models are known and since when; with `refresh`, what configs say against that."""
    if options.action is None:
        about = {"date": catalog_date(), "models": len(model_names()), "hub_ids": len(hub_ids())}
        text = f"Catalog of {about['date']}: {about['models']:,} models, {about['hub_ids']:,} further ids of the hub."
        print(json.dumps(about) if options.json else text)
        return
    if not options.sources:
        raise InvalidInput("FOLDER_OR_ID", None, "a folder with a config.json, or owner/name on the hub")
    findings = findings_of(options.sources)
    kept = write_findings(findings, time.strftime("%Y-%m-%d")) if options.write else ()
    if options.json:
        print(json.dumps({"findings": plain(findings), "written": kept}, indent=2))
        return
    print(findings_text(findings))
    if options.write:
        print(f"Written into the catalog: {', '.join(kept) or 'nothing'}.")


def _is_of_kernels(name: str) -> bool:
    """Whether a path holds kernel tables or a CSV of step times, by its header."""
    path = Path(name)
    if path.is_dir():
        return True
    if not _is_file(name):
        return False
    with path.open("rb") as file:
        header = file.readline(MAX_FILE_BYTES).decode("utf-8-sig", errors="replace")
    return bool({"kernel", "step_ms"} & {cell.strip().strip('"') for cell in header.split(",")})


if __name__ == "__main__":
    sys.exit(main())
