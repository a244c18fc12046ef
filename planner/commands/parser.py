"""The commands and their options."""

from __future__ import annotations

import sys
from pathlib import Path

from planner.commands import catalog, measurements, plans, searches, servers, simulations
from planner.commands.options import Parser


def parser() -> Parser:
    """The parser of the command line: `run` of the parsed options is the command, which takes them."""
    called = Path(sys.argv[0]).stem  # the command of the installed package, or `python -m planner`
    prog = called if called == "headroom" else "python -m planner"
    made = Parser(prog=prog, description="Capacity planning for LLM serving.")
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for group in (plans, simulations, searches, measurements, catalog, servers):
        group.add_to(commands)
    return made
