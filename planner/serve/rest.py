"""The tools over HTTP: JSON in, JSON out, bounded in size, time and number."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from planner.errors import InvalidInput, PlannerError, require_int
from planner.jobs import OFFICE
from planner.scenario import field_rows
from planner.serve.answers import refusal
from planner.serve.bounded import perform
from planner.serve.tools import tools

LOG = logging.getLogger("planner.serve")
MOST_BYTES = 1_000_000  # of a request's body: a scenario with a config.json in it takes a tenth
MOST_CALLS = 32  # under way or waiting; further ones are told to come again
MOST_CONNECTIONS = 256
AGAIN_S = 5
BODY_S = 30  # for a body to arrive
GRACE_S = 5  # for calls under way when the service is stopped
Fields = dict[str, Any]


def app() -> Starlette:
    """The service: `GET /` lists the tools, `GET /fields` a scenario's fields, `POST /TOOL` calls one."""
    under_way = anyio.Semaphore(MOST_CALLS)

    async def answer(request: Request) -> JSONResponse:
        try:
            with anyio.fail_after(BODY_S):  # one that trickles in must not hold up the others
                body = await _body(request)
        except TimeoutError:
            return JSONResponse({"error": f"The body did not arrive within {BODY_S} s."}, 408)
        if body is None:
            return JSONResponse({"error": f"The body is longer than {MOST_BYTES:,} bytes."}, 413)
        try:
            under_way.acquire_nowait()
        except anyio.WouldBlock:
            busy = {"error": f"{MOST_CALLS} calls are under way; try again in {AGAIN_S} s."}
            return JSONResponse(busy, 503, headers={"Retry-After": str(AGAIN_S)})
        try:
            return await _answer(request.url.path.strip("/"), body)
        finally:
            under_way.release()

    return Starlette(
        routes=[
            Route("/", _tools),
            Route("/fields", _fields),
            Route("/health", _health),
            *(Route(f"/{name}", answer, methods=["POST"]) for name in tools()),
        ]
    )


async def _answer(name: str, body: bytes) -> JSONResponse:
    try:
        found = await anyio.to_thread.run_sync(perform, name, _parsed(body))
    except PlannerError as error:
        return JSONResponse(refusal(error), 422)
    except RuntimeError:
        LOG.exception("%s failed", name)
        return JSONResponse({"error": "A bug in Headroom kept this call from being answered."}, 500)
    return JSONResponse(found)


async def _body(request: Request) -> bytes | None:
    """The body; None where it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            return None
    return body


def _parsed(body: bytes) -> Fields:
    valid = "a JSON object of the tool's arguments"
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:  # also bytes that are no text
        raise InvalidInput("body", body[:60].decode(errors="replace"), valid) from error
    if not isinstance(arguments, dict):
        raise InvalidInput("body", arguments, valid)
    return arguments


async def _tools(_: Request) -> JSONResponse:
    listed = [
        {"name": tool.name, "description": tool.description, "arguments": tool.arguments} for tool in tools().values()
    ]
    return JSONResponse({"tools": listed})


async def _fields(_: Request) -> JSONResponse:
    return JSONResponse({"fields": field_rows()})


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


def serve_rest(address: str, port: int) -> None:
    """Serve until the process is stopped; says on standard output where.

    Parameters
    ----------
    address : str
        Address to listen on.
    port : int
        Port to listen on; 0: any that is free.

    Raises
    ------
    InvalidInput
        When it cannot listen there.
    """
    require_int("--port", port, at_least=0, at_most=65_535)
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, port), family=family)
    except OSError as error:
        where = f"{address}:{port}"
        raise InvalidInput("--address", where, f"a free port of this machine ({error.strerror})") from error
    with listening:
        OFFICE.start()
        print(f"Listening on http://{address}:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            app(),
            log_level="warning",
            access_log=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
        uvicorn.Server(config).run(sockets=[listening])
