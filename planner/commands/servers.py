"""Commands that run until they are stopped: the dashboard, and the tools over MCP and HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.serve import serve_dashboard, serve_mcp, serve_rest

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
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
