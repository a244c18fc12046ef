"""Step times of whole models: measured kernels, limits in closed form, monotonicity."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.model.quantization import weight_bytes_by_group
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.step_table import StepWork
from tests.step_time.cases import LLAMA, ONE, VLLM, decode, prefill, replica


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


def test_an_unknown_scheme_is_refused():
    with pytest.raises(InvalidInput):
        step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE, weight_dtype="int3"))
