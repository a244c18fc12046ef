"""The targets that a plan is held to, and what a link or JSON that names only some of them asks for.

Naming one target turns off the others: who asks for TTFT below 2 s has not asked for a TPOT. Who names none gets the
usual pair of the defaults. `null` in JSON and `none` in a link turn a target off, so naming only that asks for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: fields of the targets -> name, and the latency of a `ServiceLevel` and of `ServingMetrics` that each limits
TARGETS: dict[str, tuple[str, str, str]] = {
    "ttft_target_s": ("TTFT", "ttft_s", "ttft_s"),
    "tpot_target_s": ("TPOT", "tpot_s", "tpot_s"),
    "itl_target_s": ("ITL", "itl_s", "max_itl_s"),
    "e2e_target_s": ("E2E", "e2e_s", "e2e_s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One latency target: the Scenario's field, its name, the latency that it limits and the limit in seconds."""

    field: str
    name: str
    latency: str  # field of ServingMetrics: its quantile is held against the limit
    limit_s: float


def targets_of(values: Mapping[str, float | None]) -> tuple[Target, ...]:
    """The targets that are on, in the order TTFT, TPOT, ITL, E2E.

    Parameters
    ----------
    values : mapping of str to float or None
        Field → limit in seconds; None: no target.
    """
    return tuple(
        Target(field=field, name=name, latency=latency, limit_s=limit)
        for field, (name, _, latency) in TARGETS.items()
        if (limit := values[field]) is not None
    )


def unnamed_targets_off(named: Mapping[str, Any]) -> dict[str, None]:
    """The targets to turn off where a link or JSON names others; none where it names no target."""
    if not TARGETS.keys() & named.keys():
        return {}
    return dict.fromkeys(field for field in TARGETS if field not in named)
