"""The simulation's input: requests as arrays, one entry per request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """The workload: one entry per request, sorted by arrival.

    `prompt_tokens` includes `prefix_tokens` shared with the requests of the same `prefix_group`
    (-1 = none). `output_limit_tokens` is the client's max_tokens.
    In a closed loop (`closed_loop_users` > 0) `arrival_s` is ignored: that many clients send the
    requests in order, each waiting `think_time_s` after its answer.
    """

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    output_limit_tokens: Ints
    prefix_group: Ints
    prefix_tokens: Ints
    closed_loop_users: int = 0
    think_time_s: float = 0.0
    rate_rps: float | None = None  # nominal mean rate of an open loop, where one was set
    kv_ready_tokens: Ints | None = None  # prompt tokens whose KV arrives with the request (disaggregated prefill)
    priority: Ints | None = None  # lower is served first and evicted last; None: all alike
    adapter: Ints | None = None  # LoRA adapter that the request asks for, -1: the base model; None: base model for all
    notes: tuple[str, ...] = ()  # remarks for the reader, such as "was unsorted"

    def __post_init__(self) -> None:
        n = len(self.arrival_s)
        for name in ("prompt_tokens", "output_tokens", "output_limit_tokens", "prefix_group", "prefix_tokens"):
            if len(getattr(self, name)) != n:
                raise InvalidInput(name, len(getattr(self, name)), f"{n} entries, one per request")
        if self.adapter is not None and (len(self.adapter) != n or (n and self.adapter.min() < -1)):
            raise InvalidInput("adapter", len(self.adapter), f"{n} entries from -1, one per request")
        if n and (np.diff(self.arrival_s) < 0).any():
            raise InvalidInput("arrival_s", "unsorted", "times in ascending order")
        if n and (self.prompt_tokens.min() < 0 or self.output_tokens.min() < 1):
            raise InvalidInput("output_tokens", int(self.output_tokens.min()), "at least 1 token per request")

    def __len__(self) -> int:
        return len(self.arrival_s)
