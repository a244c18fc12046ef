import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import anyio
import pytest

from planner.errors import InvalidInput
from planner.scenario.documented import field_rows
from planner.serve import rest
from planner.serve.rest import MOST_BYTES, MOST_CALLS, app, serve_rest
from planner.serve.tools import call, tools

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def service():
    command = [sys.executable, "-m", "planner", "rest", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            yield re.fullmatch(r"Listening on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline()).group(1)
        finally:
            process.send_signal(signal.SIGTERM)


def ask(url, body=None):
    """Status and JSON of a reply."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data)) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else text.decode()


def test_a_plan_over_http_is_that_of_the_call(service):
    arguments = {"scenario": {"users": 60, "num_requests": 100}}
    assert ask(f"{service}/plan", arguments) == (200, call("plan", arguments))


def test_what_can_be_called_and_set_is_told(service):
    status, body = ask(f"{service}/")
    assert status == 200
    assert {tool["name"]: tool["arguments"] for tool in body["tools"]} == {
        name: tool.arguments for name, tool in tools().items()
    }
    assert ask(f"{service}/fields") == (200, {"fields": field_rows()})
    assert ask(f"{service}/health") == (200, {"status": "ok"})


def test_bad_input_is_422_with_field_value_and_what_would_be_valid(service):
    status, body = ask(f"{service}/plan", {"scenario": {"users": 0}})
    assert status == 422
    assert (body["field"], body["value"]) == ("users", 0)
    assert "from 1 to" in body["valid"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("plan", b"no JSON", 422),
        ("plan", b"\xff\xfe", 422),
        ("plan", b"[1]", 422),
        ("plan", b"[" * 100_000, 422),
        ("plan", b'{"scenario": {"users": NaN}}', 422),
        ("plan", b'{"scenario": {"title": "\\ud800"}}', 422),
        ("plan", b" " * (MOST_BYTES + 1), 413),
        ("nonsense", b"{}", 404),
        ("plan", None, 405),
    ],
)
def test_what_strangers_may_send_is_refused(path, body, status, service):
    assert ask(f"{service}/{path}", body)[0] == status


def test_a_port_that_is_taken_is_refused(service):
    with pytest.raises(InvalidInput) as caught:
        serve_rest("127.0.0.1", int(service.rpartition(":")[2]))
    assert caught.value.field == "--address"


def test_every_tool_has_an_address():
    assert {route.path for route in app().routes} >= {f"/{name}" for name in tools()}


def replies(calls, *, body=b"{}", ends=True, after=lambda found: None):
    """The statuses that the service answers to clients who POST to /list at once; `after` sees them as they come."""
    service, found = app(), []

    async def ask_once():
        scope = {"type": "http", "method": "POST", "path": "/list", "query_string": b"", "headers": [], "root_path": ""}
        parts = [body]

        async def receive():
            if not parts:
                await anyio.sleep_forever()
            return {"type": "http.request", "body": parts.pop(), "more_body": not ends}

        async def send(message):
            if message["type"] == "http.response.start":
                found.append(message["status"])
                after(found)

        await service(scope, receive, send)

    async def all_at_once():
        async with anyio.create_task_group() as group:
            for _ in range(calls):
                group.start_soon(ask_once)

    anyio.run(all_at_once)
    return found


def test_more_calls_than_it_takes_are_told_to_come_again(monkeypatch):
    refused = threading.Event()

    def wait(name, arguments):
        refused.wait(60)
        return {}

    monkeypatch.setattr(rest, "perform", wait)
    found = replies(MOST_CALLS + 3, after=lambda found: refused.set() if found.count(503) == 3 else None)
    assert found == [503] * 3 + [200] * MOST_CALLS


def test_a_body_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(rest, "BODY_S", 0.05)
    assert replies(2, body=b"{", ends=False) == [408, 408]
