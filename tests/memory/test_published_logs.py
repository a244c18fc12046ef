"""What published start-up logs say of pools, encoders and shared memory, and what the plan says of the same."""

import dataclasses

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_layout import build_layout, state_bytes
from planner.memory.memory_plan import MemoryPlan
from planner.memory.ranks import Demand, all_ranks, limits_of
from planner.memory.runtime import encoder_bytes, profiled_images, visible_memory_bytes
from planner.memory.sglang_states import StatePool, state_pool
from planner.memory.sizing import plan_memory
from planner.memory.verdict import Verdict, logged_kv_tokens, start_verdict
from planner.model.config.build import model_from_config
from planner.model.quantization import weight_bits, weight_bytes_by_group
from planner.model.shape import ModelShape, TensorGroup, VisionTower, with_media, with_state_dtype
from planner.scenario.scenario import Scenario
from planner.units import GIB, MIB

QWEN27, QWEN35 = "Qwen/Qwen3.8-27B", "Qwen/Qwen3.6-35B-A3B"


def with_pool(model: str, pool_gib: float, length: int, kv: str, **engine: object) -> Verdict:
    """Judge an engine that has `pool_gib` left for its cache, as its log states."""
    settings = EngineSettings(**({"cache_state_prefixes": True} | engine))  # type: ignore[arg-type]
    verdict = start_verdict(
        Demand(model=get_model(model), gpu=get_gpu("H100 SXM"), engine=settings, parallelism=Parallelism(),
               max_model_len=length, kv_cache_dtype=kv),
        find_longest=False,
    )  # fmt: skip
    rank = dataclasses.replace(verdict.rank, pool_bytes=pool_gib * GIB)
    return dataclasses.replace(verdict, rank=rank, num_blocks=rank.num_blocks)


# Kimi-K3 on 16 GPUs of which 8 share a cache: 1,860,000,000 B on each printed 1,054,602 tokens, 1.01 sequences.
def test_cache_of_kimi_k3() -> None:
    engine = EngineSettings(version="0.28.0", max_num_seqs=1, enable_prefix_caching=False)
    split = Parallelism(tensor_parallel_size=16, decode_context_parallel_size=8)
    verdict = start_verdict(
        Demand(model=get_model("moonshotai/Kimi-K3"), gpu=get_gpu("B300"), engine=engine, parallelism=split,
               max_model_len=1_048_576, kv_cache_dtype="fp8"),
        find_longest=False,
    )  # fmt: skip
    rank = dataclasses.replace(verdict.rank, pool_bytes=1_860_000_000)
    verdict = dataclasses.replace(verdict, rank=rank, num_blocks=rank.num_blocks)
    assert logged_kv_tokens(verdict, 1_048_576, engine) == 1_054_602


def needed_gib(verdict: Verdict, length: int) -> float:
    """Cache that the start-up check asks for."""
    layout = verdict.rank.layout
    return layout.blocks_at_peak(length, verdict.resolved.in_flight_tokens) * layout.block_bytes / GIB


# vLLM logs: Qwen3.8-27B on an RTX 5090 (0.26.1 development build, 2026-08-23); Qwen3.6-35B-A3B on an RTX 5090
# (0.24.0, noonghunna/club-3090 issue 652); Qwen3.6-27B on a DGX Spark (0.23.1 development build, 2026-07-02).
@pytest.mark.parametrize(
    ("model", "pool_gib", "length", "settings", "tokens", "concurrency"),
    [
        (QWEN27, 7.33, 196_608, {"version": "0.26.1", "max_num_seqs": 1}, 227_886, 1.16),
        (QWEN35, 6.01, 131_072, {"version": "0.24.0", "max_num_seqs": 1}, 569_878, 4.35),
        ("Qwen/Qwen3.6-27B", 48.6, 262_144, {"version": "0.23.1", "num_speculative_tokens": 2,
                                             "max_num_batched_tokens": 65_536}, 1_394_129, 5.32),
    ],
)  # fmt: skip
def test_tokens_of_published_pools(
    model: str, pool_gib: float, length: int, settings: dict[str, object], tokens: int, concurrency: float
) -> None:
    verdict = with_pool(model, pool_gib, length, "fp8", **settings)
    assert logged_kv_tokens(verdict, length, EngineSettings()) == tokens
    assert verdict.max_concurrency == pytest.approx(concurrency, abs=0.005)


# The same RTX 5090 with two drafted tokens: "7.0 GiB KV cache is needed, larger than 6.42; estimated 177600".
def test_longest_context_of_a_published_refusal() -> None:
    settings = {"version": "0.26.1", "max_num_seqs": 1, "num_speculative_tokens": 2, "max_num_batched_tokens": 2048}
    verdict = with_pool(QWEN27, 6.42, 196_608, "fp8", **settings)
    assert needed_gib(verdict, 196_608) == pytest.approx(7.0, abs=0.01)
    assert needed_gib(verdict, 177_600) <= 6.42 < needed_gib(verdict, 177_600 + verdict.rank.layout.main.block_tokens)


