"""Settings of a plan that no flag carries: which are facts of the host or the clients, and which an engine lacks."""

from __future__ import annotations

from collections.abc import Iterable

from planner.answer import Plan
from planner.catalog import get_engine, version_in_full
from planner.scenario import fields_by_name

#: groups whose inputs describe how an engine runs
ENGINE_GROUPS = ("model", "hardware", "engine", "advanced")
#: inputs that describe the machine, the clients or the plan, and that no engine is told
NOT_FLAGS = frozenset(
    {
        *("title", "model", "model_config", "gpu", "num_replicas", "engine", "engine_version", "weight_dtype"),
        *("max_model_len", "occupied_gib", "speculative_acceptance", "lora_popularity"),
        *("patience_s", "timeout_s", "router", "host_memory_gib", "gpu_total_gib", "draft_model"),
    }
)

#: input → what it sets of the engine; where that is the preset's own value there is nothing to say
SETS = {
    "chunked_prefill": "enable_chunked_prefill",
    "async_scheduling": "async_scheduling",
    "enable_prefix_caching": "enable_prefix_caching",
    "block_size": "block_size",
    "kv_unified": "kv_unified",
}


def unmet_settings(plan: Plan, told: Iterable[str], title: str) -> list[str]:
    """Engine settings that differ from the default, that the plan counts on, and that no flag says.

    Parameters
    ----------
    plan : Plan
        The plan.
    told : iterable of str
        Fields of the scenario that the command carries.
    title : str
        The engine, as the sentences call it.
    """
    usual = get_engine(plan.engine.name, plan.scenario.engine_version)
    as_usual = {name for name, own in SETS.items() if getattr(plan.engine, own) == getattr(usual, own)}
    known, found = NOT_FLAGS | set(told) | as_usual, []
    for name, item in fields_by_name().items():
        meta, value = item.metadata, getattr(plan.scenario, name)
        if meta["group"] in ENGINE_GROUPS and name not in known and value != item.default:
            unit = f" {meta['unit']}" if meta["unit"] else ""
            found.append(f"{meta['label']} = {value}{unit}: {title} has no flag for it.")
    return found


def missing_frontend(plan: Plan, worker: str) -> list[str]:
    """What a command leaves out where the plan has Dynamo's frontend; `worker` is Dynamo's module for the engine."""
    if not plan.scenario.behind_dynamo:
        return []
    return [
        f"Behind Dynamo: python -m dynamo.frontend, and python -m {worker} with these settings; this "
        "command starts the engine's own server."
    ]


def release(plan: Plan) -> str:
    """The release that the plan is made for, in full, such as 0.33.0; "" where the engine names none."""
    return version_in_full(plan.engine.family, plan.engine.version)


def counted_on(pairs: Iterable[tuple[str, object, object]]) -> list[str]:
    """A note of the engine's own defaults that the plan counts on.

    Parameters
    ----------
    pairs : iterable of (flag, what the user set, what the plan resolved)
        Flags that the user left open.
    """
    left = [
        f"{flag} {value:.3g}" if isinstance(value, float) else f"{flag} {value}"
        for flag, given, value in pairs
        if given is None
    ]
    return [f"Left at the engine's defaults, which the plan counts on: {', '.join(left)}."] if left else []
