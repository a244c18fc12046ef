"""Memory plans against published start-up logs, engine arithmetic and closed forms."""

import dataclasses
import math
import re

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Gpu, Parallelism
from planner.memory.cuda_graphs import captured_sizes
from planner.memory.defaults import resolve
from planner.memory.kv_layout import kv_bytes_for
from planner.memory.memory_plan import MemoryPlan
from planner.memory.runtime import visible_memory_bytes
from planner.memory.shards import stage_sizes
from planner.memory.sizing import plan_memory
from planner.units import GIB

LLAMA, QWEN7, GEMMA27 = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "google/gemma-3-27b-it"


def gpu_that_shows(gib: float, name: str = "H100 SXM") -> Gpu:
    """Make a GPU of which a program sees `gib`, as a log states it."""
    gpu = get_gpu(name)
    kept = gpu.memory_gib - visible_memory_bytes(gpu) / GIB
    return dataclasses.replace(gpu, memory_gib=gib + kept)


def plan(
    model: str,
    *,
    tp: int = 1,
    pp: int = 1,
    dcp: int = 1,
    version: str = "0.19.0",
    family: str = "vllm",
    length: int = 8192,
    gpu: Gpu | None = None,
    weights: str = "auto",
    kv: str = "auto",
    **engine: object,
) -> MemoryPlan:
    settings = EngineSettings(family=family, version=version, **engine)  # type: ignore[arg-type]
    parallelism = Parallelism(tensor_parallel_size=tp, pipeline_parallel_size=pp, decode_context_parallel_size=dcp)
    return plan_memory(
        get_model(model),
        gpu or gpu_that_shows(79.19),
        settings,
        parallelism,
        max_model_len=length,
        weight_dtype=weights,
        kv_cache_dtype=kv,
    )


# vLLM 0.19.0 logs on H100 (79.19 GiB), utilization 0.95, 8,192 tokens: weights, activation, pool, tokens, concurrency
# (llm-d-planner PR #205, commit d3121e0).
LOGS = [
    (LLAMA, 1, 14.99, 1.89, 58.11, 476_016, 58.11),
    (LLAMA, 2, 7.51, 1.89, 63.76, 1_044_688, 127.53),
    (LLAMA, 4, 3.77, 1.89, 67.44, 2_209_792, 269.75),
    (QWEN7, 4, 3.55, 2.21, 67.34, 5_043_280, 615.63),
    ("Qwen/Qwen3-30B-A3B", 1, 56.88, 2.68, 15.41, 168_288, 20.54),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 1, 29.43, 1.93, 43.61, 1_505_552, 183.78),
    ("codellama/CodeLlama-7b-hf", 1, 12.56, 0.77, 61.66, 126_256, 15.41),
    (GEMMA27, 1, 51.45, 3.99, 19.53, 36_560, 4.46),
    ("google/gemma-3-12b-it", 1, 23.31, 3.94, 47.72, 130_304, 15.88),
]


@pytest.mark.parametrize(("model", "tp", "weights", "activation", "pool", "tokens", "concurrency"), LOGS)
def test_start_up_log_is_predicted(
    model: str, tp: int, weights: float, activation: float, pool: float, tokens: int, concurrency: float
) -> None:
    made = plan(model, tp=tp, gpu_memory_utilization=0.95, max_num_seqs=1024, max_num_batched_tokens=8192)
    assert made.weights_bytes / GIB == pytest.approx(weights, rel=0.01)
    assert made.activation_bytes / GIB == pytest.approx(activation, rel=0.12)
    assert made.kv_pool_bytes / GIB == pytest.approx(pool, rel=0.02)
    assert made.kv_tokens == pytest.approx(tokens, rel=0.02)
    assert made.max_concurrency == pytest.approx(concurrency, rel=0.02)
    assert made.starts


# Worked example: 79.2 GiB × 0.92 − 15.0 − 2.6 = 55.26 GiB; 2 MiB per block: 28,295 blocks, 452,720 tokens.
def test_block_arithmetic_of_the_worked_example() -> None:
    page = 16 * 8 * 256 * 2
    assert plan(LLAMA).kv_bytes_per_token == 131_072 == page * 32 / 16
    assert math.floor(55.26 * GIB / (page * 32)) in range(28_290, 28_297)


