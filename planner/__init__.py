"""Headroom: what hardware and settings serve this LLM to these users, and what it costs.

    Scenario ─► memory ─► step time ─► simulation ─► metrics ─► cost ─► recommendation ─► charts ─► pages

The library in ten lines::

    from planner import Scenario, plan

    scenario = Scenario(model="Qwen/Qwen3-32B", gpu="H100 SXM", tensor_parallel_size=2, users=800)
    answer = plan(scenario)
    print(answer.headline)
    print(answer.memory.kv_tokens, "tokens of KV cache per replica")
    print(answer.metrics.ttft_s.p95, answer.metrics.tpot_s.p95)
    print(answer.cost.usd_per_million_tokens, "USD per million tokens")
    for link in answer.chain:
        print(link.reason, link.gpus, link.detail)

Where a change belongs: inputs in `scenario`, `model`, `hardware`, `engine`, `traffic` (facts in
`catalog/`); memory in `sizing`; step time in `step_time` and `step_time_model`; the scheduler in
`simulation`; statistics in `metrics`; money in `cost`; the search in `search`; the whole chain in
`planning`; measured against published figures in `accuracy`; drawing in `charts`; pages in `dashboard`.
A module imports only from its left in the drawing above.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.answer import Plan as Plan
    from planner.errors import Infeasible as Infeasible
    from planner.errors import InvalidInput as InvalidInput
    from planner.planning import plan as plan
    from planner.scenario import Scenario as Scenario
    from planner.search import recommend as recommend
    from planner.share import from_query as from_query
    from planner.share import to_query as to_query

_HOME = {
    "Infeasible": "planner.errors",
    "InvalidInput": "planner.errors",
    "Plan": "planner.answer",
    "Scenario": "planner.scenario",
    "from_query": "planner.share",
    "plan": "planner.planning",
    "recommend": "planner.search",
    "to_query": "planner.share",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Loaded on first use: numpy, pandas and the compiled simulator cost seconds that `import planner` need not pay.
    if name not in _HOME:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
