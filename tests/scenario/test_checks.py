"""Inputs that are valid alone and not together."""

import pytest

from planner.errors import InvalidInput
from planner.scenario.checks import VLLM_BLOCK_SIZES, check_names, check_together
from planner.scenario.scenario import Scenario


def test_hand_entered_shapes_are_checked_together():
    with pytest.raises(InvalidInput) as caught:
        Scenario(model="custom", num_attention_heads=32, num_kv_heads=5)
    assert caught.value.field == "num_kv_heads"


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


def test_what_is_valid_together_passes() -> None:
    scenario = Scenario(shared_prefix_tokens=8191, long_prefill_token_threshold=8192, block_size=VLLM_BLOCK_SIZES[-1])
    check_together(scenario)
    check_names(scenario)


# vLLM's configuration classes refuse these; SGLang takes any page size and has no such threshold.
@pytest.mark.parametrize("changes", [{"block_size": 17}, {"long_prefill_token_threshold": 9000}])
def test_what_only_vllm_refuses(changes) -> None:
    assert Scenario(engine="sglang", **changes).engine == "sglang"


# llama.cpp common/speculative.cpp: vocabularies may differ by 128 tokens (SPEC_VOCAB_MAX_SIZE_DIFFERENCE).
def test_a_draft_model_with_nearly_the_same_vocabulary() -> None:
    pair = {"model": "Qwen/Qwen2.5-72B-Instruct", "draft_model": "Qwen/Qwen2.5-0.5B-Instruct",
            "num_speculative_tokens": 3}  # fmt: skip
    # 152,064 and 151,936 tokens in their config.json
    with pytest.raises(InvalidInput) as caught:
        Scenario(**pair)
    assert caught.value.field == "draft_model"
    assert Scenario(**pair, engine="llama.cpp").draft_model == pair["draft_model"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"engine": "warp"}, "engine"),
        ({"weight_dtype": "int3"}, "weight_dtype"),
        ({"kv_cache_dtype": "int3"}, "kv_cache_dtype"),
        ({"length_trace": "nobody"}, "length_trace"),
        ({"gpu": "H9000"}, "gpu"),
        ({"model": "config"}, "model_config"),
    ],
)
def test_unknown_names_are_refused(changes, field) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scenario(**changes)
    assert caught.value.field == field


def test_a_trace_that_is_not_used_is_not_asked_for() -> None:
    assert Scenario(lengths="constant", length_trace="nobody").lengths == "constant"
