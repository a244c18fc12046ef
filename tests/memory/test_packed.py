"""Cache of Qwen3.8-Flash-Next: packed blocks of vLLM against logs, and other engines."""

import dataclasses

import pytest

from planner.accuracy.memory_rows import read_case
from planner.catalog.gpus import get_gpu
from planner.catalog.models import find_model_id, get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout
from planner.memory.packed import PackedEntries, packed_layout
from planner.memory.shards import pipeline_stages
from planner.memory.sizing import plan_memory
from planner.memory.verdict import Verdict, logged_kv_tokens, start_verdict
from planner.model.shape import MixerKind
from planner.units import GIB
from tests.memory.cases import sequence_bytes

NAME = "Qwen/Qwen3.8-Flash-Next"


def judged(
    tp: int, length: int, kv: str = "auto", pool_bytes: float = 0.0, gpu: str = "GB10", **engine: object
) -> Verdict:
    settings = EngineSettings(**engine)  # type: ignore[arg-type]
    verdict = start_verdict(
        Demand(model=get_model(NAME), gpu=get_gpu(gpu), engine=settings, weight_dtype="nvfp4", kv_cache_dtype=kv,
               parallelism=Parallelism(tensor_parallel_size=tp), max_model_len=length),
        find_longest=False,
    )  # fmt: skip
    rank = dataclasses.replace(verdict.rank, pool_bytes=pool_bytes)
    return dataclasses.replace(verdict, rank=rank, num_blocks=rank.num_blocks)


def layout(tp: int, drafted: int = 0, kv: str = "auto") -> KvLayout:
    return judged(tp, 4096, kv, num_speculative_tokens=drafted).rank.layout


# Tokens per block that logs print: 784 on four GPUs (LMCache pull 5042), 1,600 on two with three drafted tokens.
@pytest.mark.parametrize(
    ("tp", "drafted", "kv", "tokens", "layers", "per_token"),
    [
        (4, 0, "auto", 784, 12, 1024),
        (2, 0, "auto", 1568, 12, 1024),
        (2, 3, "auto", 1600, 13, 1024),
        (1, 2, "auto", 1600, 13, 2048),
        (1, 2, "fp8", 3184, 13, 1024),
    ],
)
def test_blocks_by_hand(tp: int, drafted: int, kv: str, tokens: int, layers: int, per_token: int) -> None:
    made = layout(tp, drafted, kv)
    state = 48 * 128 * 128 * 4 / tp + (2 * 2048 + 6144) * (3 + drafted) * 2 / tp
    assert made.main.block_tokens == tokens
    assert tokens - 16 < state / per_token <= tokens  # the least multiple of 16 whose page holds a state
    # A page of keys and values, and a bf16 key of 128 for every four tokens, for each layer with attention.
    assert made.block_bytes == layers * tokens * (per_token + 128 * 2 / 4)
    assert made.bytes_per_token == layers * (per_token + 64)
    assert [group.num_groups for group in made.groups] == [1, 3, 1, 1]  # states of 36 layers, n-gram layer, rings
    assert [group.kind for group in made.groups[1:]] == [MixerKind.STATE] * 3
    assert [group.pages_per_sequence for group in made.groups[1:]] == [2 + drafted, 2 + drafted, 1]


# vLLM on one GB10 (vllm-project/vllm issue 54426, 30 August 2026), two drafted tokens: 2.98 and 5.34 sequences.
@pytest.mark.parametrize(
    ("kv", "blocks", "tokens", "sequences"), [("auto", 539, 780_638, 2.98), ("fp8", 534, 1_399_848, 5.34)]
)
def test_tokens_of_published_pools(kv: str, blocks: int, tokens: int, sequences: float) -> None:
    size = layout(1, 2, kv).block_bytes
    verdict = judged(1, 262_144, kv, blocks * size + 1, num_speculative_tokens=2)
    assert logged_kv_tokens(verdict, 262_144, EngineSettings()) == tokens
    assert verdict.max_concurrency == pytest.approx(sequences, abs=0.005)


# Two DGX Sparks, all else alike: 2,228,932 tokens at 0.85 of 121.69 GiB, 1,001,815 at 0.70; 8.50 and 3.82 sequences.
def test_two_shares_of_one_memory() -> None:
    drafted = {"num_speculative_tokens": 3}
    per_sequence = judged(2, 262_144, **drafted).blocks_per_sequence
    blocks = [round(tokens / 262_144 * per_sequence, 2) for tokens in (2_228_932, 1_001_815)]
    assert blocks == [1573, 707]
    between = 0.15 * 121.69 * GIB / layout(2, 3).block_bytes
    assert between == pytest.approx(blocks[0] - blocks[1], abs=1)


