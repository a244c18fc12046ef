"""Step times from kernels: limits in closed form, monotonicity, and a few cited measurements."""

import time

import numpy as np
import pytest

from planner.catalog.gpu_catalog import get_gpu, gpu_names
from planner.catalog.model_catalog import get_model
from planner.engine import EngineSettings
from planner.errors import InvalidInput
from planner.hardware import Parallelism
from planner.quantization import weight_bytes_by_group
from planner.step_time import PrefillChunk, StepWork
from planner.step_time_model import explain_step, kernels, step_time_table
from planner.step_time_model.kernels import Device

VLLM = EngineSettings()
ONE = Parallelism()
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
DEVICE = Device(bandwidth=1e12, peak=1e14, num_sms=100)


def kernel_ms(model, gpu, work, *, engine="vllm", tp=1, weights="auto", cache="auto"):
    table = step_time_table(
        get_model(model),
        get_gpu(gpu),
        EngineSettings(name=engine, family=engine),
        Parallelism(tensor_parallel_size=tp),
        weight_dtype=weights,
        kv_cache_dtype=cache,
        kernels_only=True,
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
    terms = explain_step(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, work, kernels_only=True)
    # Counted with the launches: per layer three small kernels of 3 us that move 8 hidden + 1.5 gate_up elements.
    small = 32 * (9e-3 + 1e3 * 2 * tokens * (8 * 4096 + 1.5 * 28672) / (0.8 * 3.35e12))
    linear = terms["weights_read"] + terms["gemm_compute"] + terms["elementwise_and_launch"] - small
    assert linear == pytest.approx(measured_ms, rel=0.12)


def test_one_token_reads_the_weights_once():
    model, gpu = get_model(LLAMA), get_gpu("H100 SXM")
    terms = explain_step(model, gpu, VLLM, ONE, decode(1, 16))
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
    table = step_time_table(get_model(model), get_gpu("H200 SXM"), VLLM, Parallelism(tensor_parallel_size=tp))
    for array in (table.decode_s, table.mixed_s, table.head_s):
        assert np.all(np.diff(array) >= -1e-15)
        assert np.all(np.isfinite(array))
        assert array[0] == 0


@pytest.mark.parametrize("work", [decode(37, 900), prefill(1500), StepWork()])
@pytest.mark.parametrize("model", [LLAMA, "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3"])
@pytest.mark.parametrize("parallelism", [ONE, Parallelism(tensor_parallel_size=4, pipeline_parallel_size=2)])
def test_the_terms_of_a_step_sum_to_its_time(model, work, parallelism):
    where = (get_model(model), get_gpu("B200"), VLLM, parallelism)
    terms = explain_step(*where, work)
    assert sum(terms.values()) == pytest.approx(1e3 * step_time_table(*where).step_s(work))
    assert min(terms.values()) >= -1e-9


def test_tensor_parallelism_divides_weights_and_adds_collectives():
    where = (get_model(LLAMA), get_gpu("H100 SXM"), VLLM)
    alone = explain_step(*where, ONE, decode(1, 16))
    four = explain_step(*where, Parallelism(tensor_parallel_size=4), decode(1, 16))
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
    once = explain_step(model, base, VLLM, ONE, prefill(8192))
    faster = explain_step(model, twice, VLLM, ONE, prefill(8192))
    assert faster["gemm_compute"] == pytest.approx(once["gemm_compute"] / 2, rel=0.05)


def test_quantised_weights_are_read_faster():
    times = [kernel_ms(LLAMA, "H100 SXM", decode(1, 16), weights=dtype) for dtype in ("bf16", "fp8", "awq_int4")]
    assert times[0] > times[1] > times[2]


def test_eight_bit_cache_shortens_long_contexts():
    wide, narrow = (kernel_ms(LLAMA, "H100 SXM", decode(64, 8192), cache=kind) for kind in ("auto", "fp8"))
    assert narrow < 0.8 * wide


def test_decode_batches_are_padded_to_captured_graphs():
    table = step_time_table(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE)
    assert table.decode_s[17] == table.decode_s[24] > table.decode_s[16]
    eager = step_time_table(get_model(LLAMA), get_gpu("H100 SXM"), EngineSettings(cuda_graphs=False), ONE)
    assert eager.decode_s[17] <= eager.decode_s[24]


def test_every_accelerator_has_step_times_and_says_how_sure_they_are():
    model = get_model(LLAMA)
    measured = step_time_table(model, get_gpu("H100 SXM"), VLLM, ONE)
    for name in gpu_names():
        table = step_time_table(model, get_gpu(name), VLLM, ONE)
        assert 0 < table.decode_s[1] < 1
        assert 0 < table.relative_error < 0.5
        if name not in table.notes[0].split("measured on ")[-1]:
            assert "no kernel measurement" in table.notes[0]
    inherited = step_time_table(model, get_gpu("GH200"), VLLM, ONE)
    assert inherited.relative_error > measured.relative_error


def test_an_unknown_scheme_is_refused():
    with pytest.raises(InvalidInput):
        step_time_table(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, weight_dtype="int3")


def test_a_table_takes_milliseconds():
    models = [get_model(name) for name in (LLAMA, "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3")]
    gpu = get_gpu("H100 SXM")
    for model in models:
        step_time_table(model, gpu, VLLM, Parallelism(tensor_parallel_size=16))
    start = time.perf_counter()
    for model in models:
        for tp in (2, 4, 8):
            step_time_table(model, gpu, VLLM, Parallelism(tensor_parallel_size=tp), max_tokens=16383)
    assert (time.perf_counter() - start) / 9 < 0.02