# The largest image of Qwen2.5-VL: 65,536 patches of 14 × 14 in two frames; width 1,280, gated columns of 3,420.
def test_encoder_peak_by_hand() -> None:
    tower = get_model("Qwen/Qwen2.5-VL-7B-Instruct").vision_tower
    assert tower is not None
    by_hand = 65_536 * (2 * (3 * 3420 + 3 * 1280) + 4 * 3 * 2 * 14 * 14)
    assert encoder_bytes(tower, 1) == by_hand
    assert encoder_bytes(tower, 2) == by_hand - 65_536 * 2 * 3 * 3420 / 2


# Activations of vLLM's profile run with Qwen3.5-class towers: 2.17 to 2.22 GiB on one GPU, 1.59 on each of two.
@pytest.mark.parametrize(("tp", "low", "high"), [(1, 2.17, 2.22), (2, 1.59, 1.59)])
def test_encoder_sets_the_activation_peak(tp: int, low: float, high: float) -> None:
    made = plan_memory(get_model(QWEN27), get_gpu("RTX 5090"),
                       EngineSettings(version="0.26.1", max_num_batched_tokens=2048, max_num_seqs=1),
                       Parallelism(tensor_parallel_size=tp), max_model_len=4096, weight_dtype="nvfp4")  # fmt: skip
    assert low * 0.88 < made.activation_bytes / GIB < high * 1.12


def test_a_tower_refuses_impossible_widths() -> None:
    with pytest.raises(InvalidInput) as caught:
        VisionTower(width=0, intermediate_size=4, gated=False, patch_elements=4, most_patches=4, item_tokens=1)
    assert caught.value.field == "width"


# DGX Spark: nvidia-smi names no memory; free -h and torch say 121.69 GiB, none of it kept by a driver.
def test_memory_shared_with_the_cpu() -> None:
    spark = get_gpu("GB10")
    assert spark.unified_memory
    assert visible_memory_bytes(spark) == 121.69 * GIB
    older, newer = (
        plan_memory(get_model(QWEN35), spark, EngineSettings(version=version), Parallelism(), max_model_len=8192)
        for version in ("0.11.2", "0.12.0")
    )
    assert newer.non_torch_bytes - older.non_torch_bytes == pytest.approx(6 * GIB)


# llama-server with -np left open: four slots share one context (ggml-org/llama.cpp pull 16736), a state for each slot;
# 598.5 MiB of states for four slots of Qwen3.6-27B (lmstudio #1862), and a copy of each for each drafted token; the
# layer that drafts caches 4 heads × 256 × K and V in 16 bits, 256 MiB at 65,536 tokens.
@pytest.mark.parametrize(("drafted", "states_mib"), [(0, 598.5), (2, 3 * 598.5 + 256)])
def test_slots_that_share_one_context(drafted: int, states_mib: float) -> None:
    engine = EngineSettings(family="llamacpp", name="llama.cpp", version="", block_size=1, max_num_seqs=4,
                            kv_unified=True, num_speculative_tokens=drafted)  # fmt: skip
    made = plan_memory(get_model("Qwen/Qwen3.6-27B"), get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=65_536,
                       weight_dtype="gguf_q4_k_m")  # fmt: skip
    assert made.kv_pool_bytes / MIB == pytest.approx(4096 + states_mib, rel=1e-3)
    assert made.kv_tokens == 65_536


# Ollama 0.32.14 on an RTX 5090. Qwen3.8-27B, 131,072 tokens, three drafted: 4,352 MiB of 16 layers in q8_0, 512 MiB of
# the draft layer in f16 and 598.5 MiB of states. Gemma 4 26B, four slots of 8,192: 340 MiB of 5 layers and 850 MiB of
# 25 windowed layers with 2,048 cells in each of 4 streams (1,024 of the window and a batch of 1,024).
@pytest.mark.parametrize(
    ("model", "slots", "length", "drafted", "logged_mib"),
    [
        (QWEN27, 1, 131_072, 3, 4352 + 512 + 598.5),
        ("google/gemma-4-26B-A4B-it", 4, 8192, 0, 340 + 850),
    ],
)
def test_caches_that_ollama_reserves(model: str, slots: int, length: int, drafted: int, logged_mib: float) -> None:
    engine = EngineSettings(family="llamacpp", name="ollama", version="0.32.14", block_size=1, max_num_seqs=slots,
                            num_speculative_tokens=drafted)  # fmt: skip
    made = plan_memory(get_model(model), get_gpu("RTX 5090"), engine, Parallelism(), max_model_len=length,
                       weight_dtype="gguf_q4_k_m", kv_cache_dtype="q8_0")  # fmt: skip
    assert made.kv_pool_bytes / MIB == pytest.approx(logged_mib, rel=1e-4)


