"""Layers of families that differ in traits, from their published configs."""

import pytest

from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config
from planner.model.config.decoder import Heads, mixer_kinds, read_heads
from planner.model.config.families import FAMILIES, LLAMA
from planner.model.config.fields import Fields
from planner.model.shape import MixerKind, TensorGroup
from tests.memory.cases import sequence_bytes
from tests.model.config.cases import kinds, shapes

SPARSE: dict[str, object] = {
    "model_type": "glm_moe_dsa", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
    "num_key_value_heads": 8, "kv_lora_rank": 128, "q_lora_rank": 256, "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16, "v_head_dim": 32, "intermediate_size": 1024, "vocab_size": 1000, "index_head_dim": 64,
    "index_n_heads": 4, "index_topk": 64, "max_position_embeddings": 4096, "first_k_dense_replace": 1,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_shared_experts": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"index_topk_freq": 2}, 4),  # IndexCache: fewer computed, all kept
        ({"index_topk_freq": 2, "index_skip_topk_offset": 1}, 2),
        ({"indexer_types": ["full", "shared", "shared", "full"]}, 2),
        ({}, 4),
    ],
)
def test_indexers_in_a_config(fields: dict[str, object], expected: int) -> None:
    model = model_from_config(SPARSE | fields)
    assert sum(model.layer_kinds[kind].mixer.indexer_head_dim > 0 for kind in model.layer_order) == expected


def test_a_list_of_indexers_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        model_from_config(SPARSE | {"indexer_types": ["full"]})
    assert caught.value.field == "indexer_types"


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


# Snowflake: 480B in all, 17B active; a dense MLP as wide as the model beside 128 experts in each of 35 layers.
def test_arctic_has_a_dense_mlp_beside_its_experts() -> None:
    model = get_model("Snowflake/snowflake-arctic-instruct")
    assert model.num_active_parameters == pytest.approx(17e9, rel=0.03)
    assert [(x.out_features, x.in_features) for x in model.layers[0].linears if x.group is TensorGroup.MLP] == [
        (2 * 7168, 7168),
        (7168, 7168),
    ]
    assert sequence_bytes(model, 1) == 35 * 2 * 8 * 128 * 2


# xAI: 314B (README of Grok-1, 25 % active); recipes call Grok-2 a model of about 269B.
@pytest.mark.parametrize(("name", "total"), [("hpcai-tech/grok-1", 314e9), ("xai-org/grok-2", 269e9)])
def test_grok_has_about_the_published_total(name: str, total: float) -> None:
    model = get_model(name)
    assert model.num_parameters == pytest.approx(total, rel=0.006)
    assert sequence_bytes(model, 1) == 64 * 2 * 8 * 128 * 2
    assert {layer.experts.num_experts for layer in model.layers if layer.experts is not None} == {8}


def test_gated_delta_net_state_is_fp32_matrix_and_convolution_tail() -> None:
    state = next(x.mixer for x in get_model("Qwen/Qwen3.5-27B").layer_kinds if x.mixer.kind is MixerKind.STATE)
    assert state.state_elements == 48 * 128 * 128
    assert state.conv_elements == (2 * 16 * 128 + 48 * 128) * 3
    assert state.state_element_bytes == 4


def test_last_layers_of_gemma_3n_reuse_the_cache_of_others() -> None:
    layers = get_model("google/gemma-3n-E4B-it").layers
    assert [layer.mixer.reuses_kv_of_another_layer for layer in layers] == [False] * 20 + [True] * 15


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ({"hidden_size": 4096, "num_attention_heads": 32}, Heads(heads=32, kv_heads=32, head_dim=128)),
        ({"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64},
         Heads(heads=32, kv_heads=8, head_dim=64)),
        ({"n_embd": 1600, "n_head": 25}, Heads(heads=25, kv_heads=25, head_dim=64)),  # GPT-2 XL
    ],
)  # fmt: skip
def test_heads_of_a_config(config: dict[str, object], heads: Heads) -> None:
    assert read_heads(Fields(config)) == heads


@pytest.mark.parametrize(
    ("family", "fields", "slides"),
    [
        ("gemma2", {"sliding_window": 4096}, [True, False, True, False, True, False]),  # every second is full
        ("gemma3_text", {"sliding_window": 1024, "sliding_window_pattern": 3}, [True, True, False] * 2),
        ("mistral", {"sliding_window": 4096, "max_position_embeddings": 32_768}, [True] * 6),
        ("mistral", {"sliding_window": 32_768, "max_position_embeddings": 32_768}, [False] * 6),  # the whole context
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": False}, [False] * 6),
        ("llama", {"layer_types": ["sliding_attention", "full_attention"] * 3, "sliding_window": 8}, [True, False] * 3),
    ],
)
def test_which_layers_slide(family: str, fields: dict[str, object], slides: list[bool]) -> None:
    kinds_and_windows = mixer_kinds(Fields(fields), FAMILIES[family], 6)
    assert [kind is MixerKind.SLIDING for kind, _ in kinds_and_windows] == slides
    windows = {window for kind, window in kinds_and_windows if kind is MixerKind.SLIDING}
    assert windows <= {fields["sliding_window"]}


def test_states_with_full_attention_in_every_fourth_layer() -> None:
    found = mixer_kinds(Fields({}), FAMILIES["qwen3_next"], 8)
    assert [kind for kind, _ in found] == [*3 * [MixerKind.STATE], MixerKind.FULL] * 2
    assert mixer_kinds(Fields({}), LLAMA, 2) == [(MixerKind.FULL, 0)] * 2
