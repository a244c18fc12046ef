"""The command about the catalog: how old it is, and where config.json files differ from it."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

from planner.answer import plain
from planner.catalog import catalog_date, findings_of, findings_text, hub_ids, model_names, write_findings
from planner.commands.options import add_json
from planner.errors import InvalidInput

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("catalog", help="how old the catalog is; refresh: compare config.json files with it")
    command.add_argument(
        "action", nargs="?", choices=("refresh",), metavar="refresh", help="compare, and say what changed"
    )
    command.add_argument(
        "sources", nargs="*", metavar="FOLDER_OR_ID", help="folders with config.json, or ids on the hub"
    )
    command.add_argument("--write", action="store_true", help="put what is new or changed into the catalog")
    add_json(command)
    command.set_defaults(run=_catalog)


def _catalog(options: argparse.Namespace) -> None:
    """How many models are known and since when; with `refresh`, where config.json files differ."""
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
