"""Published figures and closed forms that the memory arithmetic must meet, one engine feature after another."""

import dataclasses
import math

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import find_model_id, get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Gpu, Parallelism
from planner.memory.defaults import ollama_context_tokens
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout, entry_bytes, kv_bytes_for
from planner.memory.memory_plan import MemoryPlan
from planner.memory.runtime import visible_memory_bytes
from planner.memory.sizing import plan_memory
from planner.model.quantization import weight_bytes_by_group
from planner.model.shape import Mixer, MixerKind
from planner.units import GIB, MIB

LLAMA, LLAMA70 = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"
NEWEST = Edition("vllm", (0, 30))


def gpu_that_shows(gib: float, name: str = "H100 SXM") -> Gpu:
    """Make a GPU of which a program sees `gib`, as a log states it."""
    gpu = get_gpu(name)
    kept = gpu.memory_gib - visible_memory_bytes(gpu) / GIB
    return dataclasses.replace(gpu, memory_gib=gib + kept)


def plan(model: str, gpu: Gpu | None = None, *, length: int = 8192, tp: int = 1, pp: int = 1, dp: int = 1,
         ep: bool = False, dcp: int = 1, weights: str = "auto", kv: str = "auto", draft: str = "",
         occupied_gib: float = 0.0, **engine: object) -> MemoryPlan:  # fmt: skip
    settings = EngineSettings(**({"version": "0.19.0"} | engine))  # type: ignore[arg-type]
    parallelism = Parallelism(
        tensor_parallel_size=tp, pipeline_parallel_size=pp, attention_data_parallel_size=dp, expert_parallel=ep,
        decode_context_parallel_size=dcp,
    )  # fmt: skip
    return plan_memory(
        get_model(model), gpu or gpu_that_shows(79.18), settings, parallelism, max_model_len=length,
        weight_dtype=weights, kv_cache_dtype=kv, draft_model=get_model(draft) if draft else None,
        occupied_bytes=occupied_gib * GIB,
    )  # fmt: skip


# vLLM 0.11.0 on H100 (79.18 GiB), utilization 0.9 (llm-d-planner, empirical-vllm-memory-results.md).
@pytest.mark.parametrize(
    ("model", "tp", "weights", "pool"),
    [
        ("openai/gpt-oss-20b", 1, 13.47, 50.28),
        ("Qwen/Qwen3-32B", 1, 61.03, 4.45),
        ("Qwen/Qwen3-32B", 2, 30.59, 34.49),
        ("Qwen/Qwen3-0.6B", 1, 1.12, 64.45),
        (LLAMA, 1, 14.99, 51.38),
    ],
)
def test_logs_of_the_sorting_sampler(model: str, tp: int, weights: float, pool: float) -> None:
    made = plan(model, tp=tp, version="0.11.0", length=16_000, block_size=128, gpu_memory_utilization=0.9)
    assert made.weights_bytes / GIB == pytest.approx(weights, rel=0.01)
    assert made.kv_pool_bytes / GIB == pytest.approx(pool, rel=0.02)


# The same laboratory: Llama-3.3-70B-FP8 has no room on one GPU (-1.44 GiB) and 32.00 GiB on each of two.
def test_fp8_70b_needs_two_gpus() -> None:
    one, two = (plan(LLAMA70, tp=tp, version="0.11.0", weights="fp8", gpu_memory_utilization=0.9) for tp in (1, 2))
    assert one.outcome == "refused_no_cache_blocks"
    assert one.kv_pool_bytes / GIB == pytest.approx(-1.44, abs=0.3)
    assert two.weights_bytes / GIB == pytest.approx(33.88, rel=0.01)
    assert two.kv_pool_bytes / GIB == pytest.approx(32.00, rel=0.01)


