"""The ceiling that the API server sets: what it has to do for one request.

The server itself is a station of the step loop (`kernel.server`): one per replica, serial, first come first served. It
reads each request (HTTP, chat template, tokenisation) and sends each token. Engine and server work side by side, so
the slower of the two sets the pace.
"""

from __future__ import annotations

from planner.arrays import Floats, Ints
from planner.inputs import EngineSettings
from planner.step_time import StepTimeTable


def server_s(step_time: StepTimeTable, engine: EngineSettings, prompt_tokens: Ints, output_tokens: Ints) -> Floats:
    """Work of the API server for each request: no replica finishes more than 1 / its mean a second.

    Parameters
    ----------
    step_time : StepTimeTable
        Carries the server's work per request, per token of its prompt and per message.
    engine : EngineSettings
        Says how many tokens a message carries.
    prompt_tokens, output_tokens : array
        Lengths of the prompts and of the answers.

    Returns
    -------
    array
        Seconds.
    """
    reading_s = step_time.server_per_request_s + step_time.server_per_prompt_token_s * prompt_tokens
    work_s: Floats = reading_s + step_time.server_per_token_s * output_tokens / engine.stream_interval_tokens
    return work_s
