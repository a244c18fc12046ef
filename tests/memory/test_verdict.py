"""Whether the engine starts, in its own words; the longest context; the size that the log prints."""

import dataclasses
import math
import re

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand
from planner.memory.memory_plan import MemoryPlan
from planner.memory.ranks import all_ranks
from planner.memory.sizing import plan_memory
from planner.memory.verdict import Verdict, logged_kv_tokens, start_verdict
from planner.units import GIB
from tests.memory.cases import LLAMA, LLAMA70, QWEN7, QWEN27, QWEN35, gpu_that_shows, llamacpp, plan, with_pool


# gemma-4-31B, vLLM 0.24 on H200: 64.68 GiB are 626,949 tokens at 262,144 (configiq #112).
def test_windows_share_the_pool_of_gemma_4() -> None:
    made = plan("google/gemma-4-31B-it", version="0.24.0", length=262_144, gpu=gpu_that_shows(139.81, "H200 SXM"))
    assert made.kv_tokens / made.kv_pool_bytes == pytest.approx(626_949 / (64.68 * GIB), rel=0.001)


# The same server before v0.21 printed floor(blocks ÷ groups) × 16: about 55,000 tokens for 50 GiB (vllm #43308).
def test_log_line_changed_with_v021() -> None:
    before = plan("google/gemma-4-31B-it", version="0.20.0", length=262_144, gpu=gpu_that_shows(139.81, "H200 SXM"))
    assert before.kv_tokens / before.kv_pool_bytes == pytest.approx(54_613 / (50 * GIB), rel=0.01)


def test_sglang_starts_and_rejects_what_is_too_long() -> None:
    made = plan(LLAMA, family="sglang", version="0.5.5", length=131_072, gpu=get_gpu("L4"), block_size=1)
    assert made.starts
    assert made.max_model_len < 131_072
    assert made.max_model_len == pytest.approx(made.num_kv_blocks, abs=1)
    assert any("rejects longer requests" in note for note in made.notes)


def test_llamacpp_spills_to_the_cpu() -> None:
    made = plan("meta-llama/Llama-3.3-70B-Instruct", family="llamacpp", version="", weights="gguf_q4_k_m", block_size=1,
                gpu=get_gpu("RTX 4090"))  # fmt: skip
    assert made.outcome == "started_partly_on_cpu"


# vllm #10517, RTX 3090 (23.58 GiB): 20,000 tokens start, 29,000 do not.
@pytest.mark.parametrize(("length", "outcome"), [(20_000, "started"), (29_000, "refused_max_len_exceeds_kv")])
def test_first_engine_needs_the_whole_prompt_in_one_step(length: int, outcome: str) -> None:
    made = plan(LLAMA, version="0.6.4 (V0)", length=length, gpu=gpu_that_shows(23.58, "RTX 3090"))
    assert made.outcome == outcome


# llm-d-benchmark #621: Llama-3.3-70B FP8 (67.72 GiB) does not start on one H100 at 0.9.
def test_no_room_for_cache_is_refused_with_remedies() -> None:
    made = plan("meta-llama/Llama-3.3-70B-Instruct", version="0.11.0", weights="fp8", gpu_memory_utilization=0.9)
    assert made.outcome == "refused_no_cache_blocks"
    assert "No available memory for the cache blocks" in made.refusal
    assert "tensor_parallel_size 2" in made.remedies
    assert made.num_kv_blocks == 0


# vLLM 0.28: Qwen3.8-27B on one H100 refuses its own default of 1,024 sequences.
def test_state_blocks_limit_sequences() -> None:
    made = plan("Qwen/Qwen3.8-27B", version="0.28.0", length=132_000)
    assert made.outcome == "refused_mamba_blocks"
    assert "exceeds available Mamba cache blocks" in made.refusal
    assert made.remedies[0].startswith("max_num_seqs ")
    fixed = plan("Qwen/Qwen3.8-27B", version="0.28.0", length=132_000, max_num_seqs=int(made.remedies[0].split()[1]))
    assert fixed.starts


@pytest.mark.parametrize("family", ["vllm", "sglang", "generic"])
def test_what_stands_before_the_cache_adds_up_to_the_budget(family: str) -> None:
    made = plan_memory(
        get_model(QWEN7), get_gpu("RTX 4090"), EngineSettings(family=family, gpu_memory_utilization=0.5),
        Parallelism(), max_model_len=8192, occupied_bytes=GIB,
    )  # fmt: skip
    assert made.outcome == "refused_no_cache_blocks"
    remain, budget, *parts = (float(x) for x in re.findall(r"(-?[\d.]+) GiB", made.refusal))
    assert budget - sum(parts) == pytest.approx(remain, abs=0.03)
    assert remain == pytest.approx(made.kv_pool_bytes / GIB, abs=0.006)


def test_longest_context_is_the_last_that_starts() -> None:
    made = plan(LLAMA, gpu=gpu_that_shows(23.6, "RTX 4090"), length=131_072)
    longest = made.longest_context_tokens
    assert made.outcome == "refused_max_len_exceeds_kv"
    assert plan(LLAMA, gpu=gpu_that_shows(23.6, "RTX 4090"), length=longest).starts
    assert not plan(LLAMA, gpu=gpu_that_shows(23.6, "RTX 4090"), length=longest + 16).starts