@pytest.mark.parametrize(("tp", "expected"), [(4, 81_920), (8, 40_960), (16, 40_960)])
def test_kv_heads_are_replicated_beyond_their_number(tp: int, expected: int) -> None:
    assert kv_bytes_for(get_model("meta-llama/Llama-3.3-70B-Instruct"), 1, tensor_parallel_size=tp) == expected


@pytest.mark.parametrize("tp", [1, 2, 8, 16])
def test_latent_is_not_divided_by_tensor_parallelism(tp: int) -> None:
    assert kv_bytes_for(get_model("deepseek-ai/DeepSeek-V3"), 1, tensor_parallel_size=tp) == 576 * 2 * 61


# Published cache sizes per token or sequence (vramscout table, lmstudio #1862, hf-mem PR #70, vllm #22291).
@pytest.mark.parametrize(
    ("model", "tokens", "dtype", "expected"),
    [
        ("moonshotai/Kimi-K2.5", 1, "auto", 68.625 * 1024),
        ("MiniMaxAI/MiniMax-M2.5", 204_800, "auto", 48.4375 * GIB),
        ("Qwen/Qwen2.5-7B-Instruct", 3072, "auto", 57_344 * 3072),
        ("microsoft/phi-2", 1, "auto", 327_680),
        (LLAMA, 8192, "fp8", 131_072 * 8192 / 2),
        ("deepseek-ai/DeepSeek-V3.2", 1, "fp8", (656 + 132) * 61),
    ],
)
def test_cache_per_sequence(model: str, tokens: int, dtype: str, expected: float) -> None:
    assert kv_bytes_for(get_model(model), tokens, kv_cache_dtype=dtype) == pytest.approx(expected, rel=1e-4)


def test_window_stops_growing_and_state_never_grows() -> None:
    windowed = get_model("openai/gpt-oss-20b")
    per_token = 8 * 128 * 2
    assert kv_bytes_for(windowed, 8192) == 12 * per_token * (8192 + 128)
    state = get_model("Qwen/Qwen3.5-27B")
    per_sequence = 48 * (48 * 128 * 128 * 4 + 10_240 * 3 * 2)
    assert kv_bytes_for(state, 262_144) - 16 * GIB == pytest.approx(per_sequence)


# vLLM 0.23.1, Qwen3.8-27B TP 2: blocks of 784 tokens, 161 blocks in 3.86 GiB; 122,633 tokens need 160 -> 123,399 tokens
# in the log; with 161 blocks the longest context is 123,872 (vllm issue with both messages).
def test_state_hybrid_counts_blocks_as_the_engine_does() -> None:
    from planner.memory.edition import Edition
    from planner.memory.kv_layout import build_layout
    from planner.memory.shards import pipeline_stages

    model = get_model("Qwen/Qwen3.8-27B")
    stage = pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=2), False)[0]
    layout = build_layout(
        stage.layers, tensor_parallel_size=2, context_parallel=1, kv_cache_dtype="auto", fp32=False,
        edition=Edition("vllm", (0, 23)), block_size=16, num_speculative_tokens=0,
    )  # fmt: skip
    assert layout.main.block_tokens == 784
    assert math.floor(3.86 * GIB / layout.block_bytes) == 161
    needed = layout.blocks_at_peak(122_633, 2048)
    assert needed == 160
    assert int(161 / needed * 122_633) == 123_399
    assert layout.blocks_at_peak(123_872, 2048) == 161
    assert layout.blocks_at_peak(123_873, 2048) == 162


# gemma-4-31B, vLLM 0.24 on H200: 64.68 GiB are 626,949 tokens at 262,144 (configiq #112).
def test_windows_share_the_pool_of_gemma_4() -> None:
    made = plan("google/gemma-4-31B-it", version="0.24.0", length=262_144, gpu=gpu_that_shows(139.81, "H200 SXM"))
    assert made.kv_tokens / made.kv_pool_bytes == pytest.approx(626_949 / (64.68 * GIB), rel=0.001)


