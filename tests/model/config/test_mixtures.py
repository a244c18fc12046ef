"""MiniMax-M3, Step-3.5, LongCat-Flash: layers and matrices of the checkpoints."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.fields import Fields
from planner.model.config.mixtures import ngram_embedding, step3p5_draft_layer
from planner.model.shape import MixerKind
from tests.model.config.cases import kinds, shapes


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


# Three lengths × four splits of 64 ÷ 12 columns; each table two rows longer than the last, from 2 × 100 + 1 on.
def test_ngram_tables_by_hand() -> None:
    config = {"hidden_size": 64, "vocab_size": 100, "ngram_vocab_size_ratio": 2}
    rows = sum(2 * 100 + 2 * index + 1 for index in range(12))
    assert ngram_embedding(Fields(config)) == (rows * 5, 12 * 5 * 64)
    assert ngram_embedding(Fields({"hidden_size": 64})) == (0, 0)


# The list goes on behind the main layers: the draft layer has the attention named there, and a dense MLP.
@pytest.mark.parametrize(
    ("name", "kind"), [("full_attention", MixerKind.FULL), ("sliding_attention", MixerKind.SLIDING)]
)
def test_draft_layer_of_step(name: str, kind: MixerKind) -> None:
    config = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_attention_groups": 2, "head_dim": 16, "layer_types": ["full_attention"] * 2 + [name]}  # fmt: skip
    layer = step3p5_draft_layer(Fields(config))
    assert (layer.mixer.kind, layer.experts) == (kind, None)
    # projections, a gate per head, the MLP, two norms and those of queries and keys
    assert layer.num_parameters == 2 * 64 * 64 + 2 * 64 * 32 + 4 * 64 + 3 * 64 * 128 + 2 * 64 + 2 * 16