# Gemma 3 4B: 5 full layers and 29 with a window of 1,024, 4 KiB per token each. llama-kv-cache-iswa.cpp: separate slots
# hold pad256(1,024 + 512) cells each; slots that share a context hold pad256(4 × 1,024 + 512) together.
@pytest.mark.parametrize(("unified", "cells"), [(False, 4 * 1536), (True, 4608)])
def test_windows_of_slots(unified: bool, cells: int) -> None:
    engine = EngineSettings(family="llamacpp", name="llama.cpp", version="", block_size=1, max_num_seqs=4,
                            kv_unified=unified)  # fmt: skip
    made = plan_memory(get_model("google/gemma-3-4b-it"), get_gpu("RTX 4090"), engine, Parallelism(),
                       max_model_len=16_384)  # fmt: skip
    full = (1 if unified else 4) * 16_384
    assert made.kv_pool_bytes == 4096 * (5 * full + 29 * cells)


def test_widths_of_one_checkpoint_stand_before_those_of_its_scheme() -> None:
    model = dataclasses.replace(get_model(QWEN27), quantization="nvfp4", group_bits=(("attention", 16.0),))
    usual = weight_bytes_by_group(get_model(QWEN27), "nvfp4")
    wide = weight_bytes_by_group(model, "auto")
    attention = next(group for group in wide if group.value == "attention")
    assert wide[attention] == pytest.approx(2 * usual[attention], rel=0.01)
    assert {k: v for k, v in wide.items() if k != attention} == {k: v for k, v in usual.items() if k != attention}


@pytest.mark.parametrize(
    ("model_type", "vision", "expected"),
    [
        ("qwen3_vl", {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "patch_size": 16},
         VisionTower(width=1152, intermediate_size=4304, gated=False, patch_elements=1536, most_patches=65_536,
                     item_tokens=16_384, learned_positions=True)),
        ("mistral3", {"hidden_size": 1024}, None),
    ],
)  # fmt: skip
def test_shape_of_a_tower_in_a_config(model_type: str, vision: dict[str, int], expected: VisionTower | None) -> None:
    text = {"model_type": "qwen3", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
            "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "head_dim": 128,
            "max_position_embeddings": 4096}  # fmt: skip
    assert (
        model_from_config({"model_type": model_type, "text_config": text, "vision_config": vision}).vision_tower
        == expected
    )


def calibrated(section: dict[str, object]) -> ModelShape:
    """Make a dense model of four layers whose config has this quantization_config."""
    return model_from_config(
        {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
         "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "max_position_embeddings": 4096,
         "quantization_config": section}
    )  # fmt: skip


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


