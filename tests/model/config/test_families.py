"""Traits by model_type or class, and what a config of an unknown family becomes."""

from planner.catalog.models import get_model
from planner.model.config.build import model_from_config
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
