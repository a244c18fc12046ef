"""Step times from kernels: limits in closed form, monotonicity, and a few cited measurements."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu, gpu_names
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.model.quantization import weight_bytes_by_group
from planner.step_time import kernels
from planner.step_time.kernels import Device
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepWork

VLLM = EngineSettings()
ONE = Parallelism()
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
DEVICE = Device(bandwidth=1e12, peak=1e14, num_sms=100)


def replica(model, gpu, engine=VLLM, parallelism=ONE, **settings):
    return RankShare(model=model, gpu=gpu, engine=engine, parallelism=parallelism, **settings)


def kernel_ms(model, gpu, work, *, engine="vllm", tp=1, weights="auto", cache="auto"):
    table = step_time_table(
        replica(
            get_model(model),
            get_gpu(gpu),
            EngineSettings(name=engine, family=engine),
            Parallelism(tensor_parallel_size=tp),
            weight_dtype=weights,
            kv_cache_dtype=cache,
            kernels_only=True,
        )
    )
    return 1e3 * sum(seconds for name, seconds in table.terms_s(work).items() if name != "host")


def decode(batch, context):
    return StepWork(num_decodes=batch, kv_tokens=batch * context, num_logit_rows=batch)


def prefill(tokens, batch=1):
    return StepWork(chunks=(PrefillChunk(num_tokens=tokens),) * batch, num_logit_rows=batch)


# AIConfigurator 0.12.0 (Apache-2.0), step times composed from measured kernels, milliseconds.
@pytest.mark.parametrize(
    ("gpu", "engine", "work", "measured_ms"),
    [
        ("A100 SXM 80GB", "vllm", decode(1, 1024), 11.8634),
        ("A100 SXM 80GB", "vllm", decode(4, 4096), 12.9822),
        ("B200", "vllm", decode(1, 1024), 3.4821),
        ("B200", "vllm", decode(64, 1024), 4.8912),
        ("B200", "vllm", decode(256, 1024), 9.1830),
    ],
)
def test_llama_8b_steps_agree_with_measured_kernels(gpu, engine, work, measured_ms):
    assert kernel_ms(LLAMA, gpu, work, engine=engine) == pytest.approx(measured_ms, rel=0.08)


# Llama-3.1-8B linear layers on H100, vLLM kernels: 5.03, 5.81, 8.91 and 34.2 ms at 1, 64, 512 and 2,048 tokens.
@pytest.mark.parametrize(("tokens", "measured_ms"), [(1, 5.03), (64, 5.81), (512, 8.91), (2048, 34.2)])
def test_linear_layers_of_llama_8b_on_h100(tokens, measured_ms):
    work = StepWork(num_decodes=tokens, kv_tokens=tokens, num_logit_rows=tokens)
    terms = explain_step(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, kernels_only=True), work)
    # Counted with the launches: per layer three small kernels of 3 us that move 8 hidden + 1.5 gate_up elements.
    small = 32 * (9e-3 + 1e3 * 2 * tokens * (8 * 4096 + 1.5 * 28672) / (0.8 * 3.35e12))
    linear = terms["weights_read"] + terms["gemm_compute"] + terms["elementwise_and_launch"] - small
    assert linear == pytest.approx(measured_ms, rel=0.12)


def test_one_token_reads_the_weights_once():
    model, gpu = get_model(LLAMA), get_gpu("H100 SXM")
    terms = explain_step(replica(model, gpu, VLLM, ONE), decode(1, 16))
    ideal = sum(weight_bytes_by_group(model)[group] for group in ("attention", "mlp")) / (
        gpu.memory_bandwidth_gb_s * 1e6
    )
    assert 1.0 < terms["weights_read"] / ideal < 1.4


def test_gemm_limits():
    p = kernels.GemmParameters(fixed_us=0.0, bandwidth=0.5, activation=1e9, wave=0.0)
    one = kernels.gemm_parts(p, DEVICE, np.array([1.0]), np.array([4096.0]), np.array([4096.0]), 16).total[0]
    assert one == pytest.approx(4096 * 4096 * 2 / 0.5e12, rel=0.01)  # bytes over the reached bandwidth
    big = kernels.gemm_parts(p, DEVICE, np.array([8192.0]), np.array([8192.0]), np.array([8192.0]), 16).total[0]
    assert big == pytest.approx(2 * 8192**3 / (p.compute_8192 * 1e14), rel=0.01)  # FLOP over the reached peak


def test_distinct_experts():
    tokens = np.array([1.0, 8.0, 64.0, 1e6])
    # E (1 - (1 - k/E)^T): DeepSeek-V3 touches 8, 57, 222 of 256 experts with 1, 8, 64 tokens under even routing.
    even = kernels.distinct_experts(256, 8, tokens, evenness=1e9)
    assert even[:3] == pytest.approx([8, 57, 222], rel=0.01)
    skewed = kernels.distinct_experts(256, 8, tokens)
    assert skewed[0] == pytest.approx(8, rel=0.01)
    assert np.all(np.diff(skewed) > 0)
    assert np.all(skewed <= even + 1e-9)
    assert skewed[-1] <= 256


@pytest.mark.parametrize(
    "model", [LLAMA, "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-Next-80B-A3B-Instruct"]
)
@pytest.mark.parametrize("tp", [1, 8])
def test_more_work_never_takes_less(model, tp):
    table = step_time_table(replica(get_model(model), get_gpu("H200 SXM"), VLLM, Parallelism(tensor_parallel_size=tp)))
    for array in (table.decode_s, table.mixed_s, table.head_s):
        assert np.all(np.diff(array) >= -1e-15)
        assert np.all(np.isfinite(array))
        assert array[0] == 0


@pytest.mark.parametrize("work", [decode(37, 900), prefill(1500), StepWork()])
@pytest.mark.parametrize("model", [LLAMA, "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3"])
@pytest.mark.parametrize("parallelism", [ONE, Parallelism(tensor_parallel_size=4, pipeline_parallel_size=2)])
def test_the_terms_of_a_step_sum_to_its_time(model, work, parallelism):
    where = (get_model(model), get_gpu("B200"), VLLM, parallelism)
    terms = explain_step(replica(*where), work)
    assert sum(terms.values()) == pytest.approx(1e3 * step_time_table(replica(*where)).step_s(work))
    assert min(terms.values()) >= -1e-9


def test_tensor_parallelism_divides_weights_and_adds_collectives():
    where = (get_model(LLAMA), get_gpu("H100 SXM"), VLLM)
    alone = explain_step(replica(*where, ONE), decode(1, 16))
    four = explain_step(replica(*where, Parallelism(tensor_parallel_size=4)), decode(1, 16))
    assert alone["collectives"] == 0
    assert four["collectives"] > 0
    assert four["weights_read"] == pytest.approx(alone["weights_read"] / 4, rel=0.02)


def test_twice_the_gpu_takes_half_the_kernel_work():
    base = get_gpu("H100 SXM")
    twice = type(base)(
        name="twice",
        architecture="Hopper",
        memory_gb=80,
        memory_gib=79,
        memory_bandwidth_gb_s=2 * base.memory_bandwidth_gb_s,
        bf16_tflops=2 * base.bf16_tflops,
        link_gb_s=900,
    )
    model = get_model(LLAMA)
    once = explain_step(replica(model, base, VLLM, ONE), prefill(8192))
    faster = explain_step(replica(model, twice, VLLM, ONE), prefill(8192))
    assert faster["gemm_compute"] == pytest.approx(once["gemm_compute"] / 2, rel=0.05)


def test_quantised_weights_are_read_faster():
    times = [kernel_ms(LLAMA, "H100 SXM", decode(1, 16), weights=dtype) for dtype in ("bf16", "fp8", "awq_int4")]
    assert times[0] > times[1] > times[2]


def test_eight_bit_cache_shortens_long_contexts():
    wide, narrow = (kernel_ms(LLAMA, "H100 SXM", decode(64, 8192), cache=kind) for kind in ("auto", "fp8"))
    assert narrow < 0.8 * wide


def test_decode_batches_are_padded_to_captured_graphs():
    table = step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE))
    assert table.decode_s[17] == table.decode_s[24] > table.decode_s[16]
    eager = step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), EngineSettings(cuda_graphs=False), ONE))
    assert eager.decode_s[17] <= eager.decode_s[24]


# vLLM #49390: on data-centre Blackwell graphs up to 1,024 from v0.28 on, in steps of 16; before, none above 512.
def test_large_decode_batches_are_padded_where_larger_graphs_are_captured():
    model, gpu = get_model(LLAMA), get_gpu("B200")
    before, after = (
        step_time_table(replica(model, gpu, EngineSettings(version=name), ONE)) for name in ("0.27", "0.28")
    )
    assert before.decode_s[770] < before.decode_s[784]
    assert after.decode_s[769] == after.decode_s[770] == after.decode_s[784] < after.decode_s[785]
    assert after.decode_s[1025] < after.decode_s[1040]


def test_every_accelerator_has_step_times_and_says_how_sure_they_are():
    model = get_model(LLAMA)
    measured = step_time_table(replica(model, get_gpu("H100 SXM"), VLLM, ONE))
    for name in gpu_names():
        table = step_time_table(replica(model, get_gpu(name), VLLM, ONE))
        assert 0 < table.decode_s[1] < 1
        assert 0 < table.relative_error < 0.5
        if name not in table.notes[0].split("measured on ")[-1]:
            assert "no kernel measurement" in table.notes[0]
    inherited = step_time_table(replica(model, get_gpu("GH200"), VLLM, ONE))
    assert inherited.relative_error > measured.relative_error


def test_an_unknown_scheme_is_refused():
    with pytest.raises(InvalidInput):
        step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, weight_dtype="int3"))


def test_fused_quantisation_reads_one_byte_of_each_activation():
    # An infinitely fast multiplier leaves the fixed time, the weights and the activations: 2 m n + r m k bytes.
    p = kernels.GemmParameters(fixed_us=0, activation=1, bandwidth=1, serial_ns=0)
    device = Device(bandwidth=1e12, peak=1e30, num_sms=100)
    m, n, k = np.array([1000.0]), np.array([4096.0]), np.array([8192.0])
    plain = kernels.gemm_parts(p, device, m, n, k, 8)
    fused = kernels.gemm_parts(p, device, m, n, k, 8, fused_quantisation=True)
    assert plain.activations == pytest.approx((2 * 1000 * 4096 + 4 * 1000 * 8192) / 1e12)
    assert fused.activations == pytest.approx((2 * 1000 * 4096 + 1000 * 8192) / 1e12)


def test_a_cache_without_shared_heads_is_read_by_another_kernel():
    p = kernels.DecodeAttentionParameters(floor_us=0, base_us=0, sequence_us=0, bandwidth=0.8, bandwidth_single=0.4)
    size = np.array([1e9, 1e9])
    seconds = kernels.decode_attention_s(p, DEVICE, np.array([1.0, 1.0]), size, np.array([True, False]))
    assert seconds == pytest.approx([1e9 / 0.8e12, 1e9 / 0.4e12])


def test_served_attention_reads_no_faster_than_memory():
    # The A100 table of TensorRT-LLM shows 1.3 times the memory's bandwidth: what it read still lay in the cache.
    table = step_time_table(replica(get_model(LLAMA), get_gpu("A100 SXM 80GB"), EngineSettings(family="trtllm"), ONE))
    bytes_per_token = 32 * 2 * 8 * 128 * 2
    assert bytes_per_token / table.attention_per_kv_token_s <= 0.92 * 2039e9 * 1.001


def test_sparse_latent_attention_pads_its_heads():
    # GLM-5 holds 64 heads: eight a rank at TP 8, computed as 64, so that the width does not divide this cost
    model, gpu = get_model("zai-org/GLM-5"), get_gpu("H200 SXM")
    costs = [
        step_time_table(replica(model, gpu, EngineSettings(family="sglang"), Parallelism(tensor_parallel_size=tp)))
        for tp in (4, 8)
    ]
    assert costs[0].window_prefill_pair_s == pytest.approx(costs[1].window_prefill_pair_s)
    # 64 heads · 2 · (2 · 512 + 64) FLOP a pair and layer at 0.64 of 989.5 TFLOP/s (FlashMLA's README: 640 on H800)
    assert costs[1].window_prefill_pair_s == pytest.approx(
        model.num_layers * 64 * 2 * 1088 / (0.64 * 989.5e12), rel=0.01
    )


def test_drafting_with_a_separate_model_costs_its_own_passes():
    gpu, drafts = get_gpu("H100 SXM"), 4
    large, small = get_model("meta-llama/Llama-3.1-70B-Instruct"), get_model("meta-llama/Llama-3.2-1B-Instruct")
    wide = Parallelism(tensor_parallel_size=4)
    speculative = EngineSettings(num_speculative_tokens=drafts, speculative_acceptance=0.7)
    work = StepWork(num_decodes=1, tokens_per_decode=1 + drafts, kv_tokens=1000, num_logit_rows=1)
    split = explain_step(replica(large, gpu, speculative, wide, draft_model=small), work)
    alone = explain_step(replica(small, gpu, VLLM, wide), StepWork(num_decodes=1, kv_tokens=0, num_logit_rows=1))
    # 1.1 ms a step and 0.35 ms a draft of host time beside the draft model's kernels (vllm-project/vllm#20780)
    passes = drafts * (sum(alone.values()) - alone["host"])
    assert split["drafting"] == pytest.approx(passes + 1.1 + 0.35 * drafts, rel=0.05)
    table = step_time_table(replica(large, gpu, speculative, wide, draft_model=small))
    assert sum(split.values()) == pytest.approx(1e3 * table.step_s(work))


def test_without_speculation_nothing_is_drafted():
    split = explain_step(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE), decode(8, 100))
    assert split["drafting"] == 0


def test_prompt_layers_of_latent_attention_launch_more_kernels():
    gpu = get_gpu("H200 SXM")
    engine = EngineSettings(family="sglang", version="0.5.9")
    short = prefill(1)
    latent = explain_step(
        replica(get_model("deepseek-ai/DeepSeek-V3"), gpu, engine, Parallelism(tensor_parallel_size=8)), short
    )
    plain = explain_step(
        replica(get_model("Qwen/Qwen3-235B-A22B"), gpu, engine, Parallelism(tensor_parallel_size=8)), short
    )
    # 61 layers against 94 at catalog/serving_overheads.csv's 2.5 and 0.7 ms a layer
    assert sum(latent.values()) > 61 * 2.5
    assert sum(plain.values()) < 61 * 2.5


# On one of four GPUs 57 layers read one KV head of the 2,048 chosen tokens (512 bytes each) and every token's index key
# (128 × 2 bytes); the three dense layers read everything.
def test_sparse_layers_of_minimax_m3_read_what_their_indexer_chooses():
    wide = Parallelism(tensor_parallel_size=4)
    table = step_time_table(replica(get_model("MiniMaxAI/MiniMax-M3"), get_gpu("H200 SXM"), VLLM, wide))
    assert table.window_tokens == 2048
    read = table.attention_per_kv_token_s / table.window_per_kv_token_s
    assert read == pytest.approx((57 * 256 + 3 * 512) / (57 * 512))