# 4 layers × 2 × 4 heads × 128 × 1 or 2 bytes; TensorRT-LLM is told, llama.cpp has types of its own.
@pytest.mark.parametrize(
    ("engine", "weights", "asked", "expected"),
    [
        (EngineSettings(version="0.14.0"), "auto", "auto", 4096),
        (EngineSettings(version="0.13.0"), "auto", "auto", 8192),
        (EngineSettings(version="0.24.0"), "auto", "bf16", 8192),
        (EngineSettings(version="0.24.0"), "bf16", "auto", 8192),
        (EngineSettings(family="sglang", name="sglang", version="0.5"), "fp8", "auto", 4096),
        (EngineSettings(family="trtllm", name="trtllm", version=""), "auto", "auto", 8192),
    ],
)
def test_cache_type_of_the_checkpoint_is_followed(
    engine: EngineSettings, weights: str, asked: str, expected: int
) -> None:
    model = calibrated({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"})
    made = plan_memory(model, get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=4096, weight_dtype=weights,
                       kv_cache_dtype=asked)  # fmt: skip
    assert made.kv_bytes_per_token == expected
    assert any("calibrated" in note for note in made.notes) == (expected == 4096)


# vLLM 0.20.2 prints concurrency × length (5,747,892 = 21.93 × 262,144 for a Qwen3.6-35B-A3B log), 0.20.0 blocks.
def test_size_in_the_log_by_patch() -> None:
    sizes = {
        version: logged_kv_tokens(verdict, 65_536, EngineSettings()) / (verdict.max_concurrency * 65_536)
        for version in ("0.20.0", "0.20.2")
        for verdict in [with_pool(QWEN35, 40.0, 65_536, "fp8", version=version)]
    }
    assert sizes["0.20.2"] == pytest.approx(1, abs=1e-4)
    assert sizes["0.20.0"] < 0.5


# Gemma 4 26B and 31B: an image enters in one step of 2,496 tokens. vLLM 0.20 refuses its own default of 2,048 on small
# GPUs (vllm #42687, recipes #441); from 0.22 on it raises it (#43051). An explicit smaller step is refused by both.
@pytest.mark.parametrize(
    ("version", "asked", "starts", "tokens"),
    [("0.20.0", None, False, 2048), ("0.22.0", None, True, 2496), ("0.28.0", 2048, False, 2048),
     ("0.28.0", 4096, True, 4096)],
)  # fmt: skip
def test_images_that_enter_in_one_step(version: str, asked: int | None, starts: bool, tokens: int) -> None:
    made = plan_memory(get_model("google/gemma-4-26B-A4B-it"), get_gpu("L40S"),
                       EngineSettings(version=version, max_num_batched_tokens=asked), Parallelism(),
                       max_model_len=8192, weight_dtype="fp8")  # fmt: skip
    assert made.starts == starts
    assert made.max_num_batched_tokens == tokens
    if not starts:
        assert "max_tokens_per_mm_item (2496)" in made.refusal
        assert made.remedies[0] == "max_num_batched_tokens 2,496"


@pytest.mark.parametrize("model", ["google/gemma-4-E4B-it", "google/gemma-3-27b-it", "Qwen/Qwen3-VL-8B-Instruct"])
def test_other_images_may_be_cut(model: str) -> None:
    made = plan_memory(get_model(model), get_gpu("H100 SXM"), EngineSettings(version="0.20.0"),
                       Parallelism(tensor_parallel_size=2), max_model_len=8192)  # fmt: skip
    assert made.starts


# GLM-5.2: an indexer in layers 0, 1, 2 and every fourth from 6 on, 21 of 78 (ROCm/ATOM pull 1260): 656 B of latent in
# each layer and 132 B of index key in those; 4-bit latents take 432 B.
@pytest.mark.parametrize(("kv", "latent"), [("fp8", 656), ("nvfp4", 432)])
def test_layers_that_share_an_indexer(kv: str, latent: int) -> None:
    model = get_model("zai-org/GLM-5.2")
    own = [index for index, kind in enumerate(model.layer_order) if model.layer_kinds[kind].mixer.indexer_head_dim]
    assert own == [0, 1, 2, *range(6, 78, 4)]
    made = plan_memory(model, get_gpu("B300"), EngineSettings(version="0.26.0"), Parallelism(tensor_parallel_size=8),
                       max_model_len=65_536, weight_dtype="fp8", kv_cache_dtype=kv)  # fmt: skip
    assert made.kv_bytes_per_token == 78 * latent + 21 * 132


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
    config: dict[str, object] = {
        "model_type": "glm_moe_dsa", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 8, "kv_lora_rank": 128, "q_lora_rank": 256, "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16, "v_head_dim": 32, "intermediate_size": 1024, "vocab_size": 1000, "index_head_dim": 64,
        "index_n_heads": 4, "index_topk": 64, "max_position_embeddings": 4096, "first_k_dense_replace": 1,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_shared_experts": 1,
    }  # fmt: skip
    model = model_from_config(config | fields)
    assert sum(model.layer_kinds[kind].mixer.indexer_head_dim > 0 for kind in model.layer_order) == expected


def test_a_list_of_indexers_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        test_indexers_in_a_config({"indexer_types": ["full"]}, 1)
    assert caught.value.field == "indexer_types"


def states_of(model: str, gib: float, tp: int = 1, seqs: int = 48, **engine: object) -> StatePool:
    """Pool of states of a hybrid in SGLang that has `gib` beside its weights."""
    settings = EngineSettings(**({"family": "sglang", "name": "sglang", "version": "0.5.9"} | engine))  # type: ignore[arg-type]
    made = state_pool(get_model(model).layer_counts(), settings, max_num_seqs=seqs,
                      parallelism=Parallelism(tensor_parallel_size=tp), available_bytes=gib * GIB)  # fmt: skip
    assert made is not None
    return made


# SGLang, Qwen3.5-9B on two RTX 4090: 9.49 GiB beside the weights became 186 states (0.10 + 4.38 GiB), 62 requests and
# 327,310 tokens (K 2.50 + V 2.50).
def test_states_beside_the_cache_in_sglang() -> None:
    pool = states_of("Qwen/Qwen3.5-9B", 9.49, tp=2)
    assert pool.slots == pytest.approx(186, abs=1)  # of a pool printed to 0.01 GiB
    assert pool.max_sequences == 62
    assert pool.total_bytes / GIB == pytest.approx(0.10 + 4.38, abs=0.02)
    layout = build_layout(
        get_model("Qwen/Qwen3.5-9B").layer_counts(), tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto",
        fp32=False, edition=Edition("sglang", (0, 5)), block_size=1, num_speculative_tokens=0,
    )  # fmt: skip
    assert (9.49 * GIB - pool.total_bytes) / layout.bytes_per_token == pytest.approx(327_310, rel=0.003)


# Drafting keeps a state per drafted token and one more for each request that may run (Qwen3.5-4B: 24 layers of 32 heads
# of 128 × 128 in fp32; 64 requests × 16 took 48.75 GB of states in a log); slots can be told, and are one for each
# request without prefix caching.
def test_states_for_drafted_tokens() -> None:
    pool = states_of("Qwen/Qwen3.5-4B", 80.0, seqs=64, num_speculative_tokens=15)
    assert pool.drafting_bytes / GIB == pytest.approx(48.75, rel=0.03)
    assert pool.max_sequences == pool.slots // 4
    assert states_of("Qwen/Qwen3.5-4B", 80.0, max_state_slots=10).slots == 10
    # a memory of states as large as the cache's: half of what is there
    half = states_of("Qwen/Qwen3.5-4B", 80.0, mamba_full_memory_ratio=1.0)
    assert half.total_bytes == pytest.approx(40 * GIB, abs=half.slot_bytes)
    single = states_of("Qwen/Qwen3.5-4B", 80.0, enable_prefix_caching=False, max_num_seqs=48)
    assert (single.slots, single.max_sequences) == (48, 48)


# `_calculate_mamba_ratio` and `_mamba_radix_cache_resolution` in SGLang's wheels of 0.5.12, 0.5.13, 0.5.14 and 0.5.23.
@pytest.mark.parametrize(
    ("version", "settings", "slots_each"),
    [
        ("0.5.13", {}, 3),
        ("0.5.14", {}, 5),
        ("0.5.23", {}, 5),
        ("0.5.23", {"async_scheduling": False}, 4),
        ("0.5.23", {"enable_prefix_caching": False}, 1),
    ],
)
def test_states_of_one_request_by_release(version: str, settings: dict[str, object], slots_each: int) -> None:
    pool = states_of("Qwen/Qwen3.5-4B", 80.0, version=version, **settings)
    assert pool.max_sequences == pool.slots // slots_each


# max_total_tokens = min(profiled, user) in SGLang (model_runner.py), and max_tokens caps TensorRT-LLM's pool.
@pytest.mark.parametrize("family", ["sglang", "trtllm"])
def test_tokens_that_the_user_caps(family: str) -> None:
    def tokens(most: int | None) -> int:
        engine = EngineSettings(family=family, name=family, max_total_tokens=most, block_size=1)
        return plan_memory(get_model("Qwen/Qwen3-8B"), get_gpu("H100 SXM"), engine, Parallelism(),
                           max_model_len=8192).kv_tokens  # fmt: skip

    assert tokens(50_000) == 50_000
    assert tokens(10_000_000) == tokens(None)


def test_requests_that_states_let_run() -> None:
    def sglang(utilization: float, **engine: object) -> MemoryPlan:
        settings = EngineSettings(family="sglang", name="sglang", version="0.5.9", gpu_memory_utilization=utilization,
                                  **engine)  # type: ignore[arg-type]  # fmt: skip
        return plan_memory(get_model("Qwen/Qwen3.5-9B"), get_gpu("RTX 4090"), settings,
                           Parallelism(tensor_parallel_size=2), max_model_len=8192)  # fmt: skip

    made = sglang(0.8, max_num_seqs=200)
    assert made.max_num_seqs < 200
    assert made.starts
    assert any(f"enough for {made.max_num_seqs} requests at once" in note for note in made.notes)
    assert made.num_kv_blocks * made.block_bytes == pytest.approx(made.kv_pool_bytes, rel=1e-4)
    assert made.kv_tokens * made.kv_bytes_per_token == pytest.approx(made.kv_pool_bytes, rel=1e-4)
    assert made.budget_bytes == pytest.approx(made.weights_bytes + made.state_bytes + made.kv_pool_bytes)
    assert made.state_bytes == pytest.approx(0.9 * made.kv_pool_bytes, rel=0.01)
    assert sglang(0.8, num_speculative_tokens=3).max_num_seqs <= 48
    small = sglang(0.8, max_state_slots=2)
    assert small.outcome == "refused_state_cache"
    assert "too small to serve any requests" in small.refusal


# 48 requests that draft five tokens would keep 48 × 6 states of 150 MiB: more than an A100 has beside 51 GiB.
def test_fewer_requests_are_offered_where_drafting_keeps_their_states() -> None:
    engine = EngineSettings(family="sglang", name="sglang", version="0.5.17", num_speculative_tokens=5)
    made = plan_memory(get_model(QWEN27), get_gpu("A100 SXM 80GB"), engine, Parallelism(), max_model_len=32_768)
    assert made.outcome == "refused_no_cache_blocks"
    fewer = next(int(x.split()[-1]) for x in made.remedies if x.startswith("max_num_seqs"))
    less = dataclasses.replace(engine, max_num_seqs=fewer)
    again = plan_memory(get_model(QWEN27), get_gpu("A100 SXM 80GB"), less, Parallelism(), max_model_len=32_768)
    assert again.starts


# vLLM derives the longest context from YaRN's factor: Qwen2.5's model card tells to add this to its config.json.
@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 32_768}}, 65_536),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 131_072),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, 65_536),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 32_768),
        ({"rope_scaling": {"type": "yarn", "factor": "4"}}, 32_768),
        ({"rope_scaling": "yarn"}, 32_768),
    ],
)
def test_context_that_rope_scaling_reaches(scaling: dict[str, object], expected: int) -> None:
    config: dict[str, object] = {
        "model_type": "qwen2", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
        "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "max_position_embeddings": 32_768,
    }  # fmt: skip
    assert model_from_config(config | scaling).max_position_embeddings == expected


