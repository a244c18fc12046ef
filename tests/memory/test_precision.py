"""Which weights and caches an engine starts with on a GPU."""

from planner.catalog.engines import get_engine
from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.memory.precision import native_schemes, precision_error, running_scheme, weights_support
from planner.memory.sizing import plan_memory
from planner.memory.verdict import REFUSED_PRECISION

QWEN = get_model("Qwen/Qwen3-4B")
VLLM, SGLANG, LLAMACPP = get_engine("vllm"), get_engine("sglang"), get_engine("llama-server")
T4, V100, A100, H100 = (get_gpu(name) for name in ("T4", "V100 SXM2 32GB", "A100 SXM 80GB", "H100 SXM"))


def planned(gpu, engine=VLLM, **changes):
    return plan_memory(QWEN, gpu, engine, Parallelism(), max_model_len=2048, **changes)


def test_bf16_that_is_asked_for_is_refused_before_ampere_in_the_engines_words():
    # vllm/platforms/cuda.py check_if_supports_dtype
    for gpu, capability in ((T4, "7.5"), (V100, "7.0")):
        plan = planned(gpu, weight_dtype="bf16")
        assert plan.outcome == REFUSED_PRECISION
        assert f"Your {gpu.name} GPU has compute capability {capability}." in plan.refusal
        assert plan.remedies == ("weights in fp16",)
    assert planned(A100, weight_dtype="bf16").starts


def test_a_bf16_checkpoint_runs_in_float16_where_the_engine_may_choose():
    assert running_scheme(QWEN, VLLM, T4, "auto") == "fp16"
    assert running_scheme(QWEN, VLLM, A100, "auto") == "bf16"
    assert planned(T4).starts


def test_weights_and_caches_that_the_engine_has_no_kernels_for():
    assert "FP8" in precision_error(QWEN, SGLANG, T4, "fp8", "auto")
    assert "GGUF" in precision_error(QWEN, LLAMACPP, H100, "fp8", "auto")
    assert "KV cache in fp8" in precision_error(QWEN, VLLM, T4, "fp16", "fp8")
    assert precision_error(QWEN, VLLM, A100, "fp8", "fp8") == ""


def test_a_refused_cache_starts_as_the_checkpoint_has_it():
    plan = planned(T4, weight_dtype="fp16", kv_cache_dtype="fp8")
    assert plan.outcome == REFUSED_PRECISION
    assert "kv_cache_dtype auto" in plan.remedies


def test_the_nearest_native_scheme_has_nearly_as_many_bits():
    # Ampere multiplies in INT8, not in FP8; RedHatAI publishes Llama-3.1-8B in W8A8.
    llama = get_model("meta-llama/Llama-3.1-8B-Instruct")
    assert weights_support(llama, VLLM, A100, "fp8")[1].support == "weight_only"
    assert native_schemes(llama, VLLM, A100, "fp8")[0] == "int8"
    assert native_schemes(QWEN, VLLM, T4, "bf16")[0] == "fp16"
    assert all(
        name.startswith("gguf") or name in ("bf16", "fp16") for name in native_schemes(QWEN, LLAMACPP, H100, "fp8")
    )