# The same server before v0.21 printed floor(blocks ÷ groups) × 16: about 55,000 tokens for 50 GiB (vllm #43308).
def test_log_line_changed_with_v021() -> None:
    before = plan("google/gemma-4-31B-it", version="0.20.0", length=262_144, gpu=gpu_that_shows(139.81, "H200 SXM"))
    assert before.kv_tokens / before.kv_pool_bytes == pytest.approx(54_613 / (50 * GIB), rel=0.01)


# gpt-oss-20b: 8,192 tokens in decode hold 512 + 9 blocks, not 1,024 (engine semantics, example D).
def test_windowed_sequence_holds_few_blocks_in_decode() -> None:
    made = plan("openai/gpt-oss-20b", length=8192)
    assert made.block_size == 16
    assert made.fixed_blocks_per_sequence == 9
    assert made.num_kv_blocks / made.typical_concurrency_paged == 512 + 9


# Whisper large-v3: 32 layers × 20 heads × 64 × K and V × 2 B = 163,840 B per token, and 1,500 source tokens each.
def test_cross_attention_holds_the_whole_source() -> None:
    made = plan("openai/whisper-large-v3", length=448, gpu=get_gpu("L4"))
    assert made.kv_bytes_per_token == 163_840
    assert made.fixed_blocks_per_sequence == math.ceil(1500 / 16)
    assert kv_bytes_for(get_model("openai/whisper-large-v3"), 100) == 163_840 * 1600
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


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"), [(32, 4, (8, 8, 8, 8)), (30, 4, (7, 8, 8, 7)), (61, 2, (31, 30))]
)
def test_uneven_stages_are_dealt_as_the_engine_does(layers: int, stages: int, sizes: tuple[int, ...]) -> None:
    assert stage_sizes(layers, stages) == sizes


# vLLM 0.19.0, PP 4: the last rank holds head and sampler and decides: 141,079 blocks = 2,257,264 tokens.
def test_pipeline_capacity_is_the_worst_rank() -> None:
    made = plan(LLAMA, pp=4, gpu_memory_utilization=0.95)
    assert made.kv_tokens == pytest.approx(2_257_264, rel=0.005)


# VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS is 1 in vllm/envs.py of the 0.20.0 wheel and 0 in that of 0.19.1.
def test_graphs_leave_the_pool_since_v020() -> None:
    before = plan(LLAMA, version="0.19.1", gpu_memory_utilization=0.9)
    after = plan(LLAMA, version="0.20.0", gpu_memory_utilization=0.9)
    assert not before.cuda_graphs_in_budget
    assert after.cuda_graphs_in_budget
    assert before.kv_pool_bytes - after.kv_pool_bytes == pytest.approx(after.cuda_graph_bytes)


@pytest.mark.parametrize(("version", "expected"), [("0.19.1", 0.9), ("0.20.0", 0.92), ("", 0.92)])
def test_utilization_default_by_version(version: str, expected: float) -> None:
    assert plan(LLAMA, version=version).gpu_memory_utilization == expected


@pytest.mark.parametrize(
    ("version", "number"),
    [("0.20.1rc1.dev16+g7a1eb8ac2", (0, 20)), ("0.26.1rc1.dev608", (0, 27)), ("0.11.0rc2.dev98", (0, 11))],
)
def test_builds_between_releases_hold_what_came_since(version: str, number: tuple[int, int]) -> None:
    from planner.memory.edition import edition_of

    assert edition_of(EngineSettings(version=version)).number == number


# vLLM #50991: from v0.28 on states are kept for reuse without being asked.
def test_states_are_kept_for_reuse_by_default_since_v028() -> None:
    hybrid = "Qwen/Qwen3.8-27B"
    asked = plan(hybrid, tp=2, version="0.27", cache_state_prefixes=True)
    assert plan(hybrid, tp=2, version="0.28").blocks_per_sequence == asked.blocks_per_sequence
    before, without = (
        plan(hybrid, tp=2, version="0.27"),
        plan(hybrid, tp=2, enable_prefix_caching=False, version="0.28"),
    )
    assert before.blocks_per_sequence == without.blocks_per_sequence == asked.blocks_per_sequence - 3


