"""How a plan's engine is started, whichever it is."""

from __future__ import annotations

from planner.answer import Plan
from planner.deploy.launch import Launch
from planner.deploy.llamacpp import llamacpp_launch
from planner.deploy.sglang import sglang_launch
from planner.deploy.tgi import tgi_launch
from planner.deploy.trtllm import trtllm_launch
from planner.deploy.vllm import vllm_launch
from planner.errors import InvalidInput

_LAUNCHES = {
    "vllm": vllm_launch,
    "sglang": sglang_launch,
    "trtllm": trtllm_launch,
    "llamacpp": llamacpp_launch,
    "tgi": tgi_launch,
}


def launch(plan: Plan) -> Launch:
    """How one replica of a plan is started.

    Parameters
    ----------
    plan : Plan
        With a simulation or only sized; it need not serve.

    Raises
    ------
    InvalidInput
        When the plan's engine is a scheduling policy without a server, such as orca or fastertransformer.
    """
    make = _LAUNCHES.get(plan.engine.family)
    if make is None:
        raise InvalidInput(
            "engine",
            plan.scenario.engine,
            "an engine with a server: vllm, sglang, tensorrt-llm, llama-server, ollama or tgi; this one is a policy to "
            "compare with",
        )
    return make(plan)
