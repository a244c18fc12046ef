"""Bytes of the cache per token, window and state, by closed form and published figure; blocks of one stage."""

import math

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_layout import entry_bytes
from planner.memory.sizing import plan_memory
from planner.model.shape import Mixer, MixerKind
from planner.units import GIB
from tests.memory.cases import LLAMA, layout_of, plan, sequence_bytes


# Worked example: 79.2 GiB × 0.92 − 15.0 − 2.6 = 55.26 GiB; 2 MiB per block: 28,295 blocks, 452,720 tokens.
def test_block_arithmetic_of_the_worked_example() -> None:
    page = 16 * 8 * 256 * 2
    assert plan(LLAMA).kv_bytes_per_token == 131_072 == page * 32 / 16
    assert math.floor(55.26 * GIB / (page * 32)) in range(28_290, 28_297)


@pytest.mark.parametrize(("tp", "expected"), [(4, 81_920), (8, 40_960), (16, 40_960)])
def test_kv_heads_are_replicated_beyond_their_number(tp: int, expected: int) -> None:
    assert sequence_bytes(get_model("meta-llama/Llama-3.3-70B-Instruct"), 1, tp=tp) == expected


@pytest.mark.parametrize("tp", [1, 2, 8, 16])
def test_latent_is_not_divided_by_tensor_parallelism(tp: int) -> None:
    assert sequence_bytes(get_model("deepseek-ai/DeepSeek-V3"), 1, tp=tp) == 576 * 2 * 61


# Published cache sizes per token or sequence (vramscout table, lmstudio #1862, hf-mem PR #70, vllm #22291).
@pytest.mark.parametrize(
    ("model", "tokens", "dtype", "expected"),
    [
        ("moonshotai/Kimi-K2.5", 1, "auto", 68.625 * 1024),
        ("MiniMaxAI/MiniMax-M2.5", 204_800, "auto", 48.4375 * GIB),
        ("Qwen/Qwen2.5-7B-Instruct", 3072, "auto", 57_344 * 3072),
        ("microsoft/phi-2", 1, "auto", 327_680),
        (LLAMA, 8192, "fp8", 131_072 * 8192 / 2),
        ("deepseek-ai/DeepSeek-V3.2", 1, "fp8_ds_mla", (656 + 132) * 61),
    ],
)
def test_cache_per_sequence(model: str, tokens: int, dtype: str, expected: float) -> None:
    assert sequence_bytes(get_model(model), tokens, kv=dtype) == pytest.approx(expected, rel=1e-4)


def test_window_stops_growing_and_state_never_grows() -> None:
    windowed = get_model("openai/gpt-oss-20b")
    per_token = 8 * 128 * 2
    assert sequence_bytes(windowed, 8192) == 12 * per_token * (8192 + 128)
    state = get_model("Qwen/Qwen3.5-27B")
    per_sequence = 48 * (48 * 128 * 128 * 4 + 10_240 * 3 * 2)
    assert sequence_bytes(state, 262_144) - 16 * GIB == pytest.approx(per_sequence)


# Whisper large-v3: 32 layers × 20 heads × 64 × K and V × 2 B = 163,840 B per token, and 1,500 source tokens each.
def test_cross_attention_holds_the_whole_source() -> None:
    made = plan("openai/whisper-large-v3", length=448, gpu=get_gpu("L4"))
    assert made.kv_bytes_per_token == 163_840
    assert made.fixed_blocks_per_sequence == math.ceil(1500 / 16)
    assert sequence_bytes(get_model("openai/whisper-large-v3"), 100) == 163_840 * 1600
    assert made.starts


def test_fp8_cache_doubles_tokens_in_the_same_pool() -> None:
    wide, narrow = plan(LLAMA), plan(LLAMA, kv="fp8")
    assert narrow.kv_pool_bytes == wide.kv_pool_bytes
    assert narrow.kv_tokens == pytest.approx(2 * wide.kv_tokens, abs=32)


def test_context_parallelism_multiplies_tokens() -> None:
    one, eight = (
        plan("moonshotai/Kimi-K2-Instruct", tp=8, gpu=get_gpu("B200")),
        plan("moonshotai/Kimi-K2-Instruct", tp=8, dcp=8, gpu=get_gpu("B200")),
    )
    assert eight.kv_pool_bytes == one.kv_pool_bytes
    assert eight.kv_tokens == 8 * one.kv_tokens


def test_first_engine_pads_the_latent() -> None:
    old = plan("deepseek-ai/DeepSeek-V2-Lite", version="0.7.3 (V0)")
    assert old.kv_bytes_per_token == 27 * 640 * 2


