"""The memory that an engine printed as it started, in place of an estimate."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from planner.errors import require_number


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMemory:
    """What a start-up log prints, per GPU in bytes (`kv_tokens` in tokens); None where it prints nothing."""

    weights_bytes: float | None = None
    activation_bytes: float | None = None
    cuda_graph_bytes: float | None = None
    kv_pool_bytes: float | None = None
    kv_tokens: int | None = None

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not None:
                require_number(item.name, value, at_least=0)