# vLLM #49390: 1, 2, 4, 32 sizes to 256, 16 to 512 and, on data-centre Blackwell from v0.28 on, 32 more to 1,024
# (measured there on a B300). #26016: before v0.12 all by 8, 3 + 64. SGLang: 5 + 31 to 256, 15 below 512, and 512.
@pytest.mark.parametrize(
    ("gpu", "family", "version", "tp", "sizes", "largest"),
    [
        ("B200", "vllm", "0.28", 1, 83, 1024),
        ("B300", "vllm", "0.28", 1, 83, 1024),
        ("B200", "vllm", "0.27", 1, 51, 512),
        ("H200", "vllm", "0.28", 1, 51, 512),
        ("RTX 5090", "vllm", "0.28", 1, 51, 512),
        ("H200", "vllm", "0.11", 1, 67, 512),
        ("H100 SXM", "sglang", "0.5.6", 1, 36, 256),
        ("H100 SXM", "sglang", "0.5.6", 4, 52, 512),
        ("B200", "sglang", "", 1, 52, 512),
    ],
)
def test_captured_batch_sizes(gpu: str, family: str, version: str, tp: int, sizes: int, largest: int) -> None:
    engine, split, device = (
        EngineSettings(family=family, version=version),
        Parallelism(tensor_parallel_size=tp),
        get_gpu(gpu),
    )
    seqs = resolve(engine, device, split, 8192).max_num_seqs
    captured = captured_sizes(engine, device, split, seqs)
    assert (len(captured), captured[-1]) == (sizes, largest)
    assert captured_sizes(engine, device, split) == captured  # these defaults bound nothing


# vLLM: twice max_num_seqs, with drafted tokens from v0.13 on (#30330); V0 to the multiple of 8 that holds them.
# SGLang: none above max_running_requests, and that one itself.
@pytest.mark.parametrize(
    ("family", "version", "drafted", "seqs", "expected"),
    [
        ("vllm", "0.19", 0, 6, (1, 2, 4, 8)),
        ("vllm", "0.19", 2, 6, (1, 2, 4, 8, 16, 24, 32)),
        ("vllm", "0.12", 2, 6, (1, 2, 4, 8)),
        ("vllm", "0.7.3", 0, 20, (1, 2, 4, 8, 16, 24)),
        ("sglang", "0.5.6", 0, 20, (1, 2, 4, 8, 12, 16, 20)),
        ("sglang", "0.5.6", 1, 4, (2, 4, 6, 8)),
    ],
)
def test_captured_batch_sizes_of_few_sequences(
    family: str, version: str, drafted: int, seqs: int, expected: tuple[int, ...]
) -> None:
    engine = EngineSettings(family=family, version=version, num_speculative_tokens=drafted)
    assert captured_sizes(engine, get_gpu("H100 SXM"), Parallelism(), seqs) == expected


@pytest.mark.parametrize(
    ("gpu", "seqs", "tokens"), [("H100 SXM", 1024, 8192), ("A100 SXM 80GB", 256, 2048), ("L4", 256, 2048)]
)
def test_batch_defaults_by_device(gpu: str, seqs: int, tokens: int) -> None:
    made = plan("Qwen/Qwen3-0.6B", gpu=get_gpu(gpu))
    assert (made.max_num_seqs, made.max_num_batched_tokens) == (seqs, tokens)


def test_sglang_reserves_a_fixed_fraction() -> None:
    made = plan(LLAMA, family="sglang", version="0.5.5", gpu=get_gpu("H100 SXM"))
    reserved_mb = 512 + 1.5 * 8192 + 1024 / 8 + 2 * 256  # base, prefill chunk, one rank of eight, graph batch
    assert made.gpu_memory_utilization == pytest.approx(1 - reserved_mb / 1024 / 79.65)
    assert made.kv_pool_bytes == pytest.approx(made.budget_bytes - made.weights_bytes)