# vllm #10517: Llama-3.1-8B on an RTX 3090 (23.58 GiB) at 0.9: 3.81 GiB, 1.56 sequences of 20,000 tokens.
def test_first_engine_on_a_small_card() -> None:
    made = plan(LLAMA, gpu_that_shows(23.58, "RTX 3090"), version="0.6.4 (V0)", length=20_000)
    assert made.weights_bytes / GIB == pytest.approx(14.9888, rel=1e-4)
    assert made.kv_pool_bytes / GIB == pytest.approx(3.81, rel=0.08)
    assert made.max_concurrency == pytest.approx(1.56, rel=0.08)


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
    per_token = kv_bytes_for(get_model(model), 1, tensor_parallel_size=tp)
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
    assert kv_bytes_for(get_model(model), tokens, kv_cache_dtype=dtype) / GIB == pytest.approx(gib, rel=1e-6)


def test_fp8_cache_of_a_state_hybrid_grows_by_its_full_layers() -> None:
    model = get_model("Qwen/Qwen3.8-27B")
    grown = kv_bytes_for(model, 302_921, kv_cache_dtype="fp8") - kv_bytes_for(model, 0, kv_cache_dtype="fp8")
    assert grown == 302_921 * 32 * 1024
    assert grown / GIB == pytest.approx(9.24, rel=0.001)


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
    assert kv_bytes_for(get_model(LLAMA), 16, kv_cache_dtype="nvfp4") == 16 * 131_072 * 4.5 / 16


# Llama-3.1-70B: 70,553,706,496 parameters × 2 B = 131.4165 GiB (llm-d-benchmark PR #381); all experts of Mixtral are
# resident, about 94 GB (llmfit #497); vramscout: Qwen3.8-27B in three schemes, draft layer and tower included.
def test_published_weights() -> None:
    model = get_model("meta-llama/Llama-3.1-70B-Instruct")
    assert model.num_parameters == 70_553_706_496
    assert sum(weight_bytes_by_group(model).values()) / GIB == pytest.approx(131.4165, abs=1e-4)
    mixtral = sum(weight_bytes_by_group(get_model("mistralai/Mixtral-8x7B-Instruct-v0.1")).values())
    assert mixtral / 1e9 == pytest.approx(94, rel=0.01)


@pytest.mark.parametrize(("dtype", "gib", "draft_bytes"), [("auto", 51.700, 2), ("fp8_block", 28.560, 1)])
def test_checkpoint_sizes_of_one_model(dtype: str, gib: float, draft_bytes: int) -> None:
    model = get_model("Qwen/Qwen3.8-27B")
    size = sum(weight_bytes_by_group(model, dtype).values()) + draft_bytes * model.mtp_parameters
    assert size / GIB == pytest.approx(gib, rel=0.04)


# NVFP4 of one model by publisher. NVIDIA (4-bit head, 8-bit attention): logs of vLLM on a DGX Spark (20.57 GiB with the
# draft layers) and on an RTX 5090 (19.78 GiB without). Inferact (16-bit attention): 12.02 GiB on each of two GPUs,
# draft layers included (vllm-project/recipes pull 810).
@pytest.mark.parametrize(
    ("publisher", "drafts", "gib"),
    [("nvidia/Qwen3.6-27B-NVFP4", 1, 20.57), ("nvidia/Qwen3.8-27B-NVFP4", 0, 19.78),
     ("Inferact/Qwen3.8-27B-NVFP4", 1, 24.04)],
)  # fmt: skip
def test_checkpoint_sizes_by_publisher(publisher: str, drafts: int, gib: float) -> None:
    model = get_model(publisher if find_model_id(publisher) else "Qwen/Qwen3.8-27B")
    size = sum(weight_bytes_by_group(model, "nvfp4").values()) + drafts * 2 * model.mtp_parameters
    assert size / GIB == pytest.approx(gib, rel=0.02)


# Gemma-3-27B: 62 layers = 10 full and 52 sliding: groups of 10, 1 + 6 of them, 8 padding layers.
def test_groups_of_gemma() -> None:
    made = plan("google/gemma-3-27b-it")
    assert any("7 groups" in note for note in made.notes)
    full, sliding = 8192 // 16, math.ceil((1024 - 1 + 8192) / 16)
    assert made.max_concurrency == pytest.approx((made.num_kv_blocks + 1) / (full + 6 * min(full + 1, sliding + 1)))


