"""The tools as an MCP server on standard input and output, with the official SDK (the extra `mcp`)."""

from __future__ import annotations

import json
import logging
from typing import Any

from planner.errors import PlannerError
from planner.jobs import OFFICE
from planner.serve.answers import refusal
from planner.serve.bounded import perform
from planner.serve.tools import tools

LOG = logging.getLogger("planner.serve")
INSTRUCTIONS = (
    "Headroom plans LLM serving: how many of which GPU a model needs for its traffic, how fast it is, what it costs. "
    "Times are in seconds, memory in GiB or bytes as the names say. A link is the query string of the dashboard. "
    "Use list for the names of models and GPUs and for the fields of a scenario."
)
FAULT = {"error": "A bug in Headroom kept this call from being answered; the server's log has the details."}


def serve_mcp() -> None:
    """Serve until standard input ends.

    Raises
    ------
    PlannerError
        When the SDK is not installed.
    """
    try:
        import anyio  # noqa: PLC0415 - comes with the extra
        from mcp.server.stdio import stdio_server  # noqa: PLC0415
    except ImportError as error:
        raise PlannerError("mcp needs the official SDK: pip install 'headroom[mcp]', or pip install mcp") from error

    async def run() -> None:
        server = mcp_server()
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    OFFICE.start()
    anyio.run(run)


def mcp_server() -> Any:
    """The SDK's server with our tools; any transport can run it."""
    import anyio  # noqa: PLC0415
    from mcp import types  # noqa: PLC0415
    from mcp.server.lowlevel import Server  # noqa: PLC0415

    def result(body: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
        text = types.TextContent(type="text", text=json.dumps(body))
        return types.CallToolResult(content=[text], structured_content=body, is_error=is_error)

    async def on_list_tools(context: object, params: object) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.arguments, annotations=hints)
                for tool in tools().values()
            ]
        )

    async def on_call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            body = await anyio.to_thread.run_sync(perform, params.name, params.arguments or {})
        except PlannerError as error:
            return result(refusal(error), is_error=True)
        except RuntimeError:
            LOG.exception("the call of %s failed", params.name)
            return result(FAULT, is_error=True)
        return result(body)

    return Server("headroom", instructions=INSTRUCTIONS, on_list_tools=on_list_tools, on_call_tool=on_call_tool)
