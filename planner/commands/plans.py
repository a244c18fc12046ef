"""Commands about one plan: the plan itself, over time, its deployment, and a saved one planned again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from planner.answer import changed_verdict, over_time, plain, plan, plan_dict, plan_html, plan_text, time_text
from planner.commands.files import read_file, write_file
from planner.commands.options import add_json, planning
from planner.commands.scenarios import read_scenario, refuse, trace_of
from planner.deploy import Artifact, artifact, artifacts, formats
from planner.errors import InvalidInput, PlannerError
from planner.scenario import field_rows, from_json, to_query
from planner.workload import hours_of_trace

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    command = commands.add_parser("plan", parents=planning(), help="the whole plan")
    command.add_argument("--html", metavar="FILE", help="also write the plan as a printable page")
    command.set_defaults(run=_plan)
    command = commands.add_parser("time", parents=planning(), help="24 hours, a failure and 24 months of the plan")
    command.set_defaults(run=_time)
    command = commands.add_parser("deploy", parents=planning(), help="the commands and files that run the plan")
    command.add_argument("--format", metavar="NAME", help="only this form: " + ", ".join(formats()))
    command.add_argument("--out", metavar="FOLDER", help="also write each form to a file in this folder")
    command.set_defaults(run=_deploy)
    command = commands.add_parser("check", help="plan a saved plan again; exit code 1 when its verdict has changed")
    command.add_argument("file", metavar="PLAN.json", help="a plan as `plan --json` writes it")
    command.set_defaults(run=_check)
    command = commands.add_parser("fields", help="the fields of a scenario: link name, unit, default, what is valid")
    add_json(command)
    command.set_defaults(run=_fields)


def _plan(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    done = plan(scenario, requests=trace_of(options, scenario))
    if options.html:
        write_file(Path(options.html), plan_html(done), "--html", "a writable file path")
    if options.json:
        print(json.dumps(plan_dict(done), indent=2))
    else:
        print(plan_text(done))


def _time(options: argparse.Namespace) -> None:
    """The day of a trace is that of its hours; its rate stays the scenario's."""
    scenario = read_scenario(options)
    trace = trace_of(options, scenario)
    if trace is not None:
        scenario = scenario.replace(day_shape="drawn", day_hours=hours_of_trace(trace))
    done = plan(scenario)
    found = over_time(done)
    if options.json:
        print(json.dumps({**plain(found), "link": to_query(scenario)}, indent=2))
    else:
        print(time_text(done, found))


def _deploy(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    done = plan(scenario, requests=trace_of(options, scenario))
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


def _check(options: argparse.Namespace) -> int:
    text = read_file(Path(options.file), "PLAN.json", "a plan as `python -m planner plan --json` writes it")
    decoded = from_json(text)
    refuse(decoded.errors)
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
