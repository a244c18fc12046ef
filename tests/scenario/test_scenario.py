import math
import pickle

import pytest

from planner.errors import InvalidInput
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario


def test_every_field_has_a_link_name_of_its_own():
    keys = [item.metadata["key"] for item in fields_by_name().values()]
    assert len(keys) == len(set(keys))
    assert "v" not in keys


def test_defaults_are_a_scenario():
    scenario = Scenario()
    # 500 users × 30 requests an hour × peak factor 2 = 8.33 requests a second.
    assert scenario.peak_rate_rps == pytest.approx(500 * 30 * 2 / 3600)
    assert scenario.mean_rate_rps == pytest.approx(scenario.peak_rate_rps / 2)


def test_demand_can_be_stated_three_ways():
    users = Scenario(users=1200, requests_per_user_hour=60, peak_factor=1)
    rate = Scenario(demand="rate", rate_rps=20.0, peak_factor=1)
    daily = Scenario(demand="daily", requests_per_day=20 * 86400.0, peak_factor=1)
    assert users.peak_rate_rps == pytest.approx(rate.peak_rate_rps) == pytest.approx(daily.peak_rate_rps)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", 0),
        ("users", -5),
        ("users", 1.5),
        ("users", True),
        ("rate_rps", 0.0),
        ("rate_rps", -1.0),
        ("rate_rps", math.nan),
        ("rate_rps", math.inf),
        ("max_model_len", 10_000_000),
        ("model", "nobody/nothing"),
        ("gpu", "H9000"),
        ("engine", "warp"),
        ("weight_dtype", "int3"),
        ("title", "x" * 1000),
        ("title", "a\x00b"),
        ("title", 7),
        ("demand", "telepathy"),
        ("model_config", "{" * 100),
        ("gpu_memory_utilization", 1.5),
        ("target_quantile", 1.0),
        ("tensor_parallel_size", 0),
    ],
)
def test_impossible_values_name_their_field(field, value):
    changes = {field: value}
    if field == "model_config":
        changes["model"] = "config"
    with pytest.raises(InvalidInput) as caught:
        Scenario(**changes)
    assert caught.value.field == field


def test_hand_entered_shapes_are_checked_together():
    with pytest.raises(InvalidInput) as caught:
        Scenario(model="custom", num_attention_heads=32, num_kv_heads=5)
    assert caught.value.field == "num_kv_heads"


def test_hand_entered_shape_counts_its_parameters():
    # The default hand shape is Llama-3.1-8B's: 8,030,261,248 parameters as published.
    assert Scenario(model="custom").model_shape.num_parameters == 8_030_261_248


def test_a_scenario_is_hashable_and_picklable():
    scenario = Scenario(users=7)
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert hash(scenario) == hash(Scenario(users=7))


@pytest.mark.parametrize(
    ("field", "changes", "valid"),
    [
        ("occupied_gib", {"gpu": "L4", "occupied_gib": 30.0}, "L4"),
        ("draft_model", {"draft_model": "nobody/nothing"}, "catalog"),
        # Llama 3 has 128,256 tokens, Qwen3 151,936 (their config.json).
        ("draft_model", {"draft_model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}, "128,256"),
        ("attention_data_parallel_size", {"attention_data_parallel_size": 2}, "no experts"),
        ("long_prefill_token_threshold", {"long_prefill_token_threshold": 9000}, "8,192"),
        ("max_num_batched_tokens", {"chunked_prefill": "off", "max_num_batched_tokens": 4096}, "8,192"),
        ("shared_prefix_tokens", {"shared_prefix_tokens": 9000}, "less than the context length (8,192 tokens)"),
        (
            "shared_prefix_tokens",
            {"shared_prefix_tokens": 512, "max_model_len": 512},
            "less than the context length (512 tokens)",
        ),
        ("block_size", {"block_size": 17}, "16, 32"),
        ("chunked_prefill", {"chunked_prefill": "perhaps"}, "auto"),
        ("router", {"router": "dice"}, "round_robin"),
        ("patience_s", {"patience_s": 0.0}, "0.001"),
        ("max_loras", {"max_loras": 0}, "1"),
        ("output_limit_tokens", {"output_limit_tokens": 0}, "1"),
    ],
)
def test_contradictions_name_field_value_and_what_would_be_valid(field, changes, valid):
    with pytest.raises(InvalidInput) as caught:
        Scenario(**changes)
    assert caught.value.field == field
    assert str(caught.value.value) == str(changes[field])
    assert valid in str(caught.value)


def test_advanced_settings_reach_the_engine():
    engine = Scenario(
        chunked_prefill="off",
        async_scheduling="off",
        long_prefill_token_threshold=512,
        block_size=32,
        max_state_slots=40,
        mamba_full_memory_ratio=0.5,
        kv_offload_gib=10.0,
        patience_s=3.0,
        num_lora_adapters=20,
        max_loras=4,
        max_lora_rank=64,
        max_total_tokens=90_000,
        max_cudagraph_capture_size=64,
        images_per_prompt=2,
        host_memory_gib=128.0,
    ).engine_settings
    assert engine.host_memory_gib == 128
    assert (engine.max_total_tokens, engine.max_cudagraph_capture_size, engine.images_per_prompt) == (90_000, 64, 2)
    assert not engine.enable_chunked_prefill
    assert not engine.async_scheduling
    assert (engine.max_state_slots, engine.mamba_full_memory_ratio) == (40, 0.5)
    assert Scenario().engine_settings.mamba_full_memory_ratio == 0.9  # SGLang's default
    assert (engine.long_prefill_token_threshold, engine.block_size, engine.kv_offload_gib) == (512, 32, 10.0)
    assert (engine.patience_s, engine.max_loras, engine.max_lora_rank) == (3.0, 4, 64)
    assert Scenario(output_limit_tokens=77).traffic.output_limit_tokens == 77
    assert Scenario().engine_settings.max_loras == 0
    # Slots where the user says nothing: vLLM max_loras 1, SGLang max_loras_per_batch 8.
    assert Scenario(num_lora_adapters=20).engine_settings.max_loras == 1
    assert Scenario(num_lora_adapters=20, engine="sglang").engine_settings.max_loras == 8


def test_a_draft_model_counts_only_where_tokens_are_drafted():
    draft = "meta-llama/Llama-3.2-1B-Instruct"
    assert Scenario(draft_model=draft).draft_shape is None
    assert Scenario(draft_model=draft, num_speculative_tokens=3).draft_shape.name == draft


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("users", {"users": 100_000_000, "requests_per_user_hour": 1000.0}),
        ("requests_per_day", {"demand": "daily", "requests_per_day": 1e11}),
    ],
)
def test_a_rate_that_nobody_serves_names_the_input_that_makes_it(field, changes):
    with pytest.raises(InvalidInput, match="1,000,000 req/s") as caught:
        _ = Scenario(**changes).traffic
    assert caught.value.field == field


# SGLang chooses chunk and graphs by the memory that it sees: a MIG slice of 40 GB is not of the class of its board.
def test_a_part_of_a_gpu_counts_by_its_own_memory() -> None:
    part = Scenario(gpu="H100 SXM", gpu_total_gib=40.0).gpu_spec
    assert part.memory_gib == 40
    assert part.memory_gb == pytest.approx(40, rel=0.01)
    assert part.name == "H100 SXM"