# An 8B, rank 16, all linears: 41.9 M parameters are 84 MB a slot; per layer Σ (in + out) = 81,920.
def test_lora_slot_of_the_worked_example() -> None:
    plain, slots = plan(LLAMA), plan(LLAMA, max_loras=3, max_lora_rank=16)
    assert slots.weights_bytes - plain.weights_bytes == pytest.approx(3 * 2 * 16 * 32 * 81_920)
    assert dict(slots.weights_by_group)["lora"] == 3 * 83_886_080


# vllm/lora/layers/fused_moe.py: L·E·r·(3H + 3I) elements per layer. vLLM #28761 logs 53.98 GiB of weights with 16 slots
# of rank 32 on Qwen3-30B-A3B and 4 GPUs (48 layers, 128 experts, H 2,048, I 768).
@pytest.mark.parametrize(("ep", "elements"), [(False, 128 * (3 * 2048 + 3 * 768 / 4)), (True, 32 * 3 * (2048 + 768))])
def test_lora_slots_of_experts(ep: bool, elements: float) -> None:
    made = plan("Qwen/Qwen3-30B-A3B", get_gpu("H200 SXM"), tp=4, ep=ep, max_loras=16, max_lora_rank=32)
    attention = 3 * 2048 + (4096 + 2 * 512) / 4 + 4096 / 4 + 2048
    assert dict(made.weights_by_group)["lora"] == pytest.approx(2 * 48 * 16 * 32 * (elements + attention))
    if not ep:
        assert made.weights_bytes / GIB == pytest.approx(53.98, rel=0.005)


def test_lora_halves_are_divided_on_the_divided_side_only() -> None:
    made = plan(LLAMA, tp=2, max_loras=1, max_lora_rank=16)
    columns = (4096 + 4096 / 2) + 2 * (4096 + 1024 / 2) + 2 * (4096 + 14_336 / 2)
    rows = (4096 / 2 + 4096) + (14_336 / 2 + 4096)
    assert dict(made.weights_by_group)["lora"] == 2 * 16 * 32 * (columns + rows)


# vLLM 0.19.0 log: Llama-3.1-8B on four GPUs holds 3.77 GiB and 32,768 B per token on each.
def test_draft_model_brings_weights_and_cache() -> None:
    plain, drafted = plan(LLAMA70, tp=4), plan(LLAMA70, tp=4, draft=LLAMA, num_speculative_tokens=5)
    assert (drafted.weights_bytes - plain.weights_bytes) / GIB == pytest.approx(3.77, rel=0.01)
    assert drafted.kv_bytes_per_token - plain.kv_bytes_per_token == 32_768
    assert drafted.kv_pool_bytes == pytest.approx(plain.kv_pool_bytes - dict(drafted.weights_by_group)["draft"])


def test_lookahead_takes_slots() -> None:
    engine = EngineSettings(version="0.19.0", num_speculative_tokens=16)
    made = plan_memory(get_model(LLAMA), get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=8192,
                       mean_sequence_tokens=1024)  # fmt: skip
    assert made.typical_concurrency_paged == made.num_kv_blocks / (64 + 1)


# 50 GiB ÷ 131,072 B are 409,600 tokens; four ranks share them, each with a quarter of every token.
@pytest.mark.parametrize("tp", [1, 4])
def test_cpu_offload_keeps_more_tokens(tp: int) -> None:
    made = plan(LLAMA, tp=tp, kv_offload_gib=50)
    assert made.offloaded_kv_tokens == 409_600
    assert any("409,600 more tokens" in note for note in made.notes)
    assert made.kv_tokens == plan(LLAMA, tp=tp).kv_tokens


