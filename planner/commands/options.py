"""What several commands take: a scenario, recorded traffic, the user's own measurements."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, NoReturn

from planner.errors import PlannerError
from planner.scenario import preset_names
from planner.workload import TRACE_ROLES

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction["Parser"]


class Parser(argparse.ArgumentParser):
    """Wrong arguments end like any bad input: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises
        ------
        PlannerError
            Always.
        """
        raise PlannerError(f"{message} (see {self.prog} --help)")


@functools.cache
def planning() -> list[Parser]:
    """The options of a command that plans a scenario."""
    shared = Parser(add_help=False)
    shared.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="JSON file, '-' for stdin, a link or its query string"
    )
    shared.add_argument("--preset", metavar="NAME", help="scenario to start from: " + ", ".join(preset_names()))
    shared.add_argument("--requests", type=int, metavar="N", help="number of simulated requests")
    shared.add_argument("--seed", type=int, metavar="N", help="seed of the random draws")
    shared.add_argument(
        "--trace",
        metavar="FILE",
        help="trace to replay: Azure, Vidur, BurstGPT or other CSV, Mooncake or OpenAI JSONL, request or access log",
    )
    add_columns(shared)
    shared.add_argument("--calibration", metavar="FILE", help="what `calibrate` wrote: the plan follows your own runs")
    shared.add_argument(
        "--log", metavar="FILE", help="start-up log of this deployment: its memory replaces the estimate"
    )
    add_json(shared)
    return [shared]


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Let a command be told which column of recorded traffic is what."""
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="column of a trace with names of its own; ROLE: " + ", ".join(TRACE_ROLES) + "; repeat it for each",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Let a command write JSON."""
    parser.add_argument("--json", action="store_true", help="write JSON")
