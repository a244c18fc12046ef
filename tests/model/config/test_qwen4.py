"""Qwen3.8-Flash-Next (qwen4_exp): the hub's total, shares in closed form, published file sizes and weights per GPU."""

import copy
from typing import Any

import pytest

from planner.catalog.models import find_model_id, get_model
from planner.dashboard.derivations import group_parameters
from planner.errors import InvalidInput
from planner.inputs.hardware import Parallelism
from planner.memory.shards import draft_bytes, pipeline_stages
from planner.model.config.build import model_from_config
from planner.model.config.qwen4 import _is_prime
from planner.model.quantization import weight_bits, weight_bytes_by_group
from planner.model.shape import MixerKind, ModelShape, TensorGroup
from planner.units import GIB

NAME = "Qwen/Qwen3.8-Flash-Next"
STREAMS = 4 * 2560
ROWS = 320_001_536  # sixteen primes from 20,000,003 to 20,000,171, padded to a multiple of 128
MIXER = STREAMS + 2 * 320 * STREAMS  # norm, down, up
EXPERTS = 512 * 3 * 2560 * 640

# Fields of the released text_config, as fixtures of public loaders give them.
TEXT: dict[str, Any] = {
    "model_type": "qwen4_exp_text", "vocab_size": 248_320, "hidden_size": 2560, "num_hidden_layers": 48,
    "full_attention_interval": 4, "num_attention_heads": 24, "num_key_value_heads": 2, "head_dim": 256,
    "output_gate_type": "sigmoid", "max_position_embeddings": 262_144, "partial_rotary_factor": 0.25,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 640,
    "shared_expert_intermediate_size": 640, "hc_count": 4, "hc_lowrank": 320, "ple_layer_ids": [2],
    "ple_embed_dim": 2560, "ple_conv_kernel_size": 4, "ngram_size": 3, "heads_per_ngram": 8,
    "ngram_vocab_size_base": 20_000_000, "make_ngram_vocab_size_divisible_by": 128, "split_ngram_parts": 128,
    "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 128, "indexer_budget": 2048,
    "indexer_compress_ratio": 4, "eos_token_id": 248_044, "tie_word_embeddings": False,
}  # fmt: skip
TOWER = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16, "out_hidden_size": 2560}


def pasted(outer: str = "qwen4_exp", **changes: Any) -> ModelShape:
    text = {**TEXT, "model_type": f"{outer}_text", **changes}
    return model_from_config({"model_type": outer, "text_config": text, "vision_config": TOWER})


# The hub counts 179,999,981,424 parameters in BF16; llama.cpp's files, without draft layer and tower, 176.94 billion.
@pytest.mark.parametrize("outer", ["qwen4_exp", "qwen3_8_flash_next"])
def test_published_total_is_met_exactly(outer: str) -> None:
    model = pasted(outer)
    assert model.num_parameters + model.mtp_parameters + model.vision_parameters == 179_999_981_424
    assert model.num_parameters == pytest.approx(176.94e9, rel=1e-4)
    assert model.estimated_fields == ()


def test_catalog_describes_the_same_model() -> None:
    model, made = get_model(NAME), pasted()
    assert group_parameters(model) == group_parameters(made)
    assert model.published_parameters == 179_999_981_424
    assert model.layer_order == made.layer_order