# (pool GiB, tokens per block, blocks or tokens): vllm #12330, kvplan L4, llm-d Mistral-Small-3.2, vllm #21348.
@pytest.mark.parametrize(
    ("model", "tp", "pool_gib", "block", "blocks"),
    [
        ("meta-llama/Meta-Llama-3-8B", 1, 11.115, 16, 5691),
        (LLAMA, 1, 4.91, 16, 40_208 / 16),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", 1, 28.20, 128, 1444),
        ("Qwen/Qwen3-235B-A22B-FP8", 4, 8.11, 1, 180_935),
    ],
)
def test_blocks_of_published_pools(model: str, tp: int, pool_gib: float, block: int, blocks: float) -> None:
    per_token = sequence_bytes(get_model(model), 1, tp=tp)
    assert pool_gib * GIB / (per_token * block) == pytest.approx(blocks, rel=1e-3)


# vramscout table, hf-mem PR #70, talos-argocd-proxmox PR #1995; arithmetic of SelfHostLLM's case corrected.
@pytest.mark.parametrize(
    ("model", "tokens", "dtype", "gib"),
    [
        ("MiniMaxAI/MiniMax-M2.7", 204_800, "auto", 48.4375),
        ("openai/gpt-oss-20b", 8192, "auto", 6.09375 / 32),
        ("meta-llama/Llama-2-7b-hf", 8192, "auto", 4.0),
        ("meta-llama/Meta-Llama-3-8B", 8192, "auto", 1.0),
    ],
)
def test_cache_of_one_sequence(model: str, tokens: int, dtype: str, gib: float) -> None:
    assert sequence_bytes(get_model(model), tokens, kv=dtype) / GIB == pytest.approx(gib, rel=1e-6)


def test_fp8_cache_of_a_state_hybrid_grows_by_its_full_layers() -> None:
    model = get_model("Qwen/Qwen3.8-27B")
    grown = sequence_bytes(model, 302_921, kv="fp8") - sequence_bytes(model, 0, kv="fp8")
    assert grown == 302_921 * 32 * 1024
    assert grown / GIB == pytest.approx(9.24, rel=0.001)


NEWEST = Edition("vllm", (0, 30))


# Mistral-Small-4 (36 layers of 256 + 64): 22.5 KiB; DeepSeek-V3 in fp8_ds_mla: 61 × 656 B.
@pytest.mark.parametrize(
    ("layers", "latent", "dtype", "bits", "expected"),
    [(36, 256, "auto", 16, 22.5 * 1024), (61, 512, "fp8_ds_mla", 8, 40_016), (61, 512, "fp8", 8, 61 * 576)],
)
def test_latent_entries(layers: int, latent: int, dtype: str, bits: int, expected: float) -> None:
    mixer = Mixer(kind=MixerKind.MLA, num_heads=128, kv_lora_rank=latent, qk_rope_head_dim=64)
    assert layers * entry_bytes(mixer, 8, bits, NEWEST, dtype) == expected


# NVFP4 cache: 4.5 bits per element (half a byte and an e4m3 scale per 16).
def test_nvfp4_cache() -> None:
    assert sequence_bytes(get_model(LLAMA), 16, kv="nvfp4") == 16 * 131_072 * 4.5 / 16