# The same, with contexts of 1,000,000 and other numbers of drafted tokens: whole blocks each.
@pytest.mark.parametrize(("drafted", "tokens"), [(3, 2_481_424), (3, 2_852_941), (1, 2_520_930), (1, 2_424_806)])
def test_published_figures_are_whole_blocks(drafted: int, tokens: int) -> None:
    per_sequence = judged(2, 1_000_000, num_speculative_tokens=drafted).blocks_per_sequence
    blocks = tokens * per_sequence / 1e6
    assert blocks == pytest.approx(round(blocks), abs=1e-3)


def test_a_stage_without_attention_and_a_wide_side_state() -> None:
    states = PackedEntries(attention_layers=0, token_bytes=0, index_bytes=0, state_layers=9, state_bytes=4096.0,
                           side_layers=0, side_bytes=0)  # fmt: skip
    only = packed_layout(states, 16, 2, 1)
    assert (only.block_bytes, only.bytes_per_token, only.num_groups) == (4096, 0, 9)
    wide = dataclasses.replace(states, attention_layers=3, token_bytes=64.0, index_bytes=4.0, side_layers=1,
                               side_bytes=8192.0)  # fmt: skip
    made = packed_layout(wide, 16, 2, 1)
    assert made.main.block_tokens == 128  # 8,192 ÷ 64
    assert made.block_bytes == 3 * 128 * 68


# 2 × 2 heads × 256 × 2 bytes and a quarter of a key of 256 bytes in 12 layers; states of 36 layers in fp32 with tails
# of 3 columns, and nine columns of four streams.
def test_cache_of_one_sequence() -> None:
    model = get_model(NAME)
    states = 36 * (48 * 128 * 128 * 4 + 10_240 * 3 * 2) + 4 * 2560 * 9 * 2
    assert sequence_bytes(model, 0) == states
    assert sequence_bytes(model, 1000) - states == 1000 * 12 * (2048 + 64)


# SGLang: keys and values of 24 KiB, pooled keys of 64 bytes a layer (QSATokenToKVPool.qsa_bytes_per_token); llama.cpp
# caches every key of the indexer and its pooled one in the cache's type.
def test_cache_of_other_engines() -> None:
    sglang = judged(1, 4096, gpu="H100 SXM", family="sglang", version="0.5.20").rank.layout
    assert sglang.bytes_per_token == 12 * (2048 + 64)
    llamacpp = judged(1, 4096, gpu="H100 SXM", family="llamacpp", block_size=1, max_num_seqs=1).rank
    slots = plan_memory(get_model(NAME), get_gpu("H100 SXM"),
                        EngineSettings(family="llamacpp", name="llama.cpp", block_size=1, max_num_seqs=1),
                        Parallelism(), max_model_len=4096, weight_dtype="gguf_q4_k_m")  # fmt: skip
    states = 4 * (36 * (48 * 128 * 128 + 10_240 * 3) + 4 * 2560 * 9)
    assert slots.kv_pool_bytes == pytest.approx(4096 * 12 * (2048 + 2 * 128 * 2) + states, rel=1e-6)
    assert llamacpp.layout.has_states is False  # one reserved pool


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("PLE table mmap (47.7 GiB fp8)", False),
        ("max-mamba-cache-size 25, PLE table in RAM", False),
        ("--no-ple-offload-embedding", True),
        ("--ple-offload-embedding", False),
        ("VLLM_PLE_CPU_OFFLOAD=0", True),
        ("MTP 3", None),
    ],
)
def test_rows_that_say_where_the_table_stands(flags: str, expected: bool | None) -> None:
    row = {"model": "RadixArk/Qwen3.8-Flash-Next-NVFP4", "gpu": "GB10", "gpu_mem_gib": "121.69", "engine": "vllm",
           "other_flags": flags, "max_model_len": "4096"}  # fmt: skip
    assert read_case(row).scenario.engine_settings.ngram_on_gpu is expected


def test_editions_before_the_pool_of_groups_do_not_pack() -> None:
    older = judged(1, 4096, version="0.8.5").rank.layout
    assert older.block_bytes != layout(1).block_bytes