# Qwen3.8-27B keeps states of 48 × 128 × 128 in fp32 (3 MiB a layer) unless told; a tail of 3 × 10,240 in 16 bits.
def test_states_in_another_type() -> None:
    model = get_model(QWEN27)
    state = next(layer.mixer for layer in model.layer_kinds if layer.mixer.is_state)
    narrow = with_state_dtype(model, "bfloat16")
    assert with_state_dtype(model, "auto") == model
    assert with_state_dtype(model, "float32") == model
    other = next(layer.mixer for layer in narrow.layer_kinds if layer.mixer.is_state)
    assert state_bytes(state, 1) == 48 * 128 * 128 * 4 + 3 * 10_240 * 2
    assert state_bytes(other, 1) == 48 * 128 * 128 * 2 + 3 * 10_240 * 2
    assert with_state_dtype(get_model("Qwen/Qwen3-8B"), "bfloat16") == get_model("Qwen/Qwen3-8B")
    with pytest.raises(InvalidInput) as caught:
        with_state_dtype(model, "int8")
    assert caught.value.field == "state_dtype"
    assert Scenario(model=QWEN27, state_dtype="bfloat16").model_shape == narrow


# V0 profiles a video as long as the context lets it be: 32,768 tokens hold an image and one pair of frames, 128,000
# seven pairs (vLLM pull 12604: "'image': 16384, 'video': 114688"); a log of vLLM 0.7.4: activations of 4.06 GiB at
# 32,768, and at 128,000 they left room for 3,040 tokens on 32 GB.
def test_video_of_the_first_engine() -> None:
    model, engine = get_model("Qwen/Qwen2.5-VL-3B-Instruct"), EngineSettings(version="0.7.4")
    short, long = (
        plan_memory(model, get_gpu("RTX 5090"), engine, Parallelism(), max_model_len=length)
        for length in (32_768, 128_000)
    )
    assert short.activation_bytes / GIB == pytest.approx(4.06, rel=0.06)
    assert short.starts
    assert not long.starts