def test_sglang_starts_and_rejects_what_is_too_long() -> None:
    made = plan(LLAMA, family="sglang", version="0.5.5", length=131_072, gpu=get_gpu("L4"), block_size=1)
    assert made.starts
    assert made.max_model_len < 131_072
    assert made.max_model_len == pytest.approx(made.num_kv_blocks, abs=1)
    assert any("rejects longer requests" in note for note in made.notes)


# Llama-3-8B shape in llama.cpp: 32,768 tokens of f16 cache are 4,096 MiB, q8_0 34/64 of it; four slots take four times.
@pytest.mark.parametrize(("slots", "kv", "mib"), [(1, "auto", 4096), (1, "q8_0", 2176), (4, "auto", 16_384)])
def test_llamacpp_reserves_every_slot(slots: int, kv: str, mib: float) -> None:
    made = plan("meta-llama/Meta-Llama-3-8B", family="llamacpp", version="", length=32_768, kv=kv, block_size=1,
                weights="gguf_q4_k_m", max_num_seqs=slots)  # fmt: skip
    assert made.kv_pool_bytes / 2**20 == pytest.approx(mib)


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


@pytest.mark.parametrize(
    ("model", "tp", "words"),
    [
        (QWEN7, 8, "Total number of attention heads (28) must be divisible by tensor parallel size (8)."),
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "not divisible by weight quantization block_n = 128"),
        ("Qwen/Qwen3-14B", 3, "Total number of attention heads (40)"),
    ],
)
def test_divisions_are_refused_in_the_engines_words(model: str, tp: int, words: str) -> None:
    made = plan(model, tp=tp)
    assert not made.starts
    assert words in made.refusal


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


@pytest.mark.parametrize("model", [LLAMA, GEMMA27, "Qwen/Qwen3.5-27B", "deepseek-ai/DeepSeek-V2-Lite"])
def test_figures_of_a_plan_agree_with_one_another(model: str) -> None:
    made = plan(model, max_num_seqs=64)
    values = {formula.name: formula.value for formula in made.formulas}
    parts = made.budget_bytes - made.weights_bytes - made.activation_bytes - made.non_torch_bytes
    assert made.kv_pool_bytes == pytest.approx(parts)
    assert math.fsum(size for _, size in made.weights_by_group) == pytest.approx(made.weights_bytes)
    assert values["weights"] * GIB == pytest.approx(made.weights_bytes)
    assert values["kv_tokens"] == made.kv_tokens
    assert values["kv_blocks"] == made.num_kv_blocks + 1  # one block is the null block
    assert made.free_bytes > -0.01 * GIB


# TensorRT-LLM takes 0.9 of what is free after loading, less 1.5 % (useful-runtime-flags).
def test_tensorrt_llm_shares_what_is_free() -> None:
    made = plan(LLAMA, family="trtllm", version="1.2", block_size=32)
    free = made.total_bytes - made.weights_bytes - made.activation_bytes - made.non_torch_bytes
    assert made.kv_pool_bytes == pytest.approx(0.9 * 0.985 * free)
    opened = next(formula for formula in made.formulas if formula.name == "kv_pool")
    assert "share ×" in opened.expression


def test_uniform_pool_is_tokens_times_bytes_per_token() -> None:
    made = plan(LLAMA)
    assert made.kv_tokens * made.kv_bytes_per_token == pytest.approx(made.kv_pool_bytes, rel=1e-4)


def test_reserving_holds_fewer_sequences_than_paging() -> None:
    engine = EngineSettings(version="0.19.0")
    made = plan_memory(
        get_model(LLAMA), get_gpu("H100 SXM"), engine, Parallelism(), max_model_len=8192, mean_sequence_tokens=1024
    )
    assert made.typical_concurrency_paged == pytest.approx(8 * made.typical_concurrency_reserved)


# A system prompt of 512 tokens is 32 blocks held once: (N − 32) ÷ (64 − 32) sequences of 1,024 tokens.
def test_shared_prefix_is_held_once() -> None:
    engine = EngineSettings(version="0.19.0")
    made = plan_memory(
        get_model(LLAMA),
        get_gpu("H100 SXM"),
        engine,
        Parallelism(),
        max_model_len=8192,
        mean_sequence_tokens=1024,
        shared_prefix_tokens=512,
    )
    assert made.typical_concurrency_paged == (made.num_kv_blocks - 32) / 32


