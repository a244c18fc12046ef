"""What a quantization_config says of scheme, kept groups and cache."""

import pytest

from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.checkpoint import read_kv_cache, read_quantization
from planner.model.config.fields import Fields
from planner.model.quantization import weight_bits
from planner.model.shape import TensorGroup
from tests.model.config.cases import calibrated

FP8_CACHE = {"num_bits": 8, "type": "float", "dynamic": False}


# ModelOpt and compressed-tensors say in the checkpoint what type the cache was calibrated for (vLLM pull 29980).
@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": FP8_CACHE}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "fp8", "kv_cache_scheme": None}, ""),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}, ""),
    ],
)
def test_cache_type_in_a_config(section: dict[str, object], expected: str) -> None:
    model = calibrated(section)
    assert model.kv_cache_quantization == expected
    assert any("INT8" in text for text in model.estimated_fields) == ("INT8" in str(section))


def hybrid_config(ignore: list[str]) -> dict[str, object]:
    """config.json of Qwen3.5-27B's language model in NVFP4 by compressed-tensors that leaves these modules alone."""
    weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    return {
        "model_type": "qwen3_5_text", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 17_408, "vocab_size": 248_320,
        "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        "max_position_embeddings": 262_144, "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "compressed-tensors", "ignore": ignore,
                                "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}},
    }  # fmt: skip


# What a pasted checkpoint leaves in 16 bits stands before what is known of its family's usual checkpoints.
@pytest.mark.parametrize(
    ("ignore", "wide", "narrow", "estimated"),
    [
        (["lm_head", "re:.*linear_attn.*"], {"state", "lm_head"}, {"attention", "mlp"}, False),
        (["lm_head", "re:.*self_attn.*", "re:.*linear_attn.*"], {"attention", "state"}, {"mlp"}, False),
        (["model.layers.0.linear_attn.conv1d", "model.layers.3.self_attn.k_norm"], {"lm_head"}, {"attention"}, False),
        (["model.layers.3.self_attn.q_proj", "model.layers.3.self_attn.o_proj"], {"attention"}, {"mlp"}, False),
        (["model.layers.3.self_attn.k_proj"], {"lm_head"}, {"attention", "mlp"}, True),
    ],
)
def test_modules_that_a_pasted_checkpoint_leaves_alone(
    ignore: list[str], wide: set[str], narrow: set[str], estimated: bool
) -> None:
    model = model_from_config(hybrid_config(ignore))
    bits = {group.value: weight_bits(model, "auto", group) for group in TensorGroup}
    assert {bits[group] for group in wide} == {16.0}
    assert {bits[group] for group in narrow} == {4.5}
    assert any("projections of attention" in text for text in model.estimated_fields) == estimated


def read(section: dict[str, object], **config: object) -> tuple[str, tuple[str, ...]]:
    return read_quantization(Fields({"quantization_config": section, **config}))


# quantization_config of published checkpoints, as transformers, vLLM and SGLang read them.
@pytest.mark.parametrize(
    ("section", "scheme"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),  # DeepSeek-V3
        ({"quant_method": "fbgemm_fp8"}, "fp8"),  # Llama 3.1 405B FP8
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq_int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq_int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4_g32"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "gptq_int8"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bnb_int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bnb_nf4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),  # gpt-oss
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_algo": "FP8", "quant_method": "modelopt"}, "fp8"),
    ],
)
def test_scheme_of_a_section(section: dict[str, object], scheme: str) -> None:
    assert read(section)[0] == scheme


@pytest.mark.parametrize(
    ("weights", "activations", "scheme"),
    [
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, None, "fp8"),
        ({"num_bits": 8, "type": "float", "strategy": "block"}, None, "fp8_block"),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, {"num_bits": 8}, "int8"),  # W8A8
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, None, "gptq_int8"),  # W8A16
        ({"num_bits": 4, "type": "int", "group_size": 128}, None, "int4_g128"),
        ({"num_bits": 4, "type": "int", "group_size": 32}, None, "int4_g32"),  # Kimi-K2-Thinking
        ({"num_bits": 4, "type": "float", "group_size": 32}, None, "mxfp4"),
    ],
)
def test_scheme_of_compressed_tensors(
    weights: dict[str, object], activations: dict[str, object] | None, scheme: str
) -> None:
    group = {"weights": weights, "input_activations": activations, "targets": ["Linear"]}
    assert read({"quant_method": "compressed-tensors", "config_groups": {"group_0": group}})[0] == scheme


def test_a_checkpoint_without_a_section_is_not_quantised() -> None:
    assert read_quantization(Fields({})) == ("", ())
    assert read_kv_cache(Fields({})) == ""


def test_modules_left_alone_are_groups() -> None:
    kept = read({"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "visual.blocks.0", "mtp.fc"]})[1]
    assert kept == ("lm_head", "mtp", "vision")


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"quant_method": "wizardry"}, "quant_method"),
        ({"quant_method": 7}, "quant_method"),
        (
            {"quant_method": "compressed-tensors",
             "config_groups": {"g": {"weights": {"num_bits": 3, "type": "int"}}}},
            "num_bits",
        ),
    ],
)  # fmt: skip
def test_unknown_sections_are_refused(section: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(section)
    assert caught.value.field == field
