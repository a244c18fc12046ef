"""How the engine runs: each input reaches the engine, and left alone changes nothing."""

import dataclasses

import pytest

from planner.catalog.engines import engine_names, get_engine
from planner.scenario.advanced import AdvancedEngine
from planner.scenario.runtime import AUTO_ON_OFF, ENGINE_CORES, MEASURED_REQUESTS, MOE_BACKENDS, EngineRuntime
from planner.scenario.scenario import Scenario

OWN = {item.name for item in dataclasses.fields(EngineRuntime)} - {
    item.name for item in dataclasses.fields(AdvancedEngine)
}
FIELDS = {item.name: item for item in dataclasses.fields(EngineRuntime) if item.name in OWN}


@pytest.mark.parametrize("engine", engine_names())
def test_left_alone_they_change_no_preset(engine):
    assert Scenario(engine=engine).engine_settings == get_engine(engine)


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"engine_version": "0.27.1"}, {"version": "0.27.1"}),
        ({"engine_core": "v0", "engine_version": "0.8.5"}, {"use_v1": False, "is_v0": True}),
        ({"engine_core": "v1", "engine_version": "0.7.3"}, {"use_v1": True, "is_v0": False}),
        ({"enforce_eager": True}, {"cuda_graphs": False}),
        ({"encoder_data_parallel": True}, {"encoder_data_parallel": True}),
        ({"plain_awq": True}, {"plain_awq": True}),
        ({"behind_dynamo": True}, {"behind_dynamo": True}),
        ({"moe_runner_backend": "triton"}, {"moe_runner_backend": "triton"}),
        ({"latent_cache": "off"}, {"latent_cache": False}),
        ({"state_prefixes": "on"}, {"cache_state_prefixes": True}),
        ({"state_prefixes": "off"}, {"cache_state_prefixes": False}),
        ({"engine": "llama-server", "kv_unified": "off"}, {"kv_unified": False}),
        ({"engine": "llama-server", "kv_unified": "on"}, {"kv_unified": True}),
        ({"kv_unified": "on"}, {"kv_unified": False}),  # a flag of llama-server
        ({"offline": True}, {"offline": True}),
        ({"stream_interval_tokens": 10}, {"stream_interval_tokens": 10}),
        ({"receive_interval_steps": 20}, {"receive_interval_steps": 20}),
    ],
)
def test_each_reaches_the_engine(changes, reached):
    engine = Scenario(**changes).engine_settings
    assert {name: getattr(engine, name) for name in reached} == reached


def test_those_that_are_not_the_engines_reach_parallelism_gpu_and_targets():
    assert Scenario().parallelism.decode_context_parallel_size == 1
    assert (
        Scenario(tensor_parallel_size=8, decode_context_parallel_size=2).parallelism.decode_context_parallel_size == 2
    )
    assert Scenario(gpu_total_gib=40.0).gpu_spec.memory_gib == 40
    assert [Scenario(measured_requests=kind).service_level.window for kind in MEASURED_REQUESTS] == ["steady", "all"]


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("engine_core", ENGINE_CORES),
        ("moe_runner_backend", MOE_BACKENDS),
        ("state_prefixes", AUTO_ON_OFF),
        ("kv_unified", AUTO_ON_OFF),
        ("measured_requests", MEASURED_REQUESTS),
    ],
)
def test_the_default_is_the_first_choice(name, choices):
    assert FIELDS[name].metadata["choices"] == choices
    assert FIELDS[name].default == choices[0]


def test_every_one_has_a_label_a_short_name_of_its_own_and_help():
    assert len({item.metadata["label"] for item in FIELDS.values()}) == len(FIELDS)
    assert all(item.metadata["help"].endswith(".") for item in FIELDS.values())