# Example: 41.9 M parameters of rank 16 over all linears of an 8B are 84 MB per slot.
def test_lora_slots_are_allocated() -> None:
    with_slots = plan(LLAMA, max_loras=1, max_lora_rank=16)
    assert with_slots.weights_bytes - plan(LLAMA).weights_bytes == pytest.approx(84e6, rel=0.07)


def test_draft_layers_are_loaded_only_when_drafting() -> None:
    plain = plan("Qwen/Qwen3.5-27B", max_num_seqs=64)
    drafting = plan("Qwen/Qwen3.5-27B", max_num_seqs=64, num_speculative_tokens=1)
    assert drafting.weights_bytes - plain.weights_bytes == pytest.approx(2 * 424_699_392)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"length": 0}, "max_model_len"), ({"kv": "fp5"}, "kv_cache_dtype"), ({"weights": "fp5"}, "weight_dtype")],
)
def test_bad_input_names_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan(LLAMA, **change)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_more_memory_never_holds_less() -> None:
    pools = [plan(LLAMA, gpu=gpu_that_shows(size)).num_kv_blocks for size in (20, 24, 40, 80, 140)]
    assert pools == sorted(pools)


def test_remedies_join_fewer_bits_and_more_gpus():
    # 70.6 × 10⁹ parameters: 16 bits on 8 × 24 GB, 8 bits on 4, about 4 bits on 2; no single change does on fewer.
    memory = plan_memory(
        get_model("meta-llama/Llama-3.3-70B-Instruct"),
        get_gpu("RTX 4090"),
        EngineSettings(),
        Parallelism(),
        max_model_len=8192,
    )
    assert memory.remedies == (
        "tensor_parallel_size 8",
        "weights in fp8 with tensor_parallel_size 4",
        "weights in int4_g128 with tensor_parallel_size 2",
    )


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


@pytest.mark.parametrize("family", ["trtllm", "tgi"])
def test_an_engine_that_forgets_its_graphs_is_short_of_a_full_step(family: str) -> None:
    # 70 B in 16 bits on an H200: 1 − share of what is free after loading is less than the graphs take.
    made = plan("meta-llama/Llama-3.1-70B-Instruct", family=family, gpu=get_gpu("H200 SXM"), version="1.2")
    parts = made.weights_bytes + made.activation_bytes + made.non_torch_bytes + made.kv_pool_bytes
    assert made.starts
    assert made.is_short == (parts + made.cuda_graph_bytes > made.total_bytes)
    assert made.is_short
    assert not plan(LLAMA, family=family, gpu=get_gpu("H200 SXM"), version="1.2").is_short


@pytest.mark.parametrize("family", ["vllm", "sglang", "trtllm", "tgi", "llamacpp"])
def test_the_budget_holds_what_it_says(family: str) -> None:
    made = plan(LLAMA, family=family, version="1.2" if family == "trtllm" else "0.19.0")
    pool = made.budget_bytes - made.weights_bytes
    if made.activations_in_budget:
        pool -= made.activation_bytes + made.non_torch_bytes
    assert made.kv_pool_bytes <= pool * (1 + 1e-9)
    assert made.activations_in_budget == (family != "sglang")
    text = next(formula for formula in made.formulas if formula.name == "budget")
    assert text.value * GIB == pytest.approx(made.budget_bytes)
    product = eval(text.substituted.replace("×", "*").replace("−", "-"))
    assert product == pytest.approx(text.value, abs=0.02)


@pytest.mark.parametrize("family", ["vllm", "sglang", "trtllm", "tgi", "llamacpp"])
def test_a_gpu_that_others_fill_has_no_negative_budget(family: str) -> None:
    made = plan_memory(
        get_model(LLAMA),
        get_gpu("L4"),
        EngineSettings(family=family, version="0.19.0"),
        Parallelism(),
        max_model_len=8192,
        occupied_bytes=22.4 * GIB,  # the driver shows 22.1 of 22.5 GiB
    )
    assert made.budget_bytes >= 0
    assert not made.starts
