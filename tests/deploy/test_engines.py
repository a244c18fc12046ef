"""Every command of every engine, over random scenarios."""

import pytest
import yaml

from planner.catalog.flags import flags_of
from planner.deploy.engines import launch
from planner.deploy.llamacpp import WITHOUT_EFFECT
from planner.errors import InvalidInput
from planner.scenario.fields import fields_by_name

from .cases import random_plans, sized

COMMANDS = {
    "vllm": "vllm serve",
    "sglang": "sglang.launch_server",
    "trtllm": "trtllm-serve",
    "llamacpp": "llama-server",
    "tgi": "text-generation-launcher",
}


def keys(tree, before=""):
    for key, value in tree.items():
        yield from keys(value, f"{before}{key}.") if isinstance(value, dict) and value else [f"{before}{key}"]


def test_every_flag_of_300_random_scenarios_is_in_its_release():
    seen = set()
    for plan in random_plans(300, seed=1):
        started = launch(plan)
        if started.engine == "ollama":
            assert {name for name, _ in started.env} <= set(flags_of("ollama serve"))
            continue
        known = flags_of(COMMANDS[started.engine], started.version)
        for options in (started.options, *started.node_options, started.in_container):
            for name, value in options:
                flag = known.get(name) or known[name.replace("--no-", "--", 1)]
                assert (value is None) == (flag.kind == "bool"), (name, value)
                if flag.kind == "int":
                    int(value)
                if flag.kind == "float":
                    float(value)
                if flag.kind == "choice" and plan.scenario.engine_version == "":
                    assert value in flag.choices, (name, value)
                seen.add((started.engine, name))
        for _, text in started.files:
            assert set(keys(yaml.safe_load(text))) <= set(flags_of("trtllm-serve YAML"))
    assert len(seen) > 80  # the scenarios reach most of the flags that are written


#: no engine is told of these, or only together with others
SILENT = {
    *("occupied_gib", "speculative_acceptance", "lora_popularity", "patience_s", "timeout_s", "router"),
    *("host_memory_gib", "gpu_total_gib", "draft_model", "max_loras", "max_lora_rank", "engine_version", "engine"),
    *("offline", "kv_unified"),
}
OTHERS = {
    "count": lambda item: 64 if (item.metadata["maximum"] or 0) >= 64 else item.metadata["maximum"],
    "number": lambda item: 0.5,
    "flag": lambda item: not item.default,
    "text": lambda item: [choice for choice in item.metadata["choices"] if choice != item.default][-1],
}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama-server", "ollama", "tgi"])
def test_a_setting_that_changes_the_engine_is_said_or_named_as_unmet(engine):
    base, usual = launch(sized(engine=engine)), sized(engine=engine)
    for name, item in fields_by_name().items():
        meta = item.metadata
        if (
            meta["group"] not in ("engine", "advanced")
            or name in SILENT
            or (meta["kind"], meta["choices"]) == ("text", None)
        ):
            continue
        plan = sized(engine=engine, **{name: OTHERS[meta["kind"]](item)})
        if plan.engine == usual.engine and plan.memory.kv_tokens == usual.memory.kv_tokens:
            continue  # the engine is the same with it
        if engine in ("llama-server", "ollama") and name in WITHOUT_EFFECT:
            continue
        changed = launch(plan)
        same = (changed.options, changed.env, changed.files) == (base.options, base.env, base.files)
        assert not same or changed.unmet != base.unmet, name


def test_a_policy_without_a_server_has_no_command():
    with pytest.raises(InvalidInput, match="an engine with a server"):
        launch(sized(engine="orca"))