# What vLLM's logs say of the profile run: "budget of 98304 tokens, 1 video items" at 128,000 in v0.8.1 and v0.8.5,
# 114,688 in v0.23.0; "16384 tokens, 1 image items" at 2,048 in v0.9.0; 2 and 4 images in steps of 32,768 and 65,536.
@pytest.mark.parametrize(
    ("model", "version", "length", "step", "images"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.8.1", 128_000, 2048, 98_304 // 16_384),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.23.0", 128_000, 2048, 114_688 // 16_384),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.9.0", 2048, 2048, 1),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.7.1", 128_000, 128_000, (16_384 + 114_688) // 16_384),
        ("Qwen/Qwen3.6-35B-A3B", "0.19.2", 262_144, 4096, 1),
        ("Qwen/Qwen3.6-35B-A3B", "0.19.2", 32_768, 32_768, 2),
        ("Qwen/Qwen3.6-27B", "0.23.1", 262_144, 65_536, 4),
    ],
)
def test_images_of_the_profile_run(model: str, version: str, length: int, step: int, images: int) -> None:
    engine = EngineSettings(version=version, max_num_batched_tokens=step, max_num_seqs=256)
    demand = Demand(model=get_model(model), gpu=get_gpu("H100 SXM"), engine=engine, max_model_len=length,
                    parallelism=Parallelism())  # fmt: skip
    assert profiled_images(demand.model, limits_of(demand), length) == images


# Qwen2.5-VL-7B: v0.9.0 on an L4 (22.04 GiB) at 2,048 tokens had 1.81 GiB for the cache; v0.23.0 on 79.25 GiB at a share
# of 0.22 and its default of 128,000 lacked 14.28 GiB.
@pytest.mark.parametrize(
    ("gpu", "version", "share", "length", "gib", "scatter_gib"),
    [("L4", "0.9.0", 0.9, 2048, 1.81, 0.3), ("A100 SXM 80GB", "0.23.0", 0.22, 128_000, -14.28, 0.05 * 15)],
)
def test_what_the_encoder_leaves(
    gpu: str, version: str, share: float, length: int, gib: float, scatter_gib: float
) -> None:
    model = get_model("Qwen/Qwen2.5-VL-7B-Instruct")
    engine = EngineSettings(version=version, gpu_memory_utilization=share)
    made = plan_memory(model, get_gpu(gpu), engine, Parallelism(), max_model_len=length)
    assert made.kv_pool_bytes / GIB == pytest.approx(gib, abs=scatter_gib)  # 5 % of seven pairs of frames


