"""Rules of the engines that several modules of memory work out together, against logs and source."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.memory.verdict import OOM_SAMPLER, REFUSED_STATES, STARTED
from planner.units import GIB, MIB
from tests.memory.cases import plan
from tests.memory.test_sglang_states import states_of

QWEN27 = "Qwen/Qwen3.8-27B"


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


# SGLang on a GB10 (gemma-4-E4B-it, utilization 0.85): 79.94 GiB for 997,846 tokens, 0.8 times as many in the pool of
# windows (model_config.py is_hybrid_swa_model). All 42 layers have slots, also the 18 that read another layer's: 7 full
# ones of 2 × 2 × 512 and 35 windowed ones of 2 × 2 × 256 elements in 16 bits.
def test_layers_of_gemma_4_in_sglang() -> None:
    engine = EngineSettings(family="sglang", name="sglang", version="0.5.18", block_size=1, gpu_memory_utilization=0.85)
    made = plan_memory(get_model("google/gemma-4-E4B-it"), get_gpu("GB10"), engine, Parallelism(), max_model_len=32_768)
    assert made.kv_pool_bytes / made.kv_tokens == pytest.approx(7 * 4096 + 0.8 * 35 * 2048, rel=1e-4)
    assert made.kv_pool_bytes / made.kv_tokens == pytest.approx(79.94 * GIB / 997_846, rel=1e-3)


# max_total_tokens = min(profiled, user) in SGLang (model_runner.py), and max_tokens caps TensorRT-LLM's pool.
@pytest.mark.parametrize("family", ["sglang", "trtllm"])
def test_tokens_that_the_user_caps(family: str) -> None:
    def tokens(most: int | None) -> int:
        engine = EngineSettings(family=family, name=family, max_total_tokens=most, block_size=1)
        return plan_memory(get_model("Qwen/Qwen3-8B"), get_gpu("H100 SXM"), engine, Parallelism(),
                           max_model_len=8192).kv_tokens  # fmt: skip

    assert tokens(50_000) == 50_000
    assert tokens(10_000_000) == tokens(None)


# vllm/lora/layers/fused_moe.py: L·E·r·(3H + 3I) elements per layer. vLLM #28761 logs 53.98 GiB of weights with 16 slots
# of rank 32 on Qwen3-30B-A3B and 4 GPUs (48 layers, 128 experts, H 2,048, I 768).
@pytest.mark.parametrize(("ep", "elements"), [(False, 128 * (3 * 2048 + 3 * 768 / 4)), (True, 32 * 3 * (2048 + 768))])
def test_lora_slots_of_experts(ep: bool, elements: float) -> None:
    made = plan("Qwen/Qwen3-30B-A3B", get_gpu("H200 SXM"), tp=4, ep=ep, max_loras=16, max_lora_rank=32)
    attention = 3 * 2048 + (4096 + 2 * 512) / 4 + 4096 / 4 + 2048
    assert dict(made.weights_by_group)["lora"] == pytest.approx(2 * 48 * 16 * 32 * (elements + attention))
    if not ep:
        assert made.weights_bytes / GIB == pytest.approx(53.98, rel=0.005)


# DeepSeek-V4: 57,344 more tokens a step took 27 GiB more in a pair of starts; at 8,192 tokens three logs, all with
# whole experts on each GPU, leave 4.7 GiB to the workspace.
def test_the_workspace_of_a_compressed_cache_grows_with_the_step() -> None:
    def peak(tokens: int) -> float:
        made = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("H200 SXM"), tp=8, ep=True, version="0.25.0", kv="fp8",
                    max_num_batched_tokens=tokens)  # fmt: skip
        return made.activation_bytes / GIB

    assert peak(65_536) - peak(8192) == pytest.approx(27.0, rel=0.15)
    assert peak(65_536) - peak(8192) > 22.6


# A start on two H200 NVL with experts cut in slices (vLLM 0.23, eager, utilization 0.78, 262,144 tokens): 74.08 GiB of
# weights, 32.08 GiB of KV cache for 2,175,276 tokens. The weights have two rotary tables in fp32 (0.5 GiB), compressors
# in 16 bits that every GPU holds and hyper-connections in fp32 (models/deepseek_v4 of vLLM 0.28: common/rope.py,
# compressor.py, nvidia/model.py); without the switch's multicast GPUs share no memory (symm_mem.py).
def test_deepseek_v4_without_whole_experts_on_each_gpu() -> None:
    made = plan("deepseek-ai/DeepSeek-V4-Flash", get_gpu("H200 NVL"), tp=2, length=262_144, version="0.23.0", kv="fp8",
                gpu_memory_utilization=0.78, cuda_graphs=False)  # fmt: skip
    assert made.weights_bytes / GIB == pytest.approx(74.08, rel=0.006)
    assert made.kv_pool_bytes / GIB == pytest.approx(32.08, rel=0.01)
    assert made.kv_tokens == pytest.approx(2_175_276, rel=0.01)


# DeepSeek-V4-Flash-Base keeps its experts in 8 bits: 35.15 GiB on each of eight GPUs (vLLM of August 2026, MI355X).
def test_deepseek_v4_base() -> None:
    made = plan("deepseek-ai/DeepSeek-V4-Flash-Base", get_gpu("MI355X"), tp=8, version="0.26.0", kv="fp8")
    assert made.weights_bytes / GIB == pytest.approx(35.15, rel=0.012)


# vllm/v1/worker/gpu/sample/sampler.py: the second runner's profile run took the largest of the 16-bit logits until
# 0.32, up to 0.25 of a copy of them in fp32. Vocabulary of Qwen2.5: 151,936.
@pytest.mark.parametrize(("version", "bytes_each"), [("0.25.1", 2 + 4), ("0.26.0", 2), ("0.32.0", 2)])
def test_logits_in_the_profile_run_of_the_second_runner(version: str, bytes_each: int) -> None:
    def peak(sequences: int) -> float:
        return plan("Qwen/Qwen2.5-0.5B-Instruct", version=version, max_num_seqs=sequences,
                    max_num_batched_tokens=8192).activation_bytes  # fmt: skip

    assert peak(8192) - peak(4096) == 4096 * 151_936 * bytes_each


# A log of vLLM 0.26.0: Qwen2.5-0.5B, eager, utilization 0.85, 6,908,880 tokens.
def test_the_pool_that_the_second_runner_leaves() -> None:
    made = plan("Qwen/Qwen2.5-0.5B-Instruct", get_gpu("RTX PRO 6000 Blackwell Server"), version="0.26.0",
                gpu_memory_utilization=0.85, cuda_graphs=False)  # fmt: skip
    assert made.kv_tokens == pytest.approx(6_908_880, rel=0.005)


# Its warm-up then samples with all parameters (warmup.py for_sampler_warmup), which 0.33 profiles: 1,024 rows of
# 151,936 logits in some 15 bytes are 2.2 GiB, and a utilization of 0.985 leaves 1.2 of 79.2.
@pytest.mark.parametrize(("version", "outcome"), [("0.32.0", OOM_SAMPLER), ("0.33.0", STARTED)])
def test_the_second_runner_samples_after_the_pool(version: str, outcome: str) -> None:
    made = plan("Qwen/Qwen3-0.6B", version=version, gpu_memory_utilization=0.985, cuda_graphs=False)
    assert made.outcome == outcome


# rejection_sampler.py: verifying a drafted token of every sequence holds 2 × 2 bytes of new logits, 2 + 4 of the next
# token's and 4 + 4 of the drafted one's, instead of 2 + 4. Two starts of Qwen3.8-27B on an RTX PRO 6000 (vLLM 0.27,
# 1,024 sequences) held 939 blocks (fp8) and, with a utilization of 0.95, 556 (bf16); without drafts another held 630
# (bf16).
@pytest.mark.parametrize(
    ("weights", "share", "drafts", "blocks"),
    [("fp8_block", None, 1, 939), ("auto", 0.95, 1, 556), ("auto", None, 0, 630)],
)
def test_states_beside_the_verification_of_drafts(weights: str, share: float | None, drafts: int, blocks: int) -> None:
    gpu = get_gpu("RTX PRO 6000 Blackwell Workstation")
    made = plan(QWEN27, gpu, length=262_144, weights=weights, version="0.27.1", gpu_memory_utilization=share,
                num_speculative_tokens=drafts)  # fmt: skip
    assert made.outcome == REFUSED_STATES
    assert made.num_kv_blocks == pytest.approx(blocks, rel=0.06)
    alone = plan(QWEN27, gpu, length=262_144, weights=weights, version="0.27.1", gpu_memory_utilization=share)
    assert made.activation_bytes - alone.activation_bytes == pytest.approx(drafts * 12 * 1024 * 248_320, rel=0.1)