# GLM-5.3-Flash in vLLM: pages as large as a state of KDA in multiples of 128 tokens (1,152 on four GPUs in 16 bits:
# LMCache pull 5042; 8,960 on one in 8 bits with five drafted tokens: novitalabs/pegaflow pull 457; 3,584 on two with
# fp8_ds_mla and seven: MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks pull 94), 34 layers of states in four groups of 9, 9,
# 8 and 8 beside eleven layers of attention, and a ring of keys (unified-cache-management pull 1371).
@pytest.mark.parametrize(
    ("tp", "dtype", "drafted", "block"), [(4, "auto", 0, 1152), (1, "fp8", 5, 8960), (2, "fp8_ds_mla", 7, 3584)]
)
def test_pages_of_latent_attention_with_pooled_keys(tp: int, dtype: str, drafted: int, block: int) -> None:
    made = build_layout(
        get_model("zai-org/GLM-5.3-Flash").layer_counts(), tensor_parallel_size=tp, context_parallel=1,
        kv_cache_dtype=dtype, fp32=False, edition=Edition("vllm", (0, 33)), block_size=64,
        num_speculative_tokens=drafted,
    )  # fmt: skip
    assert made.main.block_tokens == block
    assert [group.num_groups for group in made.groups] == [1, 4, 1]


# Hy4-preview: 770B in all, 49B active, a draft layer of 10B (vllm-project/recipes pull 871). 21 of its 78 layers
# have an indexer, whose keys are cached beside the latents of all.
def test_parameters_of_hy4() -> None:
    model = get_model("tencent/Hy4-preview")
    assert model.num_parameters / 1e9 == pytest.approx(770, rel=0.001)
    assert model.mtp_parameters / 1e9 == pytest.approx(10, rel=0.01)
    assert model.num_active_parameters / 1e9 == pytest.approx(49, rel=0.02)
    assert sum(count for layer, count in model.layer_counts() if layer.mixer.indexer_head_dim) == 21
    assert get_model("tencent/Hy4-preview-FP8").quantization == "mxfp8"


# 321B in all and 18B active (docs.baseten.co), 642 GB in 16 bits (unsloth.ai/docs), less the draft layer.
def test_parameters_of_glm_5_3_flash() -> None:
    model = get_model("zai-org/GLM-5.3-Flash")
    assert (model.num_parameters + model.mtp_parameters) / 1e9 == pytest.approx(321, rel=0.003)
    assert find_model_id("GLM-5.3-Flash") == "zai-org/GLM-5.3-Flash"


# dots3-note: 280B of language model and 16B active of 288B in all, 576.9 GB in 16 bits (its card; vLLM's recipe, which
# serves the FP8 checkpoint on eight GPUs of 80 GB). A windowed layer caches a latent of 1,024 and a key of 64: so wide
# are the rows to which vLLM pads those of the others (models/dots3_note/nvidia/model.py, `physical_head_size`).
def test_dots3_note_caches_latents_within_windows() -> None:
    model = get_model("dots-studio/dots3-note-prev")
    assert model.num_parameters / 1e9 == pytest.approx(280, rel=0.005)
    assert model.num_active_parameters / 1e9 == pytest.approx(16, rel=0.03)
    (stage,) = pipeline_stages(model, "auto", Parallelism(), with_draft_layers=True)
    copies = 2 * model.mtp_shared_parameters
    assert (stage.weights_bytes + copies) / 1e9 == pytest.approx(576.9, rel=0.003)
    made = build_layout(
        model.layer_counts(), tensor_parallel_size=8, context_parallel=1, kv_cache_dtype="auto", fp32=False,
        edition=Edition("vllm", (0, 33)), block_size=64, num_speculative_tokens=0,
    )  # fmt: skip
    assert made.block_bytes == 13 * 64 * 2 * (1024 + 64)
    assert [(group.num_groups, group.block_tokens) for group in made.groups] == [(1, 64), (3, 64)]
    engine = EngineSettings(version="0.28.0", gpu_memory_utilization=0.9, max_num_batched_tokens=8192, block_size=64)
    served = plan_memory(get_model("dots-studio/dots3-note-prev-fp8"), get_gpu("H100 SXM"), engine,
                         Parallelism(tensor_parallel_size=8, expert_parallel=True), max_model_len=262_144)  # fmt: skip
    assert served.starts


# Bytes in the safetensors headers of the two repositories: 328,326,771,576 and 642,676,397,788.
@pytest.mark.parametrize(
    ("name", "published"), [("GLM-5.3-Flash", 328_326_771_576), ("GLM-5.3-Flash-BF16", 642_676_397_788)]
)
def test_published_bytes_of_glm_5_3_flash(name: str, published: int) -> None:
    model = get_model(f"zai-org/{name}")
    (stage,) = pipeline_stages(model, "auto", Parallelism(), with_draft_layers=True)
    assert stage.weights_bytes == pytest.approx(published, rel=0.005)