def test_shares_of_the_groups_in_closed_form() -> None:
    shares = group_parameters(pasted())
    assert shares["ngram"] == ROWS * 160 == 51_200_245_760
    assert shares["embedding"] == shares["lm_head"] == 248_320 * 2560
    assert shares["expert"] == 48 * EXPERTS
    assert shares["shared_expert"] == 48 * 3 * 2560 * 640
    assert shares["router"] == 48 * 2560 * (512 + 1)
    assert shares["attention"] == 12 * 2560 * 256 * (2 * 24 + 2 * 2 + 24)
    assert shares["indexer"] == 12 * 2560 * (4 + 1) * 128
    assert shares["hyper_connection"] == 48 * 2 * STREAMS * (320 + 4 + 320)
    assert shares["mlp"] == 2560 * (STREAMS + 2560)  # key and value of the looked-up rows
    assert shares["state"] == 36 * 2560 * (2 * 2048 + 2 * 6144 + 2 * 48 + 6144)
    # Norms of the streams and of heads, convolutions, decays, the n-gram layer's norms and taps, the last mixer.
    layers = 48 * 2 * STREAMS + 12 * (2 * 256 + 2 * 128) + 36 * ((2 * 2048 + 6144) * 4 + 2 * 48 + 128)
    assert shares["norm"] == layers + STREAMS * (3 + 4) + MIXER
    assert set(shares) == {"ngram", "embedding", "lm_head", "expert", "shared_expert", "router", "attention", "indexer",
                           "hyper_connection", "mlp", "state", "norm", "vision", "mtp"}  # fmt: skip


# One layer with attention and experts, two projections, their norms over the embedding and over all streams, a mixer.
def test_draft_layer_in_closed_form() -> None:
    layer = pasted().layers[47]
    assert layer.mixer.kind is MixerKind.FULL
    by_hand = layer.num_parameters + 2 * 2560 * 2560 + 2560 + STREAMS + MIXER
    assert pasted().mtp_parameters == by_hand == 2_607_150_848
    assert pasted(mtp_num_hidden_layers=0).mtp_parameters == 0


def test_ngram_layer_and_indexer_of_the_released_config() -> None:
    model = pasted()
    counts = {layer.mixer.kind: 0 for layer in model.layers}
    for layer in model.layers:
        counts[layer.mixer.kind] += 1
    assert counts == {MixerKind.STATE: 36, MixerKind.FULL: 12}
    assert [index for index, layer in enumerate(model.layers) if layer.mixer.side_channels] == [1]
    side, full = model.layers[1].mixer, model.layers[3].mixer
    assert (side.side_channels, side.side_taps, side.state_element_bytes) == (STREAMS, 9, 4)
    assert (full.indexer_head_dim, full.indexer_num_heads, full.indexer_top_k) == (128, 4, 2048)
    assert full.indexer_compression == 4


def test_names_of_layer_types_in_loaders() -> None:
    for name in ("full_attention", "indexed_attention", "qwen_sparse_attention"):
        types = [name if index % 4 == 3 else "linear_attention" for index in range(48)]
        assert pasted(layer_types=types).layer_order == pasted().layer_order


