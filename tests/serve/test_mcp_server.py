import json
import sys
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.serve import mcp_server
from planner.serve.tools import call, tools

ROOT = Path(__file__).parents[2]


def test_without_the_sdk_it_says_how_to_install_it(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 2
    said = capsys.readouterr()
    assert "pip install 'headroom[mcp]'" in said.err
    assert len(said.err.splitlines()) == 1


def test_a_client_on_standard_input_gets_tools_answers_and_errors():
    mcp = pytest.importorskip("mcp")
    anyio = pytest.importorskip("anyio")
    from mcp.client.stdio import stdio_client

    arguments = {"scenario": {"users": 60, "num_requests": 100}}
    command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "planner", "mcp"], cwd=str(ROOT))

    async def talk():
        async with stdio_client(command) as pipes, mcp.ClientSession(*pipes) as session:
            await session.initialize()
            return (
                await session.list_tools(),
                await session.call_tool("plan", arguments),
                await session.call_tool("plan", {"scenario": {"users": 0}}),
                await session.call_tool("nonsense", {}),
            )

    listed, answer, refused, unknown = anyio.run(talk)
    assert {tool.name: tool.input_schema for tool in listed.tools} == {
        name: tool.arguments for name, tool in tools().items()
    }
    assert not answer.is_error
    assert answer.structured_content == call("plan", arguments)
    assert json.loads(answer.content[0].text) == answer.structured_content
    assert refused.is_error
    assert refused.structured_content["field"] == "users"
    assert "from 1 to" in refused.structured_content["valid"]
    assert unknown.is_error
    assert unknown.structured_content["field"] == "tool"


def test_a_bug_is_an_error_of_the_call_and_not_the_end_of_the_server(monkeypatch):
    pytest.importorskip("mcp")
    import anyio
    from mcp.client import Client

    def fail(name, arguments):
        raise RuntimeError("a traceback")

    monkeypatch.setattr(mcp_server, "perform", fail)

    async def talk():
        async with Client(mcp_server.mcp_server()) as client:
            return await client.call_tool("plan", {})

    answer = anyio.run(talk)
    assert answer.is_error
    assert "traceback" not in answer.content[0].text
