"""Caches that llama.cpp and Ollama reserve at start, against their logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvGroup, KvLayout
from planner.memory.reserved import PHYSICAL_BATCH_TOKENS, reserved_bytes, reserved_layout
from planner.memory.sizing import plan_memory
from planner.model.shape import MixerKind
from planner.units import GIB, MIB
from tests.memory.cases import LLAMA, llamacpp, plan


# Llama-3-8B shape in llama.cpp: 32,768 tokens of f16 cache are 4,096 MiB, q8_0 34/64 of it; four slots take four times.
@pytest.mark.parametrize(("slots", "kv", "mib"), [(1, "auto", 4096), (1, "q8_0", 2176), (4, "auto", 16_384)])
def test_llamacpp_reserves_every_slot(slots: int, kv: str, mib: float) -> None:
    made = plan("meta-llama/Meta-Llama-3-8B", family="llamacpp", version="", length=32_768, kv=kv, block_size=1,
                weights="gguf_q4_k_m", max_num_seqs=slots)  # fmt: skip
    assert made.kv_pool_bytes / 2**20 == pytest.approx(mib)


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


LLAMACPP = Edition("llamacpp", (0, 30))


def reserved(model: str, length: int, slots: int, **settings: object) -> float:
    given: dict[str, object] = {
        "tensor_parallel_size": 1, "kv_cache_dtype": "auto", "edition": LLAMACPP, "unified": False,
        "num_speculative_tokens": 0, "batch_tokens": PHYSICAL_BATCH_TOKENS, "draft_mixer": None,
    }  # fmt: skip
    return reserved_bytes(get_model(model).layer_counts(), length, slots, **(given | settings))  # type: ignore[arg-type]


# 32 layers × 2 × 8 heads × 128 × 2 bytes for each token of each slot; one context for all when it is shared.
def test_slots_times_context_by_hand() -> None:
    token = 32 * 2 * 8 * 128 * 2
    assert reserved(LLAMA, 4096, 4) == 4 * 4096 * token
    assert reserved(LLAMA, 4096, 4, unified=True) == 4096 * token
    assert reserved(LLAMA, 4096, 4, kv_cache_dtype="q8_0") == 4 * 4096 * token * 34 / 64
    assert reserved(LLAMA, 4096, 4, tensor_parallel_size=2) == 4 * 4096 * token / 2


@given(st.integers(1, 200_000), st.integers(1, 64), st.sampled_from([1, 16]))
def test_blocks_hold_exactly_the_slots(length: int, slots: int, block: int) -> None:
    plain = KvLayout(groups=(KvGroup(kind=MixerKind.FULL, num_groups=1, block_tokens=block),), block_bytes=1.0,
                     bytes_per_token=131_072.0)  # fmt: skip
    pool = 131_072.0 * length * slots
    made = reserved_layout(plain, pool, length, slots, block)
    assert made.fitting_blocks(pool) == slots * made.blocks_at_peak(length, 512)
    assert made.bytes_per_token == plain.bytes_per_token


# llama-context.cpp rounds 1,000 tokens up to 1,024. 48 of 64 layers hold 48 × 128 × 128 and three columns of 10,240 in
# fp32, for each slot and each drafted token.
@pytest.mark.parametrize(("slots", "drafted", "tp"), [(1, 0, 1), (3, 0, 1), (3, 2, 1), (3, 2, 2)])
def test_states_of_slots_by_hand(slots: int, drafted: int, tp: int) -> None:
    state = 48 * 4 * (48 * 128 * 128 + 3 * 10_240)
    token = 16 * 2 * 4 * 256 * 2
    made = reserved("Qwen/Qwen3.8-27B", 1000, slots, num_speculative_tokens=drafted, tensor_parallel_size=tp)
    assert made == pytest.approx((slots * 1024 * token + slots * (1 + drafted) * state) / tp)


def test_the_projector_is_a_file_of_its_own_in_16_bits() -> None:
    # Ollama's gemma3:4b is 3.3 GB: 3.88e9 weights of the language model in Q4_K_M and the projector in 16 bits
    # (ollama.com/library/gemma3); at 4.9 bits the projector alone would make it 0.6 GB less.
    made = llamacpp("google/gemma-3-4b-it", weights="gguf_q4_k_m")
    groups = dict(made.weights_by_group)
    assert groups["vision"] == 2 * get_model("google/gemma-3-4b-it").vision_parameters
    assert sum(groups.values()) == pytest.approx(3.3e9, rel=0.04)