# The fixtures of loaders print the sizes that hashing uses: 20,000,003, 20,000,023 … 20,000,171.
def test_rows_are_primes() -> None:
    primes = [number for number in range(20_000_000, 20_000_172) if _is_prime(number)]
    assert (len(primes), primes[0], primes[1], primes[-1]) == (16, 20_000_003, 20_000_023, 20_000_171)
    assert -(-sum(primes) // 128) * 128 == ROWS
    assert [number for number in range(60) if _is_prime(number)][-3:] == [47, 53, 59]
    assert _is_prime(2**61 - 1)
    assert not _is_prime(3_215_031_751)  # a strong pseudoprime to 2, 3, 5 and 7
    assert not _is_prime(1)


def test_without_tables_or_tower() -> None:
    assert pasted(ple_layer_ids=[]).ngram_parameters == 0
    alone = model_from_config(copy.deepcopy(TEXT))
    assert (alone.vision_parameters, alone.ngram_parameters) == (0, ROWS * 160)


@pytest.mark.parametrize(
    ("field", "value"),
    [("ple_layer_ids", [49]), ("ple_layer_ids", [0]), ("heads_per_ngram", 5000), ("ngram_size", 1), ("hc_count", -1)],
)
def test_impossible_figures_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        pasted(**{field: value})
    assert caught.value.field == field


# RadixArk's repository holds 135,253,622,894 bytes: 63.32 GiB of experts, 47.69 of the table, 14.91 in BF16, headers of
# 220,000 tensors; Qwen's FP8 185.5 GB; NVIDIA's NVFP4 123.6 GiB, with fp8 experts in the draft layer.
@pytest.mark.parametrize(
    ("repository", "scheme", "published"),
    [
        ("RadixArk/Qwen3.8-Flash-Next-NVFP4", "nvfp4", 135_253_622_894),
        ("nvidia/Qwen3.8-Flash-Next-NVFP4", "nvfp4", 123.6 * GIB),
        ("Qwen/Qwen3.8-Flash-Next-FP8", "fp8", 185.5e9),
        ("Qwen/Qwen3.8-Flash-Next", "bf16", 335.3 * GIB),
    ],
)
def test_published_file_sizes(repository: str, scheme: str, published: float) -> None:
    model = get_model(repository if find_model_id(repository) else NAME)
    dtype = "auto" if model.quantization == scheme else scheme
    sizes = weight_bytes_by_group(model, dtype)
    total = sum(sizes.values()) + draft_bytes(model, dtype, Parallelism())
    assert total == pytest.approx(published, rel=1e-3)
    if scheme == "nvfp4":
        assert sizes[TensorGroup.EXPERT] / GIB == pytest.approx(63.32, rel=1e-3)
        assert sizes[TensorGroup.NGRAM] / GIB == pytest.approx(47.69, rel=1e-3)


def test_table_that_a_publisher_keeps_wide() -> None:
    model = get_model("Inferact/Qwen3.8-Flash-Next-NVFP4")
    assert weight_bytes_by_group(model)[TensorGroup.NGRAM] == 2 * ROWS * 160


def test_a_table_is_an_embedding_where_nothing_else_is_said() -> None:
    model = get_model(NAME)
    for scheme in ("awq_int4", "gguf_q4_k_m", "bf16"):
        assert weight_bits(model, scheme, TensorGroup.NGRAM) == weight_bits(model, scheme, TensorGroup.EMBEDDING)


# NVIDIA's config names the draft layer's experts; RadixArk's says nothing of the table, which engines are told.
def test_widths_that_a_quantised_config_states() -> None:
    mixed = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": ["lm_head", "*.ple.*"]}
    experts = {"mtp.layers.0.mlp.experts": {"quant_algo": "FP8_PB_WO", "group_size": 128}}
    outer: dict[str, Any] = {"model_type": "qwen4_exp", "text_config": TEXT, "vision_config": TOWER}
    stated = model_from_config(outer | {"quantization_config": mixed | {"quantized_layers": experts}})
    assert dict(stated.group_bits) == {"mtp": pytest.approx(8.279, abs=1e-3)}
    assert any("n-gram table taken as fp8" in note for note in stated.estimated_fields)
    plain = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    for dtype, bits in (("float8_e4m3fn", 8), ("bfloat16", 16)):
        text = TEXT | {"ple_embedding_dtype": dtype}
        told = model_from_config(outer | {"text_config": text, "quantization_config": plain})
        assert weight_bits(told, "auto", TensorGroup.NGRAM) == bits
        assert weight_bits(told, "auto", TensorGroup.EXPERT) == 4.5
        assert told.estimated_fields == ()
    block = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}
    fp8 = model_from_config(outer | {"quantization_config": block})
    assert [weight_bits(fp8, "auto", x) for x in (TensorGroup.NGRAM, TensorGroup.STATE)] == [8, 16]
    assert fp8.estimated_fields == ()


# vLLM on two DGX Sparks, three drafted tokens: 64.06 GiB on each with the table divided, of which 0.19 GiB are rotary
# tables four times as long as the context, once for the model and once for the draft; 88.07 in FP8.
@pytest.mark.parametrize(("scheme", "logged"), [("nvfp4", 64.06), ("fp8", 88.07)])
def test_weights_of_published_logs(scheme: str, logged: float) -> None:
    stage = pipeline_stages(get_model(NAME), scheme, Parallelism(tensor_parallel_size=2), True)[0]
    assert stage.weights_bytes / GIB == pytest.approx(logged, rel=0.012)
    sizes = dict(stage.weights_by_group)
    assert sizes["ngram"] == ROWS * 160 / 2
    assert sizes["hyper_connection"] == 2 * 48 * 2 * STREAMS * 644  # whole on every rank