# SGLang server arguments: swa_full_tokens_ratio 0.8 (gpt-oss: 18 full and 18 windowed layers).
@pytest.mark.parametrize(
    ("model", "block_bytes"),
    [
        ("openai/gpt-oss-120b", 18 * 1.8 * 8 * 2 * 64 * 2),
        ("google/gemma-3-27b-it", 62 * 16 * 2 * 128 * 2),
    ],
)
def test_pools_of_sglang(model: str, block_bytes: float) -> None:
    made = plan(model, get_gpu("B300"), family="sglang", name="sglang", version="0.5", block_size=1)
    assert made.block_bytes == pytest.approx(block_bytes)
    assert made.kv_tokens == int(made.kv_pool_bytes // made.block_bytes)


# Granite-4.0-H-Small: 4 attention layers × 8 heads × (128 + 128) × 2 B a token; a state of 128 heads × 64 × 128.
def test_hybrid_of_granite() -> None:
    made = plan("ibm-granite/granite-4.0-h-small", get_gpu("H200 SXM"), version="0.19.0", max_num_seqs=64)
    assert made.kv_bytes_per_token == 4 * 8 * 256 * 2
    state = next(x.mixer for x in get_model("ibm-granite/granite-4.0-h-small").layer_kinds if x.mixer.state_elements)
    assert state.state_elements == 128 * 64 * 128
    assert state.conv_elements == (128 * 64 + 2 * 128) * 3


# GLM-5.2: an indexer in layers 0, 1, 2 and every fourth from 6 on, 21 of 78 (ROCm/ATOM pull 1260): 132 B of index key
# in those, and 656 B of latent in each layer where FlashMLA packs it, 576 B elsewhere; 4-bit latents take 432 B.
@pytest.mark.parametrize(
    ("gpu", "kv", "latent"), [("H200 SXM", "fp8", 656), ("B300", "fp8", 576), ("B300", "nvfp4", 432)]
)
def test_layers_that_share_an_indexer(gpu: str, kv: str, latent: int) -> None:
    model = get_model("zai-org/GLM-5.2")
    own = [index for index, kind in enumerate(model.layer_order) if model.layer_kinds[kind].mixer.indexer_head_dim]
    assert own == [0, 1, 2, *range(6, 78, 4)]
    made = plan_memory(model, get_gpu(gpu), EngineSettings(version="0.26.0"), Parallelism(tensor_parallel_size=8),
                       max_model_len=65_536, weight_dtype="fp8", kv_cache_dtype=kv)  # fmt: skip
    assert made.kv_bytes_per_token == 78 * latent + 21 * 132


# 24 latent layers of 512 + 64 elements; 69 states of 96 × 128 × 128 fp32 and three convolution tails of 12,288 × 3
# (vLLM MambaStateShapeCalculator.kda_state_shape).
def test_cache_of_kimi_k3() -> None:
    model = get_model("moonshotai/Kimi-K3")
    state = 96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2
    assert sequence_bytes(model, 1000) == 24 * 576 * 2 * 1000 + 69 * state
    assert sequence_bytes(model, 1000, kv="fp8") == 24 * 576 * 1000 + 69 * state
    assert model.rope_cache_elements == 0


# A state page on one of 8 GPUs holds 707 latent entries; kernels of latent attention want whole 128s (vLLM v0.33
# _align_hybrid_block_size), and 69 state layers are three groups of the 24 latent ones.
@pytest.mark.parametrize(("tp", "block"), [(8, 768), (16, 384), (32, 256)])
def test_blocks_of_kimi_k3(tp: int, block: int) -> None:
    layout = layout_of("moonshotai/Kimi-K3", tp)
    assert layout.main.block_tokens == block == math.ceil(6_512_640 / tp / 1152 / 128) * 128
    assert layout.block_bytes == 24 * block * 1152
    assert [(group.kind, group.num_groups) for group in layout.groups] == [(MixerKind.STATE, 3), (MixerKind.FULL, 1)]


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
    assert sequence_bytes(model, 1, kv=dtype, tp=tp) == expected


# vLLM's sparse backend takes pages of 128 tokens only; all layers count tokens alike, so they are one group.
def test_blocks_of_minimax_m3() -> None:
    layout = layout_of("MiniMaxAI/MiniMax-M3", 4)
    assert len(layout.groups) == 1
    assert layout.main.block_tokens == 128
    assert layout.block_bytes == 128 * (60 * 2 * 128 * 2 + 57 * 128 * 2)
    assert layout_of("MiniMaxAI/MiniMax-M3", 4, family="sglang").main.block_tokens == 16


# 12 layers grow, 33 stop at 512 tokens (AIConfigurator's test of the family: 0.2896 of an all-global model at 16,384).
def test_cache_of_step_stops_at_its_windows() -> None:
    per_layer = 2 * 8 * 128 * 2
    model = get_model("stepfun-ai/Step-3.7-Flash")
    assert sequence_bytes(model, 16_384) == per_layer * (12 * 16_384 + 33 * 512)
    assert sequence_bytes(model, 16_384) / (45 * per_layer * 16_384) == pytest.approx(0.2896, abs=1e-4)
    layout = layout_of("stepfun-ai/Step-3.7-Flash", 1)
    assert [(x.kind, x.num_groups, x.window_tokens) for x in layout.groups] == [
        (MixerKind.FULL, 1, 0),
        (MixerKind.SLIDING, 3, 512),
    ]
    assert layout.block_bytes == 12 * 16 * per_layer


# Two latents per layer: 28 × 2 × (512 + 64) × 2 bytes.
def test_cache_of_longcat_flash() -> None:
    assert sequence_bytes(get_model("meituan-longcat/LongCat-Flash-Chat"), 1) == 28 * 2 * 576 * 2
    assert sequence_bytes(get_model("meituan-longcat/LongCat-Flash-Lite"), 1) == 14 * 2 * 576 * 2
