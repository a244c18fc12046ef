"""The bill dealt to prompt and output tokens, at the month's load, at the targets' limit and at full throughput."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import require_number
from planner.step_time import PrefillChunk, StepTimeTable, StepWork
from planner.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPrice:
    """Prices at one load of the paid hours. [USD]; infinite when nothing is served.

    `usd_per_million_tokens` counts prompt and output tokens alike. Input and output tokens are priced by the GPU time
    that each takes; together they make up the bill.
    """

    load: str
    requests_per_s: float
    usd_per_million_tokens: float
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    usd_per_request: float


def output_weight(step_time: StepTimeTable, *, running: int, context_tokens: int, chunk_tokens: int) -> float:
    """GPU time of an output token ÷ that of a prompt token.

    Parameters
    ----------
    step_time : StepTimeTable
        Of one replica.
    running, context_tokens : int
        Sequences of a decode step, and their mean length.
    chunk_tokens : int
        Prompt tokens of a step that only prefills.
    """
    running, chunk = max(1, running), max(1, chunk_tokens)
    decode = step_time.decode_work(running, context_tokens)
    prefill = StepWork(chunks=(PrefillChunk(num_tokens=chunk),), num_logit_rows=1)
    return step_time.step_s(decode) / running / (step_time.step_s(prefill) / chunk)


def load_price(
    load: str,
    requests_per_s: float,
    *,
    usd_per_hour: float,
    prompt_tokens: float,
    output_tokens: float,
    output_weight: float,
) -> LoadPrice:
    """Prices when so many requests finish in each second that is paid for.

    Parameters
    ----------
    load : str
        What this load is called.
    requests_per_s : float
        Of the whole fleet. [req/s]
    usd_per_hour : float
        Bill of the whole fleet. [USD/h]
    prompt_tokens, output_tokens : float
        Mean of a request. [tokens]
    output_weight : float
        GPU time of an output token ÷ that of a prompt token.
    """
    require_number("requests_per_s", requests_per_s, at_least=0)
    require_number("output_weight", output_weight, above=0)
    each = usd_per_hour / SECONDS_PER_HOUR / requests_per_s if requests_per_s > 0 else math.inf
    weighed = prompt_tokens + output_weight * output_tokens
    total = prompt_tokens + output_tokens
    return LoadPrice(
        load=load,
        requests_per_s=requests_per_s,
        usd_per_million_tokens=each / total * 1e6 if total else math.inf,
        usd_per_million_input_tokens=each / weighed * 1e6 if weighed else math.inf,
        usd_per_million_output_tokens=each / weighed * output_weight * 1e6 if weighed else math.inf,
        usd_per_request=each,
    )
