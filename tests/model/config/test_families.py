"""Traits by model_type or class, and what a config of an unknown family becomes."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.families import FAMILIES, FAMILY_OF_CLASS, OWN_BUILDER, SAME_AS, UNKNOWN_MIXER_FIELDS
from planner.model.config.fields import Fields
from planner.model.config.hybrids import hybrid_layers
from tests.model.config.cases import LLAMA


# The published config names its class and no model_type; transformers counts two layers for each.
def test_longcat_flash_is_known_by_its_class() -> None:
    config = {
        "architectures": ["LongcatFlashForCausalLM"], "vocab_size": 131_072, "hidden_size": 6144, "num_layers": 28,
        "num_hidden_layers": 56, "ffn_hidden_size": 12_288, "expert_ffn_hidden_size": 2048, "num_attention_heads": 64,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "n_routed_experts": 512, "zero_expert_num": 256, "moe_topk": 12, "max_position_embeddings": 131_072,
    }  # fmt: skip
    made = model_from_config(config)
    assert made.num_parameters + made.mtp_parameters == 561_862_880_256
    assert made.estimated_fields == ()


# The config of Grok-2 names model_type git, a vision model's: its class decides.
def test_grok_2_is_known_by_its_class() -> None:
    model = get_model("xai-org/grok-2")
    assert model.model_type == "grok-2"
    dense = 3 * 8192 * 32_768
    without = model_from_config(
        {"architectures": ["Grok1ForCausalLM"], "model_type": "git", "residual_moe": False, "hidden_size": 8192,
         "intermediate_size": 32_768, "moe_intermediate_size": 16_384, "num_hidden_layers": 64,
         "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 8,
         "num_experts_per_tok": 2, "vocab_size": 131_072, "max_position_embeddings": 131_072}
    )  # fmt: skip
    assert model.num_parameters - without.num_parameters == 64 * dense


def test_unknown_model_type_is_estimated_and_says_so() -> None:
    model = model_from_config({**LLAMA, "model_type": "unheard_of"})
    assert model.num_parameters == 8_030_261_248
    assert any("unheard_of" in text for text in model.estimated_fields)


def test_known_config_estimates_nothing() -> None:
    assert model_from_config(LLAMA).estimated_fields == ()


def test_every_other_name_leads_to_a_family_that_exists() -> None:
    known = set(FAMILIES) | set(OWN_BUILDER)
    assert set(SAME_AS.values()) <= known
    assert set(FAMILY_OF_CLASS.values()) <= known
    assert not set(SAME_AS) & known  # a name is either a family or another's


@pytest.mark.parametrize("name", OWN_BUILDER)
def test_every_builder_of_its_own_is_there_and_asks_for_what_it_needs(name: str) -> None:
    with pytest.raises(InvalidInput):
        hybrid_layers(Fields({}), name)


# Biases of query, key and value (Qwen2 config class), none in Llama's: 32 layers × (4,096 + 2 × 1,024).
def test_traits_change_the_count_by_hand() -> None:
    plain = model_from_config(LLAMA).num_parameters
    assert model_from_config(LLAMA | {"model_type": "qwen2"}).num_parameters - plain == 32 * (4096 + 2 * 1024)
    # Qwen3: a norm of 128 for queries and one for keys. Gemma 2: two norms more a layer, and the head is the embedding.
    assert model_from_config(LLAMA | {"model_type": "qwen3"}).num_parameters - plain == 32 * 2 * 128
    untied = model_from_config(LLAMA | {"model_type": "gemma2"})
    assert untied.num_parameters - plain == 32 * 2 * 4096


@pytest.mark.parametrize("field", UNKNOWN_MIXER_FIELDS)
def test_an_unknown_family_with_a_mixer_of_its_own_is_not_estimated(field: str) -> None:
    value: object = True if field == "is_encoder_decoder" else 64
    with pytest.raises(InvalidInput) as caught:
        model_from_config(LLAMA | {"model_type": "unheard_of", field: value})
    assert caught.value.field == "model_type"
