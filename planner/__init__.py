"""Headroom: what hardware and settings serve this LLM to these users, and what it costs.

    inputs, model, catalog ─► scenario ─► workload ─► memory ─► step_time ─► simulation ─► service ─► cost ─► answer
                                        deploy, accuracy, reading, charts, jobs ─► serve ─► dashboard, commands

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

A folder is a stage, and its `__init__` is the only door: what comes in, what goes out, and the names that others may
use. A stage imports only from its left in the drawing; `units`, `errors`, `arrays` and `tables` are the ground under
all of them.

========== =====================================================================================================
inputs     value objects: GPU, engine settings, traffic, limits
model      the shape of a model: layers by kind, weights by group, bits per weight
catalog    published models, GPUs, engines, lengths, prices: data files with a source for each value
scenario   everything that a user can set, with its link and JSON
workload   the requests: drawn from the traffic, or replayed from a trace
memory     what the engine's start-up log will say, and whether it starts
step_time  milliseconds of a batch
simulation the engine's scheduler: requests in, a record of each out
service    latencies, load, and how many replicas the targets need
cost       GPU-hours, hosted APIs, break-even
answer     `plan`, its headline and reasons, our confidence, the search, the report
deploy     what carries a plan out: commands, manifests, a client, the load test that verifies it
accuracy   published measurements against predictions; calibration
reading    start-up logs and benchmarks that a user brings, read into a plan
charts     the only stage with plotly
jobs       work for many at once, in processes that can be ended
serve      the tools that programs call, over MCP and HTTP; the dashboard as a process
dashboard  the only stage with streamlit
commands   the command line: options in, text and files out
========== =====================================================================================================

Where a change belongs: a fact in a data file of `catalog/`; an input in `scenario/`, beside those of its group; a rule
of an engine in `memory/` or `simulation/`; a sentence of the answer in `answer/wording.py`; a page in
`dashboard/pages/`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.answer import Plan as Plan
    from planner.answer import plan as plan
    from planner.answer import recommend as recommend
    from planner.answer import reprice as reprice
    from planner.errors import Infeasible as Infeasible
    from planner.errors import InvalidInput as InvalidInput
    from planner.scenario import Scenario as Scenario
    from planner.scenario import from_query as from_query
    from planner.scenario import to_query as to_query

_HOME = {
    "Infeasible": "planner.errors",
    "InvalidInput": "planner.errors",
    "Plan": "planner.answer",
    "Scenario": "planner.scenario",
    "from_query": "planner.scenario",
    "plan": "planner.answer",
    "recommend": "planner.answer",
    "reprice": "planner.answer",
    "to_query": "planner.scenario",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Loaded on first use: numpy, pandas and the compiled simulator cost seconds that `import planner` need not pay.
    if name not in _HOME:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