# "Model loading took": 15.627 GiB (v0.9.0 and v0.10.1), 7.16 (v0.7.4), 34.43 on each of four GPUs (v0.8.3); vLLM keeps
# rotary tables of four times the 128,000 positions.
@pytest.mark.parametrize(("model", "tp", "gib"), [("7B", 1, 15.627), ("3B", 1, 7.16), ("72B", 4, 34.43)])
def test_weights_of_multimodal_positions(model: str, tp: int, gib: float) -> None:
    shape = get_model(f"Qwen/Qwen2.5-VL-{model}-Instruct")
    assert shape.rope_cache_elements == 4 * 128_000 * 128
    made = plan_memory(shape, get_gpu("H200 SXM"), EngineSettings(version="0.9.0"),
                       Parallelism(tensor_parallel_size=tp), max_model_len=8192)  # fmt: skip
    assert made.weights_bytes / GIB == pytest.approx(gib, rel=0.007)


# Gemma 4 (26B) on 32 GB with steps of 16,384: "profiled with 6 video items"; logs of v0.19.2 and v0.20.2 leave 4.0 and
# 4.3 GiB for activations and buffers. The tower is not divided by tensor parallelism.
def test_videos_of_gemma4() -> None:
    model = get_model("google/gemma-4-26B-A4B-it")
    assert model.vision_tower is not None
    assert encoder_bytes(model.vision_tower, 2) == 32 * 70 * 9 * (2 * (3 * 4304 + 3 * 1152) + 4 * 3 * 16 * 16)
    engine = EngineSettings(version="0.20.2", max_num_batched_tokens=16_384, max_num_seqs=2)
    demand = Demand(model=model, gpu=get_gpu("RTX 5090"), engine=engine, max_model_len=256_000,
                    parallelism=Parallelism(), weight_dtype="nvfp4")  # fmt: skip
    assert profiled_images(model, limits_of(demand), 256_000) == 6
    made = plan_memory(model, demand.gpu, engine, Parallelism(), max_model_len=256_000, weight_dtype="nvfp4")
    assert 4.0 * 0.95 < (made.activation_bytes + made.non_torch_bytes) / GIB < 4.3 * 1.05


def test_a_shorter_video_starts() -> None:
    model, gpu, engine = get_model("Qwen/Qwen2.5-VL-7B-Instruct"), get_gpu("RTX 4090"), EngineSettings(version="0.24.0")
    made = plan_memory(model, gpu, engine, Parallelism(), max_model_len=128_000)
    assert made.outcome == "refused_no_cache_blocks"
    assert any("video as large as 7 images" in note for note in made.notes)
    longest = made.longest_context_tokens
    assert plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest).starts
    assert not plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest + 16).starts
    images = with_media(model, "images")
    assert plan_memory(images, gpu, engine, Parallelism(), max_model_len=longest + 16).starts
    assert "images without video" in plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest + 16).remedies


# Qwen3.5-9B in 16 bits on an L4: tower and largest image take 2.9 GiB, and without them the engine starts.
def test_text_alone_is_offered_where_it_starts() -> None:
    def sized(media: str) -> MemoryPlan:
        engine = EngineSettings(version="0.24.0", max_num_seqs=8, max_num_batched_tokens=2048)
        model = with_media(get_model("Qwen/Qwen3.5-9B"), media)
        return plan_memory(model, get_gpu("L4"), engine, Parallelism(), max_model_len=8192)

    whole, text = sized("auto"), sized("none")
    assert (whole.starts, text.starts) == (False, True)
    assert "text only, without the vision tower" in whole.remedies


def test_what_a_model_is_sent() -> None:
    model = get_model("Qwen/Qwen2.5-VL-7B-Instruct")
    assert with_media(model, "auto") == model
    text = with_media(model, "none")
    assert (text.vision_parameters, text.vision_tower) == (0, None)
    # the tower of 32 blocks of 1,280: 676.6 million parameters with its merger, in 16 bits
    whole, without = (weight_bytes_by_group(shape, "auto") for shape in (model, text))
    assert sum(whole.values()) - sum(without.values()) == 2 * model.vision_parameters
    assert model.vision_parameters == pytest.approx(676.6e6, rel=0.001)
    plain = get_model("Qwen/Qwen3-8B")
    assert all(with_media(plain, media) == plain for media in ("auto", "images", "none"))
    with pytest.raises(InvalidInput) as caught:
        with_media(model, "audio")
    assert caught.value.field == "media"
    assert Scenario(model="Qwen/Qwen2.5-VL-7B-Instruct", max_model_len=8192, media="none").model_shape == text


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


