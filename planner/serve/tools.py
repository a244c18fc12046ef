"""The tools that programs call: a name and arguments in, plain types for JSON out. No transport, files or network."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from planner.errors import InvalidInput, require_choice
from planner.serve import calls, schemas
from planner.serve.listing import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: `arguments` is the JSON schema of what it takes, `cpu_s` the processor time that it may take.

    `answer` of one that `spreads` also takes an executor for its parts, and `cpu_s` is then time by the clock.
    """

    name: str
    description: str
    arguments: schemas.Schema
    answer: Callable[..., calls.Answer]
    cpu_s: float
    spreads: bool = False


def call(name: str, arguments: calls.Arguments, executor: Executor | None = None) -> calls.Answer:
    """Answer one call.

    Parameters
    ----------
    name : str
        A tool's name.
    arguments : mapping
        By name, as the tool's schema says.
    executor : concurrent.futures.Executor, optional
        What does the parts of a tool that spreads; None: this thread.

    Returns
    -------
    dict
        Plain types for JSON.

    Raises
    ------
    InvalidInput
        When an argument, or a field of the scenario, cannot be used.
    Infeasible
        When every argument is valid, but no plan exists.
    """
    tool = named(name)
    if not isinstance(arguments, Mapping):
        raise InvalidInput("arguments", arguments, "a JSON object")
    known = tool.arguments["properties"]
    for argument in arguments:
        if argument not in known:
            raise InvalidInput("argument", argument, "one of " + ", ".join(known))
    for argument in tool.arguments.get("required", ()):
        if arguments.get(argument) is None:
            said = known[argument]["description"].rstrip(".")
            raise InvalidInput(argument, None, said[0].lower() + said[1:])
    return tool.answer(arguments, executor) if tool.spreads else tool.answer(arguments)


def named(name: str) -> Tool:
    """The tool of a name.

    Raises
    ------
    InvalidInput
        When there is none.
    """
    require_choice("tool", name, tools())
    return tools()[name]


@functools.cache
def tools() -> dict[str, Tool]:
    """Every tool by its name."""
    return {tool.name: tool for tool in (*_planning(), *_looking_up())}


def _planning() -> tuple[Tool, ...]:
    declared = schemas.scenario_fields()
    rows = schemas.count("Most rows", default=calls.FEW_ROWS, at_most=calls.MOST_ROWS)
    plans = {
        "type": "array",
        "items": schemas.arguments(schemas.source() | {"name": schemas.text("What to call the plan.")}),
        "minItems": 2,
        "maxItems": calls.MOST_PLANS,
        "description": "The plans, each from its scenario, link or preset.",
    }
    return (
        Tool(
            name="plan",
            description="How many GPUs a model and its traffic need, how fast it is and what it costs: headline, "
            "verdict, figures, findings, error bands, and the link that opens the plan.",
            arguments=schemas.arguments(schemas.source(declared)),
            answer=calls.plan_call,
            cpu_s=60.0,
        ),
        Tool(
            name="recommend",
            description="The cheapest deployments that meet the targets: GPU, split, weight format, engine settings. "
            "The fields my_gpus, gpu_vendor, most_gpus, one_node, measured_only and price_kind restrict the search, "
            "which takes half a minute.",
            arguments=schemas.arguments(schemas.source(declared) | {"rows": rows}),
            answer=calls.recommend_call,
            cpu_s=300.0,
            spreads=True,
        ),
        Tool(
            name="compare",
            description="Two to four plans side by side: figures, the inputs that differ, and one link for all.",
            arguments=schemas.arguments({"plans": plans}, ("plans",)),
            answer=calls.compare_call,
            cpu_s=200.0,
        ),
    )


def _looking_up() -> tuple[Tool, ...]:
    found_by = schemas.text("Only entries whose name has this in it.")
    rows = schemas.count("Most rows, the largest models first", default=calls.FEW_ROWS, at_most=calls.MOST_ROWS)
    context = schemas.count("Context of one session [tokens]", default=8192, at_least=16, at_most=100_000_000)
    fitting = {
        "gpu": schemas.text("A GPU of the catalog, such as RTX 4090."),
        "count": schemas.count("GPUs that one copy of a model may use", default=1, at_most=1024),
        "context_tokens": context,
        "engines": schemas.engines(),
        "search": found_by,
        "rows": rows,
    }
    listing = {
        "what": {"type": "string", "enum": list(KINDS), "description": "What to list."},
        "search": found_by,
        "rows": schemas.count("Most rows", default=calls.MOST_ROWS, at_most=calls.MOST_ENTRIES),
    }
    link = schemas.text("A link of the dashboard, or its query string.")
    return (
        Tool(
            name="fits",
            description="Every model of the catalog that starts on a GPU: weights, longest context, sessions, speed.",
            arguments=schemas.arguments(fitting, ("gpu",)),
            answer=calls.fits_call,
            cpu_s=300.0,
        ),
        Tool(
            name="read_link",
            description="What a link says: its settings that differ from the defaults, and what could not be used.",
            arguments=schemas.arguments({"link": link}, ("link",)),
            answer=calls.read_link_call,
            cpu_s=10.0,
        ),
        Tool(
            name="list",
            description="What may be named: models, GPUs, engines, weight and KV cache formats, lengths, presets, and "
            "the fields of a scenario with unit, default and bounds.",
            arguments=schemas.arguments(listing, ("what",)),
            answer=calls.list_call,
            cpu_s=30.0,
        ),
    )
