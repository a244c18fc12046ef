"""Headroom for others: the tools that programs call, over MCP and HTTP, and the dashboard as a process.

In: a tool's name and its arguments, or an address to listen on. Out: plain types for JSON, or a server that runs until
it is stopped.
"""

from planner.serve.mcp_server import serve_mcp
from planner.serve.page import serve_dashboard

__all__ = ["serve_dashboard", "serve_mcp", "serve_rest"]


def serve_rest(address: str, port: int) -> None:
    """Serve the tools over HTTP, as `planner.serve.rest.serve_rest` says; its packages are loaded only here."""
    from planner.serve import rest  # noqa: PLC0415

    rest.serve_rest(address, port)