# Its list of 712 modules names norms, routers, parts of the indexer, embedding and head: attention is in 8 bits.
def test_lists_of_small_parts() -> None:
    model = get_model("zai-org/GLM-5-FP8")
    assert model.unquantized_groups == ("embedding", "lm_head")
    assert weight_bits(model, "auto", TensorGroup.ATTENTION) < 8.1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"image_tokens": -5}, "image_tokens"),
        ({"ngram_parameters": -1}, "ngram_parameters"),
        ({"extended_context": 0}, "extended_context"),
        ({"kv_cache_quantization": "int3"}, "kv_cache_quantization"),
        ({"group_bits": (("nonsense", 4.0),)}, "group_bits"),
        ({"group_bits": (("attention", -4.0),)}, "group_bits"),
    ],
)
def test_shapes_that_cannot_be(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        dataclasses.replace(get_model("Qwen/Qwen3-8B"), **changes)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(("name", "value"), [("kv_unified", "no"), ("ngram_on_gpu", "yes"), ("offline", 2)])
def test_switches_take_no_words(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name


# SGLang divides max_running_requests and max_mamba_cache_size by the attention ranks.
def test_states_of_attention_ranks() -> None:
    def ranks(number: int, **engine: object) -> MemoryPlan:
        settings = EngineSettings(family="sglang", name="sglang", version="0.5.9", **engine)  # type: ignore[arg-type]
        split = Parallelism(tensor_parallel_size=1, attention_data_parallel_size=number, expert_parallel=number > 1)
        return plan_memory(get_model("Qwen/Qwen3-Next-80B-A3B-Instruct"), get_gpu("B300"), settings, split,
                           max_model_len=8192, weight_dtype="fp8")  # fmt: skip

    assert ranks(4, num_speculative_tokens=3).max_num_seqs == 12
    assert ranks(1, num_speculative_tokens=3).max_num_seqs == 48
    assert ranks(4, max_state_slots=400, max_num_seqs=1000).max_num_seqs == 400 // 4 // 3


# The tower stands on the first stage of a pipeline; the others profile no image.
def test_encoder_of_a_pipeline() -> None:
    model = get_model("Qwen/Qwen3-VL-235B-A22B-Instruct")
    demand = Demand(model=model, gpu=get_gpu("H200 SXM"), engine=EngineSettings(version="0.24.0"), max_model_len=8192,
                    parallelism=Parallelism(tensor_parallel_size=2, pipeline_parallel_size=4))  # fmt: skip
    first, *middle, _ = all_ranks(demand)  # the last one samples
    assert middle
    assert model.vision_tower is not None
    assert first.activation_bytes >= encoder_bytes(model.vision_tower, 2)
    assert all(rank.activation_bytes < encoder_bytes(model.vision_tower, 2) for rank in middle)


# Llama-3.1-8B with two contexts of 131,072 on two GPUs of 23.6 GiB: the last stage has the head and is the fullest.
def test_the_fullest_gpu_of_llamacpp_decides() -> None:
    engine = EngineSettings(family="llamacpp", name="llama.cpp", version="", block_size=1, max_num_seqs=2)
    demand = Demand(model=get_model("meta-llama/Llama-3.1-8B-Instruct"), gpu=get_gpu("RTX 4090"), engine=engine,
                    parallelism=Parallelism(pipeline_parallel_size=2), max_model_len=131_072)  # fmt: skip
    ranks = all_ranks(demand)
    fullest = max(ranks, key=lambda rank: rank.weights_bytes + rank.pool_bytes)
    verdict = start_verdict(demand)
    assert verdict.rank.weights_bytes == fullest.weights_bytes
    assert verdict.outcome == "started_partly_on_cpu"


def test_slots_that_llama_server_is_told_have_contexts_of_their_own() -> None:
    shared = Scenario(engine="llama-server").engine_settings
    told = Scenario(engine="llama-server", max_num_seqs=8).engine_settings
    assert (shared.kv_unified, shared.max_num_seqs) == (True, 4)
    assert (told.kv_unified, told.max_num_seqs, told.kv_reservation) == (False, 8, "reserve_max")


def test_a_pool_that_is_a_sum_has_no_band() -> None:
    engine = EngineSettings(family="llamacpp", name="llama.cpp", version="", block_size=1, max_num_seqs=1)
    made = plan_memory(get_model("Qwen/Qwen3-8B"), get_gpu("RTX 4090"), engine, Parallelism(), max_model_len=8192)
    assert made.kv_pool_error == 0


def test_more_states_than_fit_are_taken_back() -> None:
    engine = EngineSettings(family="sglang", name="sglang", version="0.5.9", max_state_slots=2)
    made = plan_memory(get_model("Qwen/Qwen3.5-9B"), get_gpu("RTX 4090"), engine,
                       Parallelism(tensor_parallel_size=2), max_model_len=8192)  # fmt: skip
    assert "as many states as memory allows" in made.remedies