# vLLM 0.19.0, CodeLlama-34b on two H100: "Free memory on device cuda:1 (60.87/79.19 GiB) ... (0.95, 75.23 GiB)".
def test_memory_of_others_is_refused() -> None:
    gpu = gpu_that_shows(79.19)
    made = plan("codellama/CodeLlama-34b-hf", gpu, tp=2, gpu_memory_utilization=0.95, occupied_gib=79.19 - 60.87)
    assert made.outcome == "refused_free_memory"
    assert "(60.87/79.19 GiB)" in made.refusal
    assert "(0.95, 75.23 GiB)" in made.refusal
    assert made.remedies[:2] == ("freeing the 18.3 GiB that other processes hold", "gpu_memory_utilization 0.76")


def test_before_v09_memory_of_others_counted_as_its_own() -> None:
    alone, shared = (plan(LLAMA, version="0.8.5", occupied_gib=size) for size in (0, 8))
    assert alone.kv_pool_bytes - shared.kv_pool_bytes == pytest.approx(8 * GIB)


# vLLM 0.14 compared the cache of all stages (92 layers × 4,096 B per token) with the memory of one stage:
# 28.57 GiB of 71.16 GiB for 202,752 tokens gave 81,392 (the log of a false refusal).
def test_pipeline_check_of_v014() -> None:
    wrong, right = (plan("zai-org/GLM-4.6", pp=8, weights="fp8", length=202_752, version=v) for v in ("0.14.1", "0.15"))
    assert wrong.outcome == "refused_max_len_exceeds_kv"
    assert right.starts
    assert wrong.longest_context_tokens == pytest.approx(wrong.kv_pool_bytes / (92 * 4096), abs=256)
    assert pytest.approx(81_392, abs=64) == 28.57 * GIB / (92 * 4096)


# DeepSeek-V4-Flash on eight B200: 20.43 sequences of a million tokens with TP 8, 156.9 with DP 8 (vllm recipe thread).
def test_data_parallel_attention_multiplies_the_pool() -> None:
    settings = {"length": 1_000_000, "version": "0.25.0", "max_num_seqs": 256, "max_num_batched_tokens": 8192,
                "gpu_memory_utilization": 0.95, "block_size": 256, "kv": "fp8", "ep": True}  # fmt: skip
    one = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("B200"), tp=8, **settings)  # type: ignore[arg-type]
    eight = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("B200"), dp=8, **settings)  # type: ignore[arg-type]
    assert one.max_concurrency == pytest.approx(20.43, rel=0.05)
    assert 8 * eight.max_concurrency == pytest.approx(156.9, rel=0.06)


# DeepSeek-V4: 57,344 more tokens a step took 27 GiB more in a pair of starts; at 8,192 tokens three logs
# leave 5.5 GiB to the workspace.
def test_the_workspace_of_a_compressed_cache_grows_with_the_step() -> None:
    def peak(tokens: int) -> float:
        made = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("H200 SXM"), tp=8, version="0.25.0", kv="fp8",
                    max_num_batched_tokens=tokens)  # fmt: skip
        return made.activation_bytes / GIB

    assert peak(65_536) - peak(8192) == pytest.approx(27.0, rel=0.15)
    assert peak(65_536) - peak(8192) > 22.6


def llamacpp(model: str, gpu: str = "RTX 3090", **settings: object) -> MemoryPlan:
    base = {"family": "llamacpp", "name": "llama.cpp", "version": "", "block_size": 1, "max_num_seqs": 1}
    return plan(model, get_gpu(gpu), **(base | settings))  # type: ignore[arg-type]


# Ollama on an RTX 5080: Gemma 3 4B, 131,072 tokens: 2,560 MiB of full layers + 174 MiB of windows (ollama ps thread).
def test_llamacpp_keeps_windows_once() -> None:
    made = llamacpp("google/gemma-3-4b-it", weights="gguf_q4_k_m", length=131_072)
    assert made.kv_pool_bytes / MIB == 2560 + 174
    assert made.max_concurrency == 1
    assert made.kv_tokens == 131_072