# vLLM 0.6 (V0) profiles whole prompts of up to 32,768 tokens and chunks of 512 beyond: 30,000 tokens leave less cache
# than 27,000 or 40,000 do.
def test_a_refusal_names_what_the_cache_holds_now() -> None:
    def old(length: int) -> MemoryPlan:
        return plan(LLAMA, version="0.6.3", gpu=gpu_that_shows(23.6, "RTX 4090"), length=length)

    whole, chunked = old(30_000), old(131_072)
    for made in (whole, chunked):
        held = int(made.kv_pool_bytes // made.block_bytes) * made.block_size
        assert made.held_length_tokens == held < made.max_model_len
        assert made.refusal.startswith(
            f"The model's max seq len ({made.max_model_len}) is larger than the maximum number of tokens that can be "
            f"stored in KV cache ({held}). Try increasing"
        )
    assert whole.longest_context_tokens == chunked.longest_context_tokens == chunked.held_length_tokens > 32_768
    assert old(chunked.longest_context_tokens).starts
    shorter = int(whole.remedies[0].removeprefix("max_model_len ").replace(",", ""))
    assert whole.held_length_tokens < shorter < 30_000
    assert old(shorter).starts
    new = plan(LLAMA, gpu=gpu_that_shows(23.6, "RTX 4090"), length=131_072)
    assert new.held_length_tokens == new.longest_context_tokens
    assert f"the estimated maximum model length is {new.held_length_tokens}. Try increasing" in new.refusal


def test_graphs_that_find_no_room_stop_vllm_at_their_capture() -> None:
    # All of an RTX 4090 is budgeted: at the capture the activations of the profile run are free again, 0.47 GiB for
    # Llama 8B before v0.21, and the graphs need more.
    tight = plan(LLAMA, gpu=get_gpu("RTX 4090"), gpu_memory_utilization=1.0, max_num_batched_tokens=2048)
    held = tight.weights_bytes + tight.kv_pool_bytes + tight.non_torch_bytes
    assert tight.total_bytes - held < tight.cuda_graph_bytes
    assert tight.outcome == "oom_at_graph_capture"
    assert not tight.starts
    assert "while capturing CUDA graphs" in tight.refusal
    advised = float(tight.remedies[0].removeprefix("gpu_memory_utilization "))
    assert plan(LLAMA, gpu=get_gpu("RTX 4090"), gpu_memory_utilization=advised, max_num_batched_tokens=2048).starts
    assert plan(LLAMA, gpu=get_gpu("RTX 4090"), gpu_memory_utilization=1.0, cuda_graphs=False).starts


# vLLM 0.19.0, CodeLlama-34b on two H100: "Free memory on device cuda:1 (60.87/79.19 GiB) ... (0.95, 75.23 GiB)".
def test_memory_of_others_is_refused() -> None:
    gpu = gpu_that_shows(79.19)
    made = plan("codellama/CodeLlama-34b-hf", gpu, tp=2, gpu_memory_utilization=0.95, occupied_gib=79.19 - 60.87)
    assert made.outcome == "refused_free_memory"
    assert "(60.87/79.19 GiB)" in made.refusal
    assert "(0.95, 75.23 GiB)" in made.refusal
    assert made.remedies[:2] == ("freeing the 18.3 GiB that other processes hold", "gpu_memory_utilization 0.76")


# vLLM 0.14 compared the cache of all stages (92 layers × 4,096 B per token) with the memory of one stage:
# 28.57 GiB of 71.16 GiB for 202,752 tokens gave 81,392 (the log of a false refusal).
def test_pipeline_check_of_v014() -> None:
    wrong, right = (plan("zai-org/GLM-4.6", pp=8, weights="fp8", length=202_752, version=v) for v in ("0.14.1", "0.15"))
    assert wrong.outcome == "refused_max_len_exceeds_kv"
    assert right.starts
    assert wrong.longest_context_tokens == pytest.approx(wrong.kv_pool_bytes / (92 * 4096), abs=256)
    assert pytest.approx(81_392, abs=64) == 28.57 * GIB / (92 * 4096)


def test_partial_offload_says_how_many_layers_fit() -> None:
    made = llamacpp(LLAMA70, weights="gguf_q4_k_m", length=8192)
    assert made.outcome == "started_partly_on_cpu"
    share = (made.total_bytes - made.activation_bytes - made.non_torch_bytes) / (
        made.weights_bytes + made.kv_pool_bytes
    )
    assert f"{math.floor(share * 81)} of 80 layers" in made.refusal


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


def needed_gib(verdict: Verdict, length: int) -> float:
    """Cache that the start-up check asks for."""
    layout = verdict.rank.layout
    return layout.blocks_at_peak(length, verdict.resolved.in_flight_tokens) * layout.block_bytes / GIB


# The same RTX 5090 with two drafted tokens: "7.0 GiB KV cache is needed, larger than 6.42; estimated 177600".
def test_longest_context_of_a_published_refusal() -> None:
    settings = {"version": "0.26.1", "max_num_seqs": 1, "num_speculative_tokens": 2, "max_num_batched_tokens": 2048}
    verdict = with_pool(QWEN27, 6.42, 196_608, "fp8", **settings)
    assert needed_gib(verdict, 196_608) == pytest.approx(7.0, abs=0.01)
    assert needed_gib(verdict, 177_600) <= 6.42 < needed_gib(verdict, 177_600 + verdict.rank.layout.main.block_tokens)


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
