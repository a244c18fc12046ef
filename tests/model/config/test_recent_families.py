"""Architectures of 2025 and 2026: published totals, tensor shapes of the checkpoints, caches by hand."""

import json
import math
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.catalog
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout, kv_bytes_for
from planner.memory.shards import pipeline_stages
from planner.model.config.build import model_from_config
from planner.model.quantization import weight_bytes_by_group
from planner.model.shape import Linear, MixerKind, ModelShape, TensorGroup


def kinds(model: ModelShape) -> dict[MixerKind, int]:
    counted: dict[MixerKind, int] = {}
    for layer, count in model.layer_counts():
        counted[layer.mixer.kind] = counted.get(layer.mixer.kind, 0) + count
    return counted


def shapes(model: ModelShape, index: int) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and number of each matrix of a layer."""

    def shape(linear: Linear) -> tuple[int, int, int]:
        return linear.out_features, linear.in_features, linear.count

    return {linear.name: shape(linear) for linear in model.layers[index].linears}


def layout_of(name: str, tp: int, family: str = "vllm", version: tuple[int, int] = (0, 30), dtype: str = "auto",
              block: int = 16) -> KvLayout:  # fmt: skip
    model = get_model(name)
    stage = pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=tp), False)[0]
    return build_layout(
        stage.layers, tensor_parallel_size=tp, context_parallel=1, kv_cache_dtype=dtype, fp32=False,
        edition=Edition(family, version), block_size=block, num_speculative_tokens=0,
    )  # fmt: skip


# Totals that the hub publishes (safetensors metadata), tower and draft layers included where the file has them.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("moonshotai/Kimi-K3", 2_779_931_837_184),
        ("MiniMaxAI/MiniMax-M3", 427_040_140_160),
        ("stepfun-ai/Step-3.5-Flash", 199_384_301_376),
        ("stepfun-ai/Step-3.7-Flash", 201_365_316_160),
        ("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", 253_401_268_224),
        ("Snowflake/snowflake-arctic-instruct", 478_584_608_768),
        ("Qwen/Qwen3-ASR-1.7B", 2_038_052_480),
        ("Qwen/Qwen3-ASR-0.6B", 782_426_112),
        ("meituan-longcat/LongCat-Flash-Chat", 561_862_880_256),
        ("meituan-longcat/LongCat-Flash-Lite", 69_073_335_552),
    ],
)
def test_published_total_is_met_exactly(name: str, total: int) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    assert model.estimated_fields == ()


# Tensor shapes of layers 1 (states) and 3 (attention) in the checkpoint's inventory.
def test_kimi_k3_has_the_checkpoints_matrices() -> None:
    model = get_model("moonshotai/Kimi-K3")
    assert kinds(model) == {MixerKind.STATE: 69, MixerKind.MLA: 24}
    assert [index for index, layer in enumerate(model.layers) if layer.experts is None] == [0]
    state, attention = shapes(model, 1), shapes(model, 3)
    assert state["g_proj"] == attention["g_proj"] == (12_288, 7168, 1)
    assert state["f_b_proj"] == (12_288, 128, 1)
    assert attention["q_b_proj"] == (18_432, 1536, 1)
    assert attention["kv_b_proj"] == (24_576, 512, 1)
    assert state["latent_down_proj"] == (3584, 7168, 1)
    assert state["gate_up_proj"][:2] == (2 * 6144, 7168)  # the shared experts; named like the routed ones
    routed = [linear for linear in model.layers[1].linears if linear.count == 896]
    assert [(x.out_features, x.in_features) for x in routed] == [(2 * 3072, 3584), (3584, 3072)]


# The index of the 96 files: 1,560,860,324,864 bytes; convolutions and decays are fp32 there (22 MB).
def test_kimi_k3_quantises_its_routed_experts_only() -> None:
    sizes = weight_bytes_by_group(get_model("moonshotai/Kimi-K3"))
    fp32 = 69 * (3 * 12_288 * 4 + 12_288 + 2 * 128) + 92 * 896
    assert sum(sizes.values()) + 2 * fp32 == 1_560_860_324_864


# Hub size of nvidia/Kimi-K3-NVFP4: 1,609.9 GB.
def test_kimi_k3_in_nvfp4() -> None:
    assert sum(weight_bytes_by_group(get_model("nvidia/Kimi-K3-NVFP4")).values()) == pytest.approx(1609.9e9, rel=5e-4)


# 24 latent layers of 512 + 64 elements; 69 states of 96 × 128 × 128 fp32 and three convolution tails of 12,288 × 3
# (vLLM MambaStateShapeCalculator.kda_state_shape).
def test_cache_of_kimi_k3() -> None:
    model = get_model("moonshotai/Kimi-K3")
    state = 96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2
    assert kv_bytes_for(model, 1000) == 24 * 576 * 2 * 1000 + 69 * state
    assert kv_bytes_for(model, 1000, kv_cache_dtype="fp8") == 24 * 576 * 1000 + 69 * state
    assert model.rope_cache_elements == 0


# A state page on one of 8 GPUs holds 707 latent entries; kernels of latent attention want whole 128s (vLLM v0.33
# _align_hybrid_block_size), and 69 state layers are three groups of the 24 latent ones.
@pytest.mark.parametrize(("tp", "block"), [(8, 768), (16, 384), (32, 256)])
def test_blocks_of_kimi_k3(tp: int, block: int) -> None:
    layout = layout_of("moonshotai/Kimi-K3", tp)
    assert layout.main.block_tokens == block == math.ceil(6_512_640 / tp / 1152 / 128) * 128
    assert layout.block_bytes == 24 * block * 1152
    assert [(group.kind, group.num_groups) for group in layout.groups] == [(MixerKind.STATE, 3), (MixerKind.FULL, 1)]


def quantised(model: ModelShape, bits: float) -> int:
    """Weights that a scheme of `bits` covers, from the bytes that it saves."""
    saved = sum(weight_bytes_by_group(model, "bf16").values()) - sum(weight_bytes_by_group(model).values())
    return round(saved / (2 - bits / 8))


# The MXFP8 checkpoint holds one scale more per 32 weights that it quantises: 13,239,705,600 of them.
def test_minimax_m3_in_mxfp8_quantises_all_but_router_head_and_tower() -> None:
    assert quantised(get_model("MiniMaxAI/MiniMax-M3-MXFP8"), 8.25) == 32 * (440_279_845_760 - 427_040_140_160)


# 60 layers of 4 KV heads; the 57 sparse ones keep one 128-wide bf16 key more, on every rank (vLLM
# MiniMaxM3IndexerCache, SGLang MiniMaxSparseKVPool; the same sum stands in the unit test of a third engine).
@pytest.mark.parametrize(
    ("tp", "dtype", "expected"),
    [
        (1, "auto", 60 * 2 * 4 * 128 * 2 + 57 * 128 * 2),
        (4, "auto", 60 * 2 * 128 * 2 + 57 * 128 * 2),
        (8, "auto", 60 * 2 * 128 * 2 + 57 * 128 * 2),
        (4, "fp8", 60 * 2 * 128 + 57 * 128 * 2),
    ],
)
def test_cache_of_minimax_m3(tp: int, dtype: str, expected: int) -> None:
    model = get_model("MiniMaxAI/MiniMax-M3")
    assert kv_bytes_for(model, 1, kv_cache_dtype=dtype, tensor_parallel_size=tp) == expected


# vLLM's sparse backend takes pages of 128 tokens only; all layers count tokens alike, so they are one group.
def test_blocks_of_minimax_m3() -> None:
    layout = layout_of("MiniMaxAI/MiniMax-M3", 4)
    assert len(layout.groups) == 1
    assert layout.main.block_tokens == 128
    assert layout.block_bytes == 128 * (60 * 2 * 128 * 2 + 57 * 128 * 2)
    assert layout_of("MiniMaxAI/MiniMax-M3", 4, family="sglang").main.block_tokens == 16


def test_indexer_of_minimax_m3_chooses_2048_tokens_from_the_fourth_layer_on() -> None:
    layers = get_model("MiniMaxAI/MiniMax-M3").layers
    assert [layer.mixer.indexer_top_k for layer in layers] == [0] * 3 + [16 * 128] * 57
    assert [layer.experts is not None for layer in layers] == [False] * 3 + [True] * 57


# MiniMax-M3.1: every layer is sparse, eight experts per token; and the same shape in the fields of transformers 5.
def test_other_configs_of_minimax_m3() -> None:
    text = {
        "hidden_size": 6144, "intermediate_size": 3072, "dense_intermediate_size": 12_288,
        "shared_intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 200_064, "max_position_embeddings": 1_048_576,
        "num_local_experts": 128, "num_experts_per_tok": 8, "n_shared_experts": 1, "tie_word_embeddings": False,
    }  # fmt: skip
    sparse = {"sparse_index_dim": 128, "sparse_num_index_heads": 4, "sparse_topk_blocks": 16,
              "sparse_block_size": 128, "sparse_attention_freq": [1] * 60}  # fmt: skip
    newer = text | {"moe_layer_freq": [0] * 3 + [1] * 57, "sparse_attention_config": sparse}
    made = model_from_config({"model_type": "minimax_m3_vl", "text_config": newer})
    indexers = 3 * (6144 * (4 * 128 + 128) + 2 * 128)
    assert made.num_parameters == get_model("MiniMaxAI/MiniMax-M3").num_parameters + indexers
    native = text | {
        "num_experts_per_tok": 4, "model_type": "minimax_m3_vl_text", "index_n_heads": 4, "index_head_dim": 128,
        "index_block_size": 128, "index_topk_blocks": 16,
        "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
    }  # fmt: skip
    assert model_from_config(native).layers == get_model("MiniMaxAI/MiniMax-M3").layers


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"layer_types": ["full_attention"]}, "sparse_attention_freq"),
        ({"mlp_layer_types": ["dense"]}, "mlp_layer_types"),
        ({"sparse_attention_config": {"sparse_attention_freq": [1, 0]}}, "sparse_attention_freq"),
    ],
)
def test_lists_of_minimax_m3_have_one_entry_per_layer(change: dict[str, object], field: str) -> None:
    config = {
        "model_type": "minimax_m3", "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 4, "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | change)
    assert caught.value.field == field


# Tensor names and shapes of the checkpoint: 64 heads in full layers, 96 in windows, one gate per head.
def test_step_has_more_heads_in_its_windows() -> None:
    model = get_model("stepfun-ai/Step-3.5-Flash")
    assert kinds(model) == {MixerKind.FULL: 12, MixerKind.SLIDING: 33}
    assert [i for i, layer in enumerate(model.layers) if layer.mixer.kind is MixerKind.FULL] == list(range(0, 45, 4))
    full, window = shapes(model, 4), shapes(model, 5)
    assert full["q_proj"] == (64 * 128, 4096, 1) and window["q_proj"] == (96 * 128, 4096, 1)
    assert full["g_proj"] == (64, 4096, 1) and window["g_proj"] == (96, 4096, 1)
    assert full["k_proj"] == window["k_proj"] == (8 * 128, 4096, 1)
    assert [i for i, layer in enumerate(model.layers) if layer.experts is None] == [0, 1, 2]


# 12 layers grow, 33 stop at 512 tokens (AIConfigurator's test of the family: 0.2896 of an all-global model at 16,384).
def test_cache_of_step_stops_at_its_windows() -> None:
    per_layer = 2 * 8 * 128 * 2
    model = get_model("stepfun-ai/Step-3.7-Flash")
    assert kv_bytes_for(model, 16_384) == per_layer * (12 * 16_384 + 33 * 512)
    assert kv_bytes_for(model, 16_384) / (45 * per_layer * 16_384) == pytest.approx(0.2896, abs=1e-4)
    layout = layout_of("stepfun-ai/Step-3.7-Flash", 1)
    assert [(x.kind, x.num_groups, x.window_tokens) for x in layout.groups] == [
        (MixerKind.FULL, 1, 0),
        (MixerKind.SLIDING, 3, 512),
    ]
    assert layout.block_bytes == 12 * 16 * per_layer


# The FP8 checkpoint holds 11,612,160 scales more, one per block of 128 × 128: those of the routed experts. The NVFP4
# one has 129.2 GB on the hub.
def test_step_quantises_its_routed_experts_only() -> None:
    routed = 42 * 288 * 3 * 4096 * 1280
    assert routed == (199_395_913_536 - 199_384_301_376) * 128 * 128
    assert quantised(get_model("stepfun-ai/Step-3.5-Flash-FP8"), 8.002) == pytest.approx(routed, rel=1e-6)
    model = get_model("stepfun-ai/Step-3.7-Flash-NVFP4")
    assert sum(weight_bytes_by_group(model).values()) + 2 * model.mtp_parameters == pytest.approx(129.2e9, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"layer_types": ["full_attention"] * 44}, "layer_types"),
        ({"moe_layers_enum": "3,four"}, "moe_layers_enum"),
        ({"attention_other_setting": 3}, "attention_other_setting"),
    ],
)
def test_step_configs_that_contradict_themselves(change: dict[str, object], field: str) -> None:
    config = {"model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11_264, "num_hidden_layers": 45,
              "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128, "vocab_size": 128_896,
              "layer_types": ["sliding_attention"] * 48, "moe_num_experts": 8, "moe_top_k": 2}  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | change)
    assert caught.value.field == field


# The hub has the same model without its draft layer (LongCat-Flash-Prover): 560,664,980,480.
def test_longcat_flash_without_its_draft_layer() -> None:
    model = get_model("meituan-longcat/LongCat-Flash-Chat")
    assert model.num_parameters == 560_664_980_480
    assert kinds(model) == {MixerKind.MLA: 56}
    assert sum(layer.experts is not None for layer in model.layers) == 28


# The report: 18.6 to 31.3 billion active, 27 on average, embedding and head aside; 8 of 12 routes do work.
def test_longcat_flash_skips_experts_that_do_nothing() -> None:
    model = get_model("meituan-longcat/LongCat-Flash-Chat")
    assert model.layers[0].experts is not None and model.layers[0].experts.experts_per_token == 8
    assert model.num_active_parameters - 2 * 131_072 * 6144 == pytest.approx(27e9, rel=0.03)


# Two latents per layer: 28 × 2 × (512 + 64) × 2 bytes.
def test_cache_of_longcat_flash() -> None:
    assert kv_bytes_for(get_model("meituan-longcat/LongCat-Flash-Chat"), 1) == 28 * 2 * 576 * 2
    assert kv_bytes_for(get_model("meituan-longcat/LongCat-Flash-Lite"), 1) == 14 * 2 * 576 * 2


# Twelve tables of 78 × 131,072 + 1, 3, 5 … 23 rows and 256 columns; each rank holds its rows (vLLM NgramEmbedding).
def test_ngram_tables_of_longcat_flash_lite_are_divided() -> None:
    model = get_model("meituan-longcat/LongCat-Flash-Lite")
    rows = sum(78 * 131_072 + 2 * index + 1 for index in range(12))
    assert model.ngram_parameters == rows * 256
    one, eight = (pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=tp), False)[0] for tp in (1, 8))
    held = dict(one.weights_by_group)["ngram"] - dict(eight.weights_by_group)["ngram"]
    assert held == pytest.approx(2 * rows * 256 * 7 / 8)
    assert model.num_active_parameters < 5e9


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


@pytest.mark.parametrize("ratio", [-1, "78", True, 1e9])
def test_ngram_ratio_is_a_number(ratio: object) -> None:
    config = {
        "model_type": "longcat_flash", "vocab_size": 100, "hidden_size": 64, "num_layers": 2,
        "ffn_hidden_size": 64, "expert_ffn_hidden_size": 32, "num_attention_heads": 4, "kv_lora_rank": 16,
        "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4, "moe_topk": 2,
    }  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | {"ngram_vocab_size_ratio": ratio})
    assert caught.value.field == "ngram_vocab_size_ratio"


# 64 of 162 blocks attend, with 128 / 16 KV heads each; 81 blocks hold nothing at all.
def test_nemotron_ultra_caches_in_its_attention_blocks_only() -> None:
    model = get_model("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1")
    assert kinds(model) == {MixerKind.FULL: 64, MixerKind.NONE: 98}
    assert sum(layer.num_parameters == 0 for layer in model.layers) == 81
    assert kv_bytes_for(model, 1) == 64 * 2 * 8 * 128 * 2


# The hub counts the packed bytes of the NVFP4 checkpoint, two weights each: every matrix but embedding and head.
def test_nemotron_super_in_nvfp4_quantises_every_matrix() -> None:
    covered = quantised(get_model("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-NVFP4"), 4.5)
    assert 49_867_145_216 - covered + covered // 2 == 25_984_778_240


# ffn_mult gives two thirds of its multiple of the hidden width, in steps of 256; linear stand-ins are square.
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"attention": {"no_op": True}, "ffn": {"no_op": True}}, 0),
        ({"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3125}}, 3 * 4096 * 3584 + 4096),
        ({"attention": {"no_op": True}, "ffn": {"intermediate_size": 1000}}, 3 * 4096 * 1000 + 4096),
        ({"attention": {"replace_with_linear": True}, "ffn": {"replace_with_linear": True}}, 2 * 4096 * 4097),
        ({"attention": {"n_heads_in_group": 4}, "ffn": {"no_op": True}}, 2 * 4096 * (4096 + 1024) + 4096),
        ({"attention": {"num_key_value_heads": 8}, "ffn": {"no_op": True}}, 2 * 4096 * (4096 + 1024) + 4096),
    ],
)
def test_blocks_of_nemotron_nas(block: dict[str, object], expected: int) -> None:
    config = {"model_type": "nemotron-nas", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 1,
              "vocab_size": 100, "block_configs": [block]}  # fmt: skip
    assert model_from_config(config).layers[0].num_parameters == expected


# DeciLM lists the KV heads of each layer; other figures are Llama's.
def test_kv_heads_of_decilm_differ_by_layer() -> None:
    config = {
        "model_type": "deci", "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
        "num_hidden_layers": 3, "vocab_size": 32_000, "num_key_value_heads_per_layer": [4, 2, 1],
    }  # fmt: skip
    model = model_from_config(config)
    assert [layer.mixer.num_kv_heads for layer in model.layers] == [4, 2, 1]
    assert kv_bytes_for(model, 10) == 10 * (4 + 2 + 1) * 2 * 128 * 2
    with pytest.raises(InvalidInput) as caught:
        model_from_config(config | {"num_key_value_heads_per_layer": [4]})
    assert caught.value.field == "num_key_value_heads_per_layer"


# Snowflake: 480B in all, 17B active; a dense MLP as wide as the model beside 128 experts in each of 35 layers.
def test_arctic_has_a_dense_mlp_beside_its_experts() -> None:
    model = get_model("Snowflake/snowflake-arctic-instruct")
    assert model.num_active_parameters == pytest.approx(17e9, rel=0.03)
    assert [(x.out_features, x.in_features) for x in model.layers[0].linears if x.group is TensorGroup.MLP] == [
        (2 * 7168, 7168),
        (7168, 7168),
    ]
    assert kv_bytes_for(model, 1) == 35 * 2 * 8 * 128 * 2


# xAI: 314B (README of Grok-1, 25 % active); recipes call Grok-2 a model of about 269B.
@pytest.mark.parametrize(("name", "total"), [("hpcai-tech/grok-1", 314e9), ("xai-org/grok-2", 269e9)])
def test_grok_has_about_the_published_total(name: str, total: float) -> None:
    model = get_model(name)
    assert model.num_parameters == pytest.approx(total, rel=0.006)
    assert kv_bytes_for(model, 1) == 64 * 2 * 8 * 128 * 2
    assert {layer.experts.num_experts for layer in model.layers if layer.experts is not None} == {8}


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
RECENT = (
    "moonshotai/Kimi-K3",
    "MiniMaxAI/MiniMax-M3",
    "stepfun-ai/Step-3.7-Flash",
    "meituan-longcat/LongCat-Flash-Lite",
    "Snowflake/snowflake-arctic-instruct",
    "xai-org/grok-2",
    "Qwen/Qwen3-ASR-0.6B",
)


@lru_cache
def published_config(name: str) -> dict[str, object]:
    entries = json.loads((Path(planner.catalog.__file__).parent / "models.json").read_text(encoding="utf-8"))["models"]
    return next(entry["config"] for entry in entries if entry["id"] == name)


@settings(deadline=None)
@given(st.sampled_from(RECENT), st.data())
def test_any_value_in_any_field_gives_a_model_or_a_refusal(name: str, data: st.DataObject) -> None:
    config = dict(published_config(name))
    inner = next((key for key in ("text_config", "thinker_config") if key in config), "")
    if inner and data.draw(st.booleans()):
        section = dict(config[inner])  # type: ignore[call-overload]
        section[data.draw(st.sampled_from(sorted(section)))] = data.draw(JSON)
        config[inner] = section
    else:
        config[data.draw(st.sampled_from(sorted(config)))] = data.draw(JSON)
    try:
        model = model_from_config(config)
    except InvalidInput:
        return
    assert model.num_parameters > 0
