"""What measurements of a deployment say about its step times: five factors on the predicted ones."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from planner.errors import require_number


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScales:
    """Measured ÷ predicted time of each part of the work; 1 is as predicted.

    `weights`: what a step takes for its first token, which is reading the weights and launching kernels. `sequences`:
    what further sequences add to a step of answers, and attention to their KV cache. `prefill`: what the tokens of a
    prompt add. `host`: preparing a step and streaming its tokens on the CPU. `request`: what each request costs in
    front of the engine.
    """

    weights: float = 1.0
    sequences: float = 1.0
    prefill: float = 1.0
    host: float = 1.0
    request: float = 1.0

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            require_number(item.name, getattr(self, item.name), above=0)


AS_PREDICTED = StepScales()
