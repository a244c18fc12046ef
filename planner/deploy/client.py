"""A client of the planned server, for the OpenAI library."""

from __future__ import annotations

from planner.answer import Plan
from planner.deploy.launch import Launch


def openai_client(plan: Plan, launch: Launch) -> str:
    """A Python program that streams one answer from the server.

    Parameters
    ----------
    plan : Plan
        Its answer limit and client timeout are the request's.
    launch : Launch
        Names the model and the port.

    Returns
    -------
    str
        Needs `pip install openai`.
    """
    scenario = plan.scenario
    limit = scenario.output_limit_tokens
    timeout = f", timeout={scenario.timeout_s!r}" if scenario.timeout_s is not None else ""
    most = f"    max_tokens={limit!r},\n" if limit is not None else ""
    return (
        "from openai import OpenAI  # pip install openai\n"
        "\n"
        f'client = OpenAI(base_url="http://localhost:{launch.port}/v1", api_key="none"{timeout})\n'
        "stream = client.chat.completions.create(\n"
        f"    model={launch.model!r},\n"
        '    messages=[{"role": "user", "content": "Which GPU has 80 GB of memory?"}],\n'
        f"{most}"
        "    stream=True,\n"
        ")\n"
        "for chunk in stream:\n"
        "    if chunk.choices:\n"
        '        print(chunk.choices[0].delta.content or "", end="", flush=True)\n'
        "print()\n"
    )
