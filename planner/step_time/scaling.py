"""Step times as measurements of a deployment make them: each part of the predicted time by its factor."""

from __future__ import annotations

import dataclasses

from planner.arrays import Floats
from planner.inputs import AS_PREDICTED, StepScales
from planner.step_time.step_table import StepTimeTable

#: fields of a table by the one factor that they take; times over a number of tokens take two (`scaled_growth`)
SEQUENCES = (
    *("attention_base_s", "attention_per_sequence_s", "attention_per_kv_token_s", "attention_floor_s"),
    *("window_base_s", "window_per_sequence_s", "window_per_kv_token_s", "window_floor_s"),
)
PREFILL = ("prefill_pair_s", "prefill_token_s", "window_prefill_pair_s")
HOST = ("host_s", "host_per_sequence_s", "server_per_token_s")
REQUEST = ("request_overhead_s", "server_per_request_s", "server_per_prompt_token_s")


def scaled_growth(times_s: Floats, fixed: float, growth: float) -> Floats:
    """Times over the number of tokens with two factors: reading the weights takes `fixed`, what tokens add `growth`.

    Parameters
    ----------
    times_s : array
        The first is the time of one token. [s]
    fixed, growth : float
        Measured ÷ predicted.
    """
    first = float(times_s[0])
    scaled: Floats = fixed * first + growth * (times_s - first)
    return scaled


def scaled_table(table: StepTimeTable, scales: StepScales) -> StepTimeTable:
    """The table with every time multiplied by its factor.

    Parameters
    ----------
    table : StepTimeTable
        As predicted.
    scales : StepScales
        Measured ÷ predicted.
    """
    if scales == AS_PREDICTED:
        return table
    parts = ((SEQUENCES, scales.sequences), (PREFILL, scales.prefill), (HOST, scales.host), (REQUEST, scales.request))
    changed = {name: getattr(table, name) * factor for names, factor in parts for name in names}
    decode, mixed = table.decode_s.copy(), table.mixed_s.copy()
    decode[1:] = scaled_growth(decode[1:], scales.weights, scales.sequences)
    mixed[1:] = scaled_growth(mixed[1:], scales.weights, scales.prefill)
    head = table.head_s * scales.weights
    return dataclasses.replace(table, decode_s=decode, mixed_s=mixed, head_s=head, **changed)