# llama.cpp: Falcon-H1-1.5B at 32,768 tokens: 768 MiB + 73 MiB of states; Qwen2.5-1.5B: 896 MiB.
# Qwen3.6-27B at 262,144 tokens in four slots: 16,384 MiB + 598.5 MiB (lmstudio #1862).
@pytest.mark.parametrize(
    ("model", "slots", "length", "mib"),
    [
        ("tiiuae/Falcon-H1-1.5B-Instruct", 1, 32_768, 768 + 73),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1, 32_768, 896),
        ("Qwen/Qwen3.6-27B", 4, 65_536, 16_384 + 598.5),
    ],
)
def test_llamacpp_states(model: str, slots: int, length: int, mib: float) -> None:
    made = llamacpp(model, "H100 SXM", max_num_seqs=slots, length=length)
    assert made.kv_pool_bytes / MIB == pytest.approx(mib, rel=1e-4)
    assert made.num_kv_blocks == slots * length


# 32,768 tokens of the 8B: q8_0 34/64 and q4_0 18/64 of 4,096 MiB; parallel 4 × 8,192 is the same pool.
@pytest.mark.parametrize(("kv", "slots", "mib"), [("q8_0", 1, 2176), ("q4_0", 1, 1152), ("q4_0", 4, 1152)])
def test_llamacpp_quantised_cache(kv: str, slots: int, mib: float) -> None:
    made = llamacpp(LLAMA, kv=kv, max_num_seqs=slots, length=32_768 // slots, weights="gguf_q4_k_m")
    assert made.kv_pool_bytes / MIB == mib


# Ollama 0.14: GLM-4.7-Flash without a latent cache at 8,192 tokens: 800 MiB + 6.6 GiB.
# DeepSeek-R1 without it: 128 × (192 + 128) = 40,960 elements per layer and token.
@pytest.mark.parametrize(
    ("model", "engine", "length", "expected_bytes", "tolerance"),
    [
        ("zai-org/GLM-4.7-Flash", {"name": "ollama", "latent_cache": False}, 8192, 800 * MIB + 6.6 * GIB, 0.01),
        ("deepseek-ai/DeepSeek-R1", {"latent_cache": False}, 4096, 4096 * 61 * 40_960 * 2, 1e-9),
        ("deepseek-ai/DeepSeek-R1", {}, 4096, 4096 * 61 * 576 * 2, 1e-9),
    ],
)
def test_latent_attention_without_a_latent_cache(
    model: str, engine: dict[str, object], length: int, expected_bytes: float, tolerance: float
) -> None:
    made = llamacpp(model, "B300", length=length, **engine)
    assert made.kv_pool_bytes == pytest.approx(expected_bytes, rel=tolerance)


# llama.cpp, Llama-3-8B Q4_K_M: 4,403 MiB on the GPU; the input embedding of 282 MiB stays on the CPU.
def test_llamacpp_leaves_the_embedding_on_the_cpu() -> None:
    made = llamacpp("meta-llama/Meta-Llama-3-8B", weights="gguf_q4_k_m", length=2048)
    assert made.weights_bytes / MIB == pytest.approx(4403, rel=0.01)


def test_partial_offload_says_how_many_layers_fit() -> None:
    made = llamacpp(LLAMA70, weights="gguf_q4_k_m", length=8192)
    assert made.outcome == "started_partly_on_cpu"
    share = (made.total_bytes - made.activation_bytes - made.non_torch_bytes) / (
        made.weights_bytes + made.kv_pool_bytes
    )
    assert f"{math.floor(share * 81)} of 80 layers" in made.refusal


@pytest.mark.parametrize(("gpu", "expected"), [("T4", 4096), ("RTX 4090", 32_768), ("L40S", 32_768),
                                               ("A100 SXM 80GB", 131_072)])  # fmt: skip
def test_ollama_context_by_memory(gpu: str, expected: int) -> None:
    assert ollama_context_tokens(get_gpu(gpu), 131_072) == expected


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_loras": -1}, "max_loras"),
        ({"max_lora_rank": 0}, "max_lora_rank"),
        ({"kv_offload_gib": -1}, "kv_offload_gib"),
    ],
)  # fmt: skip
def test_bad_settings_name_their_field(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        EngineSettings(**settings)  # type: ignore[arg-type]
    assert caught.value.field == field


# DeepSeek-V4-Flash in vLLM 0.22: 37.93 GiB hold 2,497,693 tokens, 9.76 sequences of 256,000 (groups and page sizes as
# kv_cache_utils.py makes them); from v0.23 on a block is packed into 1,039,680 bytes.
def v4_layout(version: tuple[int, int], family: str = "vllm", speculative: int = 0) -> KvLayout:
    return build_layout(
        get_model("deepseek-ai/DeepSeek-V4-Flash").layer_counts(), tensor_parallel_size=8, context_parallel=1,
        kv_cache_dtype="fp8", fp32=False, edition=Edition(family, version), block_size=16,
        num_speculative_tokens=speculative,
    )  # fmt: skip


def test_deepseek_v4_pool_of_a_log() -> None:
    layout = v4_layout((0, 22))
    blocks = 38_724
    assert layout.block_bytes * blocks / GIB == pytest.approx(37.93, abs=0.005)
    counted = layout.counted_blocks(256_000, 8192)
    assert counted == 3969
    assert int(blocks / counted * 256_000) == 2_497_693


def test_deepseek_v4_blocks_are_packed_later() -> None:
    assert v4_layout((0, 23)).block_bytes == 1_039_680
    assert v4_layout((0, 22)).block_bytes == 22 * (37_440 + 8640 + 1728)


# The check of vLLM 0.22: 30,000 tokens need 6.66 GiB with 16,384 tokens in flight; 131,072 need 1.34 GiB with 2,048.
@pytest.mark.parametrize(("length", "in_flight", "gib"), [(30_000, 16_384, 6.66), (131_072, 2048, 1.34)])
def test_deepseek_v4_needs(length: int, in_flight: int, gib: float) -> None:
    layout = v4_layout((0, 22))
    assert layout.blocks_at_peak(length, in_flight) * layout.block_bytes / GIB == pytest.approx(gib, abs=0.005)


# SGLang pool_configurator.py prints bytes_per_full_token: V4-Pro with its 62 entries (one of them the draft layer's
# window, allocated whether it drafts or not) 23,749.84, V4-Flash 15,955.85.
@pytest.mark.parametrize(("size", "expected"), [("Pro", 23_749.84), ("Flash", 15_955.85)])
def test_deepseek_v4_in_sglang(size: str, expected: float) -> None:
    layout = build_layout(
        get_model(f"deepseek-ai/DeepSeek-V4-{size}").layer_counts(), tensor_parallel_size=8, context_parallel=1,
        kv_cache_dtype="auto", fp32=False, edition=Edition("sglang", (0, 5)), block_size=1, num_speculative_tokens=0,
    )  # fmt: skip
    assert layout.bytes_per_token == pytest.approx(expected, abs=0.01)
    assert layout.main.block_tokens == 256


# vLLM #47728 (v0.26): windows keep the tokens of both batches that async scheduling overlaps; gemma-3-27b has 6 groups
# of windows of 1,024 and one full group.
def test_two_batches_in_flight() -> None:
    earlier, later = (plan("google/gemma-3-27b-it", version=v, length=131_072) for v in ("0.25.0", "0.26.0"))
    held = {v: 8192 + 6 * (math.ceil((1023 + tokens) / 16) + 1) for v, tokens in (("a", 8192), ("b", 16_384))}
    assert (earlier.num_kv_blocks + 1) / earlier.max_concurrency == pytest.approx(held["a"])
    assert (later.num_kv_blocks + 1) / later.max_concurrency == pytest.approx(held["b"])


# vLLM #49878: Gemma-4-31B at 262,144 tokens in steps of 32,768 needs 45.79 GiB, from v0.26 on 70.79 GiB.
@pytest.mark.parametrize(
    ("version", "settings", "gib"),
    [("0.25.1", {}, 45.79), ("0.26.0", {}, 70.79), ("0.26.0", {"async_scheduling": False}, 45.79)],
)
def test_cache_that_one_full_sequence_of_gemma_4_needs(version: str, settings: dict[str, object], gib: float) -> None:
    made = plan("google/gemma-4-31B-it", get_gpu("H200 SXM"), version=version, length=262_144,
                max_num_batched_tokens=32_768, **settings)  # fmt: skip
    needed = made.kv_pool_bytes / made.num_kv_blocks * (made.num_kv_blocks / made.max_concurrency) / GIB
    assert needed == pytest.approx(gib, rel=1e-3)


def test_smaller_steps_and_one_at_a_time_are_offered_where_windows_are_too_large() -> None:
    made = plan("google/gemma-4-31B-it", get_gpu("H200 SXM"), version="0.26.0", length=262_144,
                max_num_batched_tokens=32_768, gpu_memory_utilization=0.9)  # fmt: skip
    assert made.outcome == "refused_max_len_exceeds_kv"
    assert "max_num_batched_tokens 16,384" in made.remedies
    assert "async scheduling off" in made.remedies


# vLLM #51726 (v0.28): 16,384 tokens on devices of 160 GiB and more; #12369: at first by name, H100 and H200.
@pytest.mark.parametrize(
    ("gpu", "version", "expected"),
    [("B200", "0.27.1", 8192), ("B200", "0.28.0", 16_384), ("H200 SXM", "0.28.0", 8192), ("MI300X", "0.8.5", 2048),
     ("H100 SXM", "0.8.5", 8192), ("A100 SXM 80GB", "0.28.0", 2048), ("L40S", "0.19.0", 2048)],
)  # fmt: skip
def test_batch_by_device_and_version(gpu: str, version: str, expected: int) -> None:
    assert plan(LLAMA, get_gpu(gpu), version=version).max_num_batched_tokens == expected


# vLLM EngineArgs.get_batch_defaults: the LLM class takes 16,384 tokens on large devices and 8,192 on others.
@pytest.mark.parametrize(("gpu", "expected"), [("H100 SXM", 16_384), ("A100 SXM 80GB", 8192), ("L40S", 8192)])
def test_batch_without_a_server(gpu: str, expected: int) -> None:
    assert plan(LLAMA, get_gpu(gpu), version="0.19.0", offline=True).max_num_batched_tokens == expected


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


# Every family: whole blocks of the plan fill the pool but for less than one of them.
@pytest.mark.parametrize(
    "model",
    ["openai/gpt-oss-20b", "google/gemma-3-27b-it", "Qwen/Qwen3.5-27B", "ai21labs/AI21-Jamba-Mini-1.6",
     "deepseek-ai/DeepSeek-V2-Lite", "ibm-granite/granite-4.0-h-small", "LiquidAI/LFM2-8B-A1B",
     "meta-llama/Llama-3.2-11B-Vision-Instruct", "google/gemma-3n-E4B-it", "state-spaces/mamba-2.8b-hf",
     "nvidia/NVIDIA-Nemotron-Nano-9B-v2"],
)  # fmt: skip
def test_whole_blocks_fill_the_pool(model: str) -> None:
    for version in ("0.8.5", "0.19.0", "0.28.0"):
        made = plan(model, get_gpu("H200 SXM"), version=version, max_num_seqs=64)
        blocks = made.logged_kv_blocks
        assert blocks > 0
        assert blocks * made.block_bytes <= made.kv_pool_bytes < (blocks + 1) * made.block_bytes
        formula = next(item for item in made.formulas if item.name == "kv_blocks")
        assert formula.value == blocks


# Granite-4.0-H-Small: 4 attention layers × 8 heads × (128 + 128) × 2 B a token; a state of 128 heads × 64 × 128.
def test_hybrid_of_granite() -> None:
    made = plan("ibm-granite/granite-4.0-h-small", get_gpu("H200 SXM"), version="0.19.0", max_num_seqs=64)
    assert made.kv_bytes_per_token == 4 * 8 * 256 * 2
    state = next(x.mixer for x in get_model("ibm-granite/granite-4.0-h-small").layer_kinds if x.mixer.state_elements)
    assert state.state_elements == 128 * 64 * 128
    assert state.conv_elements == (128 * 64 + 2 * 128) * 3
